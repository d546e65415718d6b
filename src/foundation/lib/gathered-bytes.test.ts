import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { GatheredBytes } from './gathered-bytes.ts'

test('pieces of any size are put together in their order, and none is changed', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 30 }), pieces => {
      const buffers = pieces.map(piece => Buffer.from(piece))
      const gathered = new GatheredBytes(10_000)
      for (const piece of buffers) assert.ok(gathered.add(piece))
      assert.deepEqual(gathered.bytes, Buffer.concat(pieces))
      assert.deepEqual(
        buffers,
        pieces.map(piece => Buffer.from(piece)),
      )
    }),
  )
})

test('what would be more than the bound is refused and leaves the rest as it is', () => {
  const gathered = new GatheredBytes(4)
  assert.equal(gathered.add(Buffer.from('abc')), true)
  assert.equal(gathered.add(Buffer.from('de')), false)
  assert.equal(gathered.add(Buffer.from('d')), true)
  assert.equal(gathered.add(Buffer.from('e')), false)
  assert.equal(gathered.bytes.toString(), 'abcd')
})

test('a million pieces of one byte take little more memory than their bytes', () => {
  const source = Buffer.alloc(1 << 20, 'x')
  const gathered = new GatheredBytes(source.length)
  const before = process.memoryUsage().heapUsed
  for (let i = 0; i < source.length; i++) gathered.add(source.subarray(i, i + 1))
  const grown = process.memoryUsage().heapUsed - before
  assert.ok(gathered.bytes.equals(source))
  // What is thrown away is in it, too. The pieces themselves would take more than 90 MiB.
  assert.ok(grown < 48 << 20, `${grown >> 20} MiB`)
})
