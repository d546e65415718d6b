import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../../test/helpers/soak.ts'
import { LineSplitter } from '../../../foundation/lib/line-splitter.ts'
import { FormatError, ListReader } from './list-reader.ts'

const runs = soak ? 5_000 : 200

function pieces(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const parts: Buffer[] = []
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes.length === 0 ? bytes.length : sizes[i % sizes.length]!
    parts.push(Buffer.from(bytes.subarray(at, at + size)))
    at += size
  }
  return parts
}

function read(text: string, sizes: readonly number[] = [], maxItemBytes = 1024 * 1024) {
  const reader = new ListReader(maxItemBytes)
  const items: unknown[] = []
  for (const piece of pieces(Buffer.from(text), sizes))
    for (const item of reader.items(piece)) items.push(JSON.parse(item.toString()))
  return { items, envelope: JSON.parse(reader.envelope.toString()) }
}

const sizes = fc.array(fc.integer({ min: 1, max: 50 }), { maxLength: 5 })

/** None in keys: V8 13.6 may misread an escaped key beside one with a backslash (nodejs/node#63785). */
const noBackslash = fc.string({ minLength: 1, maxLength: 1 }).filter(each => each !== '\\')
const keys = fc.string({ unit: noBackslash })
const values = fc.oneof(fc.jsonValue({ stringUnit: noBackslash, maxDepth: 3 }), fc.string())

test('a list in pieces of any size gives its items and what is around them', () => {
  const objects = fc.array(fc.dictionary(keys, values))
  const rest = fc.dictionary(
    keys.filter(key => !key.includes('items') && key !== '__proto__'),
    values,
  )
  fc.assert(
    fc.property(objects, rest, rest, sizes, fc.constantFrom(0, 2), (items, before, after, cuts, indent) => {
      const list = { ...before, items, after }
      const found = read(JSON.stringify(list, null, indent), cuts)
      const plain = JSON.parse(JSON.stringify(list))
      assert.deepEqual(found.items, plain.items)
      assert.deepEqual(found.envelope, { ...plain, items: [] })
    }),
    { numRuns: runs },
  )
})

test('items of a deeper level, and a text that spells them, are no items', () => {
  const text =
    '{"metadata":{"items":[{"a":1}],"x":"\\"items\\":["},"items":[{"b":[{"items":[{}]}]}],"z":[{}]}'
  for (const size of [1, 3, 1000]) {
    const { items, envelope } = read(text, [size])
    assert.deepEqual(items, [{ b: [{ items: [{}] }] }])
    assert.deepEqual(envelope.metadata.items, [{ a: 1 }])
    assert.deepEqual(envelope.z, [{}])
  }
})

test('whatever bytes come, it ends with an error of its own or none', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map(each => Buffer.from(each)),
    fc
      .array(fc.constantFrom('{', '}', '[', ']', '"items":', '"', '\\', ',', '1'), { maxLength: 80 })
      .map(each => Buffer.from(each.join(''))),
  )
  fc.assert(
    fc.property(bytes, sizes, (all, cuts) => {
      const reader = new ListReader(100)
      try {
        for (const piece of pieces(all, cuts))
          for (const item of reader.items(piece)) assert.ok(item.length <= 300)
        assert.ok(reader.envelope.length <= 300)
      } catch (error) {
        assert.ok(error instanceof FormatError, String(error))
      }
    }),
    { numRuns: 5 * runs },
  )
})

test('an object beyond the bound, an endless envelope and a deep nest are refused', () => {
  const check = (text: string, wanted: RegExp) => assert.throws(() => read(text, [64], 1000), wanted)
  check(`{"items":[{"a":"${'x'.repeat(1100)}"}]}`, /an object in the answer is larger than 1000 bytes/)
  check(`{"a":"${'x'.repeat(70_000)}`, /not a Kubernetes list/)
  check('['.repeat(5_000), /too deep/)
  check('{"items":[{"a":1}', /the answer is truncated/)
})

test('lines come out as they went in, without those that are too long', () => {
  const lines = fc.array(fc.string().map(each => each.replaceAll('\n', '')))
  fc.assert(
    fc.property(lines, sizes, (wanted, cuts) => {
      const splitter = new LineSplitter(20)
      const found: string[] = []
      for (const piece of pieces(Buffer.from(wanted.map(each => `${each}\n`).join('')), cuts))
        for (const line of splitter.lines(piece)) found.push(line.toString())
      const fits = (each: string) => Buffer.byteLength(each) <= 20
      assert.deepEqual(
        found,
        wanted.filter(each => each !== '' && fits(each)),
      )
      assert.equal(splitter.tooLong, wanted.filter(each => !fits(each)).length)
    }),
    { numRuns: runs },
  )
})
