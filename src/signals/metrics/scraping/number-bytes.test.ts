import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seeded } from '../../../../test/helpers/page-mutation.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { NumberBytes } from './number-bytes.ts'

const numbers = new NumberBytes()

function check(text: string, want: number): void {
  // What stands behind the end is not looked at.
  const bytes = Buffer.from(`${text}7e7`)
  const got = numbers.read(bytes, 0, text.length)
  assert.equal(numbers.end, text.length, text)
  assert.ok(Object.is(got, want), `${text}: ${got} instead of ${want}`)
}

function checkNone(text: string): void {
  numbers.read(Buffer.from(text), 0, text.length)
  assert.equal(numbers.end, -1, text)
}

test('numbers are read in all forms that Go prints and reads', () => {
  check('0', 0)
  check('-0', -0)
  check('+17', 17)
  check('.5', 0.5)
  check('5.', 5)
  check('00012.50', 12.5)
  check('1.234567e+06', 1234567)
  check('1E22', 1e22)
  check('1e23', 1e23)
  check('9007199254740993', 9007199254740992)
  check('9007199254740991', 9007199254740991)
  check('18446744073709551615', 2 ** 64)
  check('2.4703282292062328e-324', 5e-324)
  check('2.4703282292062327e-324', 0)
  check('1e-400', 0)
  check('-1e-99999999999999999999', -0)
  check('0e99999999999999999999', 0)
  check('1.7976931348623157e308', Number.MAX_VALUE)
  check(`0.${'0'.repeat(400)}1e401`, 1)
  check('NaN', Number.NaN)
  check('nAn', Number.NaN)
  check('Inf', Number.POSITIVE_INFINITY)
  check('+infinity', Number.POSITIVE_INFINITY)
  check('-INF', Number.NEGATIVE_INFINITY)
})

test('what Go refuses, or Prometheus, is no number', () => {
  for (const text of [
    '',
    '+',
    '-',
    '.',
    '-.',
    'e5',
    '1e',
    '1e+',
    '+NaN',
    '-nan',
    'in',
    'x',
    '--1',
    '1e309',
    '-1e309',
  ])
    checkNone(text)
  checkNone(`1${'0'.repeat(400)}`)
})

test('a number ends where it cannot go on', () => {
  for (const [text, end] of [
    ['0x10', 1],
    ['1_0', 1],
    ['1.2.3', 3],
    ['infi', 3],
    ['1 2', 1],
    ['1e5e5', 3],
    ['5\0', 1],
  ] as const) {
    numbers.read(Buffer.from(text), 0, text.length)
    assert.equal(numbers.end, end, text)
  }
})

test('numbers are rounded correctly, however many digits they have', () => {
  const random = seeded(1)
  const digits = (most: number) =>
    Array.from({ length: 1 + Math.floor(random() * most) }, () => Math.floor(random() * 10)).join('')
  const count = soak ? 3_000_000 : 30_000
  for (let i = 0; i < count; i++) {
    const exponent = random() < 0.5 ? '' : `e${random() < 0.5 ? '-' : '+'}${digits(random() < 0.9 ? 2 : 3)}`
    const text = `${random() < 0.2 ? '-' : ''}${digits(20)}${random() < 0.7 ? `.${digits(20)}` : ''}${exponent}`
    const want = Number(text)
    if (Number.isFinite(want)) check(text, want)
    else checkNone(text)
    const shortest = new Float64Array(new Uint32Array([random() * 2 ** 32, random() * 2 ** 32]).buffer)[0]!
    if (Number.isFinite(shortest)) check(String(shortest), shortest)
  }
})

test('timestamps are milliseconds as whole numbers, or seconds', () => {
  const us = (text: string, how: 'readMilliseconds' | 'readSeconds') => {
    const value = numbers[how](Buffer.from(text), 0, text.length)
    return numbers.end < 0 ? undefined : [value, numbers.end]
  }
  assert.deepEqual(us('1395066363000', 'readMilliseconds'), [1395066363000000, 13])
  assert.deepEqual(us('-5', 'readMilliseconds'), [-5000, 2])
  assert.deepEqual(us('0', 'readMilliseconds'), [0, 1])
  assert.deepEqual(us('-0', 'readMilliseconds'), [0, 2])
  assert.deepEqual(us('5.5', 'readMilliseconds'), [5000, 1])
  assert.deepEqual(us('9223372036854775807', 'readMilliseconds'), [2 ** 63 * 1000, 19])
  assert.deepEqual(us('000000000000000000000000000000001', 'readMilliseconds'), [1000, 33])
  for (const text of ['', '-', '+5', 'NaN', '9223372036854775808', '-9223372036854775809'])
    assert.equal(us(text, 'readMilliseconds'), undefined, text)
  assert.deepEqual(us('1520879607.789', 'readSeconds'), [1520879607789000, 14])
  assert.deepEqual(us('-1.5e0', 'readSeconds'), [-1500000, 6])
  assert.deepEqual(us('1e308', 'readSeconds'), [Number.MAX_VALUE, 5])
  for (const text of ['NaN', 'Inf', '-Inf', '', '1e400'])
    assert.equal(us(text, 'readSeconds'), undefined, text)
})

test('a number of more digits than anyone means is read so far', () => {
  for (const [digits, end] of [
    [4096, 4096],
    [5000, 4096],
  ] as const) {
    const text = Buffer.from('0'.repeat(digits))
    assert.equal(numbers.read(text, 0, digits), 0)
    assert.equal(numbers.end, end)
    assert.equal(numbers.readMilliseconds(text, 0, digits), 0)
    assert.equal(numbers.end, end)
  }
})
