import assert from 'node:assert/strict'
import { test } from 'node:test'
import { numberText } from './number-text.ts'

test('numbers are written as Go writes the shortest form', () => {
  const check = (value: number, text: string) => assert.equal(numberText(value), text)
  check(0, '0')
  check(-0, '0')
  check(1, '1')
  check(-1, '-1')
  check(0.52, '0.52')
  check(999999, '999999')
  check(1e6, '1e+06')
  check(1234567, '1.234567e+06')
  check(-16e9, '-1.6e+10')
  check(999999.5, '999999.5')
  check(0.0001, '0.0001')
  check(0.00001, '1e-05')
  check(0.000012345, '1.2345e-05')
  check(1e21, '1e+21')
  check(1e100, '1e+100')
  check(2 ** 64, '1.8446744073709552e+19')
  check(5e-324, '5e-324')
  check(Number.NaN, 'NaN')
  check(Number.POSITIVE_INFINITY, '+Inf')
  check(Number.NEGATIVE_INFINITY, '-Inf')
})

test('a text leads back to its number', () => {
  for (let i = 0; i < 10_000; i++) {
    const value = (Math.random() - 0.5) * 10 ** (Math.random() * 40 - 20)
    assert.equal(Number(numberText(value)), value)
  }
})
