// What work leaves on V8's heap, and what it allocates there, for tests that hold code to a bound.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Frees what nothing holds. Weak references that were read live until the turn of the event loop ends. */
export function collectGarbage(): void {
  collect()
  collect() // what finalizers let go of
}

/**
 * Bytes that a run of `work` leaves behind: the median of five runs, behind one that warms up. A leak grows with each
 * run; what the compiler keeps of the code, or throws away, comes when a busy machine has time for it.
 */
export async function heapGrowth(work: () => unknown): Promise<number> {
  const grown: number[] = []
  let before = await usedAfter(work)
  for (let run = 0; run < 5; run++) {
    const after = await usedAfter(work)
    grown.push(after - before)
    before = after
  }
  return median(grown)
}

async function usedAfter(work: () => unknown): Promise<number> {
  await work()
  // Weak references and closed handles.
  await new Promise(setImmediate)
  collectGarbage()
  return process.memoryUsage().heapUsed
}

/**
 * Bytes that a run of `work` allocates, whether they live on or not: the median of nine runs, and of five such medians
 * the least, as the compiler of a busy machine is late. `work` must be small enough that no collection falls into it,
 * and have run before.
 */
export function heapAllocated(work: () => void): number {
  const series = Array.from({ length: 5 }, () => median(Array.from({ length: 9 }, () => allocatedBy(work))))
  return Math.min(...series)
}

function allocatedBy(work: () => void): number {
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  work()
  return process.memoryUsage().heapUsed - before
}

function median(numbers: number[]): number {
  return numbers.sort((a, b) => a - b)[numbers.length >> 1]!
}
