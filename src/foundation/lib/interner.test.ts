import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Interner } from './interner.ts'

test('the text of a range is what a Latin-1 decoder says', () => {
  const interner = new Interner({ slots: 8, maxLength: 16 })
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), fc.nat(40), fc.nat(40), (array, a, b) => {
      const bytes = Buffer.from(array)
      const start = Math.min(a, b, bytes.length)
      const end = Math.min(Math.max(a, b), bytes.length)
      assert.equal(interner.intern(bytes, start, end), bytes.toString('latin1', start, end))
    }),
    { numRuns: 2_000 },
  )
})

test('values that differ in any one byte stay apart, also where the hash does not look', () => {
  const interner = new Interner({ slots: 64, maxLength: 256 })
  const bytes = Buffer.alloc(200, 'a')
  for (let at = 0; at < bytes.length; at++) {
    bytes[at] = 0x62
    assert.equal(interner.intern(bytes, 0, 200), bytes.toString('latin1'))
    bytes[at] = 0x61
    assert.equal(interner.intern(bytes, 0, 200), bytes.toString('latin1'))
  }
})

test('a value that comes again is not decoded again', () => {
  const interner = new Interner({ slots: 1024, maxLength: 64 })
  const values = Array.from({ length: 20 }, (_, i) => Buffer.from(`/api/v1/resource/${i}`))
  for (const value of values) interner.intern(value, 0, value.length)
  const before = interner.misses
  for (let round = 0; round < 100; round++)
    for (const value of values) interner.intern(value, 0, value.length)
  assert.equal(interner.misses, before)
})

test('a value that is too long to keep is still decoded', () => {
  const interner = new Interner({ slots: 8, maxLength: 4 })
  const bytes = Buffer.from('abcdefgh')
  assert.equal(interner.intern(bytes, 0, 8), 'abcdefgh')
  assert.equal(interner.intern(bytes, 0, 8), 'abcdefgh')
  assert.equal(interner.misses, 2)
})

test('a flood of rare values displaces, and never mixes, what is kept', () => {
  const interner = new Interner({ slots: 16, maxLength: 64 })
  const hot = Buffer.from('/hot')
  for (let i = 0; i < 10_000; i++) {
    const rare = Buffer.from(`/rare/${i}`)
    assert.equal(interner.intern(rare, 0, rare.length), `/rare/${i}`)
    assert.equal(interner.intern(hot, 0, 4), '/hot')
  }
})

test('bytes are those of the texts that are kept, and all are forgotten where memory is short', () => {
  const interner = new Interner({ slots: 16, maxLength: 64 })
  assert.equal(interner.bytes, 0)
  for (let i = 0; i < 1000; i++) {
    const text = Buffer.from('x'.repeat(i % 60))
    interner.intern(text, 0, text.length)
    assert.ok(interner.bytes <= 16 * (16 + 64))
  }
  assert.ok(interner.bytes > 0)
  const held = interner.bytes
  assert.equal(interner.shed(), held)
  assert.equal(interner.bytes, 0)
  const { misses } = interner
  const text = Buffer.from('again')
  for (let i = 0; i < 2; i++) assert.equal(interner.intern(text, 0, 5), 'again')
  assert.equal(interner.misses, misses + 1)
  assert.equal(interner.bytes, 16 + 5)
})
