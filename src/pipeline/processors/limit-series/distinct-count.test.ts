import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DistinctCount } from './distinct-count.ts'
import { SeriesHash } from './series-hash.ts'

test('the estimate is near the number of values, however often each comes', () => {
  const hash = new SeriesHash('content')
  const check = (values: number) => {
    const count = new DistinctCount()
    for (let i = 0; i < 2 * values; i++) {
      hash.ofValue(`user-${i % values}`)
      count.add(hash.low, hash.high)
    }
    // Five standard errors; of few values two may share a register.
    assert.ok(Math.abs(count.estimate - values) <= 0.165 * values + 1.5, `${count.estimate} for ${values}`)
  }
  for (const values of [0, 1, 2, 10, 100, 1000, 2000, 3500, 5000, 48_000, 500_000]) check(values)
})
