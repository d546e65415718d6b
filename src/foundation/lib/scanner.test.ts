import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decimal, Scanner } from './scanner.ts'
import { utf8Text } from './utf8-text.ts'

test('lines and words are walked over', () => {
  const scan = new Scanner(Buffer.from('cpu  12 3.5\t0x10\n\nlast: some words  \nend'))
  assert.ok(scan.line())
  assert.ok(scan.starts('cpu'))
  assert.ok(!scan.starts('cpu0'))
  assert.equal(scan.text(), 'cpu')
  assert.equal(scan.number(), 12)
  assert.equal(scan.number(), 3.5)
  assert.ok(!scan.done)
  assert.ok(Number.isNaN(scan.number()))
  assert.ok(scan.done)
  assert.equal(scan.text(), '')
  assert.ok(Number.isNaN(scan.number()))
  assert.ok(scan.line())
  assert.ok(scan.done)
  assert.ok(scan.line())
  assert.equal(scan.until(':'), 'last')
  assert.equal(scan.rest(), 'some words')
  assert.ok(scan.line())
  assert.equal(scan.text(), 'end')
  assert.ok(!scan.line())
  assert.equal(scan.text(), '')
})

test('numbers of 64 bits are rounded as a double is', () => {
  const number = (text: string) => {
    const scan = new Scanner(Buffer.from(text))
    scan.line()
    return scan.number()
  }
  for (const text of ['18446744073709551615', '9007199254740993', '123456789012345', '-1', '1e3', '.5', '+7'])
    assert.equal(number(text), Number(text))
  for (const text of ['', '-', '1x', '0x10', '1_0', 'Infinity', '1e999', '..'])
    assert.ok(Number.isNaN(number(text)), text)
  assert.ok(Number.isNaN(decimal(' ')))
})

test('hexadecimal words are read', () => {
  const scan = new Scanner(Buffer.from(`00fF ffffffff 8000000000000c01 xyz f/ ${'f'.repeat(400)}`))
  scan.line()
  assert.equal(scan.hex(), 255)
  assert.equal(scan.hex(), 2 ** 32 - 1)
  // To the nearest double, once.
  assert.equal(scan.hex(), 2 ** 63 + 2 ** 12)
  for (let i = 0; i < 4; i++) assert.ok(Number.isNaN(scan.hex()))
})

test('what is no number costs no more time than it is long', () => {
  const text = `${'1'.repeat(1024 * 1024)}x`
  const took = () => {
    const before = process.cpuUsage().user
    assert.ok(Number.isNaN(decimal(text)))
    return process.cpuUsage().user - before
  }
  // A virtual machine that stood still may have that time booked as the process's.
  assert.ok(Math.min(took(), took(), took()) < 1e6)
})

test('a beginning that is there is passed over', () => {
  const scan = new Scanner(Buffer.from('nr_dirty 7'))
  scan.line()
  assert.ok(!scan.pass('nr_free '))
  assert.ok(scan.pass('nr_dirty '))
  assert.equal(scan.number(), 7)
  assert.ok(!scan.pass(' '))
})

test('each run of bytes that are no UTF-8 becomes one U+FFFD', () => {
  const text = (...bytes: number[]) => utf8Text(Buffer.from(bytes), 0, bytes.length)
  assert.equal(text(0x61, 0xff, 0xfe, 0x62), 'a\ufffdb')
  assert.equal(text(0xc3, 0xa9), 'é')
  assert.equal(text(0xe2, 0x82), '\ufffd')
  assert.equal(text(0xed, 0xa0, 0x80, 0x41), '\ufffdA')
  assert.equal(text(0xf0, 0x9f, 0x98, 0x80), '😀')
  assert.equal(utf8Text(Buffer.from(`${'x'.repeat(100)}é`), 0, 102), `${'x'.repeat(100)}é`)
})
