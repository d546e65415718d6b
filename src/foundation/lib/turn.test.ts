import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Turn } from './turn.ts'

test('time in which the machine stood still hardly counts as work', async t => {
  let now = 0
  t.mock.method(performance, 'now', () => now)
  const turn = new Turn(1)
  for (const [passedMs, workedMs] of [
    [0.5, 0.5],
    [5, 5.5],
    [60_000, 15.5],
  ] as const) {
    now += passedMs
    assert.equal(turn.workedMs, workedMs)
    await turn.rest()
    assert.equal(turn.workedMs, workedMs)
  }
})
