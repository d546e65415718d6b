import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WallClock } from './wall-clock.ts'

test('times of the monotonic clock become those of the wall clock, as it was set last', () => {
  const clock = new WallClock()
  clock.set(4_000_000_000, 1_700_000_000_000_000)
  assert.equal(clock.microseconds(5_000_000_000), 1_700_000_001_000_000)
  assert.ok(Math.abs(clock.microseconds(5_002_000_001) - 1_700_000_001_002_000) <= 0.25)
  clock.set(4_000_000_000, 1_800_000_000_000_000)
  assert.equal(clock.microseconds(5_000_000_000), 1_800_000_001_000_000)
})
