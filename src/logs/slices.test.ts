import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Slices } from './slices.ts'

test('time in which the machine stood still hardly counts as work', async t => {
  let now = 0
  t.mock.method(performance, 'now', () => now)
  const slices = new Slices(1)
  for (const [passedMs, workedMs] of [
    [0.5, 0.5],
    [5, 5.5],
    [60_000, 15.5],
  ] as const) {
    now += passedMs
    assert.equal(slices.totalMs, workedMs)
    await slices.rest()
    assert.equal(slices.totalMs, workedMs)
  }
})
