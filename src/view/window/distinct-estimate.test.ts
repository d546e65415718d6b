import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DistinctEstimate } from './distinct-estimate.ts'

test('different things are counted about right, and the same ones once', () => {
  for (const count of [0, 1, 10, 1_000, 20_000]) {
    const estimate = new DistinctEstimate()
    for (let round = 0; round < 3; round++)
      for (let i = 0; i < count; i++) estimate.add(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, 'shop', 80)
    assert.ok(Math.abs(estimate.count - count) <= Math.max(1, count * 0.05), `${count}: ${estimate.count}`)
    estimate.clear()
    assert.equal(estimate.count, 0)
  }
})
