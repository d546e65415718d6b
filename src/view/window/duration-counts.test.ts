import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { boundsNs, bucketOf, durationBuckets, percentileMs } from './duration-counts.ts'

test('a duration lies above the bound before its bucket, and not above the bucket’s own', () => {
  const check = (ns: number) => {
    const bucket = bucketOf(ns)
    assert.ok(bucket === 0 || ns > boundsNs[bucket - 1]!, `${ns} in ${bucket}`)
    assert.ok(bucket === durationBuckets - 1 || ns <= boundsNs[bucket]!, `${ns} in ${bucket}`)
  }
  for (const bound of boundsNs)
    for (const ns of [bound - 1, bound, bound + 1, bound * (1 + 2 ** -52)]) check(ns)
  for (const ns of [0, 1, 2 ** 31, 2 ** 32 + 1, 2 ** 53, 1e300, Number.POSITIVE_INFINITY]) check(ns)
  fc.assert(fc.property(fc.double({ min: 0, noNaN: true }), check))
  fc.assert(fc.property(fc.integer({ min: 0, max: 2 ** 38 }), check))
})

test('a percentile lies in the bucket of the exact one', () => {
  const durations = fc.array(fc.integer({ min: 20_000, max: 2 ** 36 }), { minLength: 1, maxLength: 200 })
  const parts = fc.constantFrom(0.01, 0.5, 0.9, 0.95, 0.99, 1)
  fc.assert(
    fc.property(durations, parts, (all, part) => {
      const counts = new Float64Array(durationBuckets)
      for (const ns of all) counts[bucketOf(ns)]!++
      const exact = [...all].sort((a, b) => a - b)[Math.max(0, Math.ceil(part * all.length) - 1)]!
      const bucket = bucketOf(exact)
      const found = percentileMs(counts, part)! * 1e6
      assert.ok(found >= boundsNs[bucket - 1]! * 0.999999 && found <= boundsNs[bucket]! * 1.000001)
    }),
  )
})

test('nothing that was timed has no percentile, and what is longer than all bounds has the last one', () => {
  const counts = new Float64Array(2 * durationBuckets)
  assert.equal(percentileMs(counts, 0.95), null)
  counts[durationBuckets - 1] = 3
  assert.equal(percentileMs(counts, 0.5), boundsNs.at(-1)! / 1e6)
  assert.equal(percentileMs(counts, 0.5, durationBuckets), null)
})
