// Allocations and garbage collections, from V8's statistics of each collection.

import { GCProfiler, getHeapStatistics } from 'node:v8'
import { every, type Ticks } from '../lib/shared-ticks.ts'

/** V8 keeps a record of 4 kB for each collection until it is read. */
const drainEveryMs = 2000

/** Figures in bytes, named as Go's `runtime.MemStats`. */
export interface MemoryFigures {
  /** Heap in use, and external memory held by JavaScript objects. */
  readonly Alloc: number
  /**
   * A lower bound of the bytes allocated since the process started: it never decreases. Exact for the heap while
   * watched; misses external memory that is allocated and freed between two collections, or freed while not watched.
   */
  readonly TotalAlloc: number
  /** Resident set of the process. */
  readonly Sys: number
  /** Collections while watched, including minor ones. */
  readonly NumGC: number
}

export class AllocationWatch {
  #profiler: GCProfiler | undefined
  #ticks: Ticks | undefined
  #lastBytes = 0
  #totalBytes = 0
  #collections = 0

  start(): void {
    if (this.#profiler) return
    this.#advance(bytesInUse())
    this.#profiler = new GCProfiler()
    this.#profiler.start()
    this.#ticks = every(drainEveryMs, () => this.#drain())
  }

  stop(): void {
    this.#ticks?.stop()
    this.#count()
    this.#profiler = undefined
  }

  figures(): MemoryFigures {
    this.#drain()
    return {
      Alloc: this.#lastBytes,
      TotalAlloc: this.#totalBytes,
      Sys: process.memoryUsage.rss(),
      NumGC: this.#collections,
    }
  }

  #drain(): void {
    const watching = this.#profiler !== undefined
    this.#count()
    if (watching) {
      this.#profiler = new GCProfiler()
      this.#profiler.start()
    }
    this.#advance(bytesInUse())
  }

  #count(): void {
    const result = this.#profiler?.stop()
    for (const { beforeGC, afterGC } of result?.statistics ?? []) {
      this.#advance(beforeGC.heapStatistics.usedHeapSize + beforeGC.heapStatistics.externalMemory)
      this.#lastBytes = afterGC.heapStatistics.usedHeapSize + afterGC.heapStatistics.externalMemory
      this.#collections++
    }
  }

  #advance(bytes: number): void {
    this.#totalBytes += Math.max(0, bytes - this.#lastBytes)
    this.#lastBytes = bytes
  }
}

function bytesInUse(): number {
  const { used_heap_size, external_memory } = getHeapStatistics()
  return used_heap_size + external_memory
}
