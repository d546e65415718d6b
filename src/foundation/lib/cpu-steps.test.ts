import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CpuSteps } from './cpu-steps.ts'

test('steps go down to the last value and back to the first, and each is told once', () => {
  const seen: number[] = []
  const steps = new CpuSteps([1000, 250, 60], value => seen.push(value))
  assert.deepEqual([steps.value, steps.isLowered, steps.raise()], [1000, false, false])
  while (steps.lower());
  assert.deepEqual([steps.value, steps.isLowered], [60, true])
  while (steps.raise());
  assert.deepEqual([seen, steps.isLowered], [[250, 60, 250, 1000], false])
})
