import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { sortByTime } from './syscall-records.ts'

/** Sorts by times; the offsets tell where each stood. */
function sorted(times: readonly number[]): { times: number[]; offsets: number[] } {
  const room = times.length + 3 // what stands behind the records of a batch is left alone
  const offsets = Uint32Array.from({ length: room }, (_, i) => i)
  const values = Float64Array.from({ length: room }, (_, i) => times[i] ?? -1)
  sortByTime(offsets, values, times.length)
  assert.deepEqual([...values.subarray(times.length)], [-1, -1, -1])
  return {
    times: [...values.subarray(0, times.length)],
    offsets: [...offsets.subarray(0, times.length)],
  }
}

function check(times: readonly number[]): void {
  const order = times.map((_, i) => i).sort((a, b) => times[a]! - times[b]! || a - b)
  const found = sorted(times)
  assert.deepEqual(found.offsets, order)
  assert.deepEqual(
    found.times,
    order.map(i => times[i]),
  )
}

test('records come in the order of their times, and those of one time as they came', () => {
  check([])
  check([1])
  check([3, 1, 2])
  check([1, 1, 1])
  fc.assert(fc.property(fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 300 }), check))
})

test('the runs of several CPUs are put together', () => {
  const runs = Array.from({ length: 8 }, (_, cpu) => Array.from({ length: 500 }, (_, i) => 8 * i + cpu))
  check(runs.flat())
  check(runs.flat().reverse())
})
