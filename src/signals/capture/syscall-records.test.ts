import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type MapHandle, type Native, perfMoreWaits } from '../../kernel/native.ts'
import { PerfRecords, sortByTime } from './syscall-records.ts'

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

/** What is read of the buffers of two CPUs: time and CPU of each record, by drain. `more`: others wait behind it. */
type Drain = readonly { readonly timeNs: number; readonly cpu: number; readonly more?: boolean }[]

function perfOf(drains: readonly Drain[], perCpu = 65_536): PerfRecords {
  let next = 0
  const native = {
    numCpus: () => 2,
    perfOpen: () => ({ fd: 0 }),
    clock: () => ({ monotonicNs: 1e12 }),
    perfDrain: (_: unknown, target: Buffer) => {
      let at = 0
      for (const { timeNs, cpu, more = false } of drains[next++] ?? []) {
        target.writeUInt32LE(16, at)
        target.writeUInt32LE(more ? (cpu | perfMoreWaits) >>> 0 : cpu, at + 4)
        target.writeUInt32LE(0, at + 8) // a segment
        target.writeBigUInt64LE(BigInt(timeNs), at + 16)
        at += 24
      }
      return at
    },
  }
  return new PerfRecords(native as unknown as Native, {} as MapHandle, perCpu)
}

test('a record behind which more waited is handed on once the rest is there', () => {
  const ms = 1e6
  const records = perfOf([
    [
      { timeNs: 10 * ms, cpu: 0, more: true },
      { timeNs: 50 * ms, cpu: 1 },
    ],
    [{ timeNs: 20 * ms, cpu: 0 }],
  ])
  assert.equal(records.take(false), 0)
  assert.ok(records.more)
  assert.equal(records.take(false), 3)
  assert.ok(!records.more)
})

test('the smallest buffer of one that has few CPUs is read', () => {
  const records = perfOf([[{ timeNs: 1e6, cpu: 0 }]], 32_768)
  assert.equal(records.take(false), 1)
})
