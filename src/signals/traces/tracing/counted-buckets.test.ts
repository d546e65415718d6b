import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bounds, dbClient, kernelBounds } from '../protocols/durations.ts'
import { CountedBuckets } from './counted-buckets.ts'

test('what the kernel counted stands in the bucket that the duration belongs to', () => {
  const buckets = new CountedBuckets(kernelBounds)
  const check = (own: readonly number[], seconds: number) => {
    const counts = Array.from({ length: kernelBounds.length + 1 }, () => 0)
    const at = kernelBounds.findIndex(bound => seconds <= bound)
    counts[at < 0 ? kernelBounds.length : at] = 3
    const found = Array.from(buckets.of(own, counts))
    const want = own.findIndex(bound => seconds <= bound)
    assert.equal(found.length, own.length + 1)
    assert.equal(found[want < 0 ? own.length : want], 3, `${seconds} s`)
    assert.equal(
      found.reduce((sum, count) => sum + count),
      3,
    )
  }
  for (const seconds of [0, 0.0005, 0.001, 0.0011, 0.005, 0.03, 0.05, 0.07, 0.3, 0.5, 2, 5, 9, 10, 11]) {
    check(bounds, seconds)
    check(dbClient.bounds, seconds)
  }
})
