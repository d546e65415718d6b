import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { mostRecordBytes, SpanRing } from './span-ring.ts'

test('records go out in the order in which they came in, and the newest are found page by page', () => {
  const lengths = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: mostRecordBytes / 8 }))
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 400_000 }),
      fc.array(lengths, { minLength: 10, maxLength: 1500 }),
      fc.nat({ max: 300 }),
      (bytes, sizes, most) => {
        const gone: number[] = []
        const ring = new SpanRing(bytes, (from, at) => gone.push(from.words[(at >> 2) + 1]!))
        for (const [n, size] of sizes.entries()) {
          const at = ring.place()
          assert.ok(at % 8 === 0 && at + mostRecordBytes <= ring.bytes.length)
          ring.words[(at >> 2) + 1] = n
          ring.close(at, size * 8)
          assert.ok(ring.touchedBytes <= ring.bytes.length)
        }
        assert.deepEqual(
          gone,
          gone.map((_, i) => i),
        )
        const told = (limit?: number) => {
          const numbers: number[] = []
          ring.each(at => numbers.push(ring.words[(at >> 2) + 1]!), limit)
          return numbers.sort((a, b) => a - b)
        }
        const all = told()
        assert.deepEqual(
          all,
          Array.from({ length: ring.records }, (_, i) => gone.length + i),
        )
        assert.equal(gone.length + ring.records, sizes.length)
        const newest = told(most)
        assert.deepEqual(newest, all.slice(all.length - newest.length))
        assert.ok(newest.length >= Math.min(most, all.length))
        while (ring.dropOldest());
        assert.deepEqual([gone.length, ring.records, told().length], [sizes.length, 0, 0])
      },
    ),
    { numRuns: soak ? 1000 : 40 },
  )
})
