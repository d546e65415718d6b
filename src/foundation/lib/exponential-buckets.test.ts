import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { bucketIndex, ExponentialBucketCounts, mergePairs } from './exponential-buckets.ts'

const numRuns = soak ? 20_000 : 500

const positive = fc.double({ min: 1e-9, max: 1e9, noNaN: true })

test('powers of two are upper bounds of their buckets at every scale', () => {
  for (let power = -1022; power <= 1023; power++) {
    for (let scale = -10; scale <= 20; scale++) {
      const want = scale > 0 ? power * 2 ** scale - 1 : Math.ceil(power / 2 ** -scale) - 1
      assert.equal(bucketIndex(2 ** power, scale), want, `2^${power} at ${scale}`)
    }
  }
})

test('a value lies in its bucket, but for the rounding of a logarithm', () => {
  fc.assert(
    fc.property(positive, fc.integer({ min: -10, max: 8 }), (value, scale) => {
      const index = bucketIndex(value, scale)
      const base = (i: number) => 2 ** (i * 2 ** -scale)
      assert.ok(value > base(index) * (1 - 1e-14) && value <= base(index + 1) * (1 + 1e-14))
    }),
    { numRuns },
  )
})

test('the smallest numbers there are have a bucket', () => {
  assert.equal(bucketIndex(5e-324, 0), -1023)
  assert.equal(bucketIndex(2 ** -1030, 3), -1022 * 8 - 1)
  assert.equal(bucketIndex(Number.MAX_VALUE, 0), 1023)
})

test('counts are those of the same values at the scale that holds them', () => {
  const values = fc.array(fc.tuple(positive, fc.integer({ min: 1, max: 5 })), { maxLength: 60 })
  fc.assert(
    fc.property(
      values,
      fc.integer({ min: 2, max: 160 }),
      fc.integer({ min: 0, max: 20 }),
      (list, most, start) => {
        const buckets = new ExponentialBucketCounts(start, most)
        for (const [value, times] of list) buckets.add(value, times)
        const { scale, offset, counts } = buckets
        assert.ok(scale <= start && counts.length <= most)
        const want = new Map<number, number>()
        for (const [value, times] of list) {
          // Merging takes the bucket that a higher scale chose.
          const index = Math.floor(bucketIndex(value, start) / 2 ** (start - scale))
          want.set(index, (want.get(index) ?? 0) + times)
        }
        const got = new Map<number, number>()
        for (const [i, count] of counts.entries()) if (count > 0) got.set(offset + i, count)
        assert.equal(got.size, want.size)
        for (const [index, count] of want) {
          const near = [index, index - 1, index + 1].find(i => got.has(i))
          assert.ok(near !== undefined && got.get(near) === count, `${index}: ${count}`)
        }
        if (counts.length > 0) assert.ok(counts[0]! > 0 && counts.at(-1)! > 0)
      },
    ),
    { numRuns },
  )
})

test('merging pairs keeps every count', () => {
  const check = (offset: number, counts: number[], want: number[]) => {
    const merged = Float64Array.from(counts)
    const length = mergePairs(merged, offset, counts.length)
    assert.deepEqual([...merged.subarray(0, length)], want)
    assert.ok(merged.subarray(length).every(count => count === 0))
  }
  check(0, [], [])
  check(0, [1], [1])
  check(0, [1, 2, 3], [3, 3])
  check(1, [1, 2, 3], [1, 5])
  check(-1, [1, 2, 3], [1, 5])
  check(-2, [1, 2, 3], [3, 3])
  check(-3, [1, 2, 3, 4, 5], [1, 5, 9])
})
