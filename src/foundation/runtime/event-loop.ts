// Duration of event loop turns: during a turn, nothing else of the agent runs.

import { Histogram } from '../lib/registry.ts'
import { every } from '../lib/shared-ticks.ts'

/** Upper bounds of the buckets, in seconds. */
const bounds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
/** Parts of the last minute. */
const parts = 6
const partMs = 10_000

/** Order of the addon's figures before the buckets. */
const [turnsAt, busyAt, longestAt, bucketsAt] = [0, 1, 2, 3]

/** Interface of the addon. */
export interface TurnCounter {
  loopWatch(bounds: Float64Array, figures: Float64Array): void
}

/** For documents. */
export interface LoopState {
  readonly turns: number
  /** Milliseconds. */
  readonly longest_ms: number
  readonly longest_last_minute_ms: number
}

/** Measures the turns of this thread's event loop from now on; costs only two clock readings per turn. */
export class EventLoopWatch {
  readonly #figures = new Float64Array(bucketsAt + bounds.length + 1)
  readonly #histogram = new Histogram(bounds)
  /** Longest turns of the last complete parts of a minute, in seconds. */
  readonly #recent: number[] = new Array(parts).fill(0)
  #longest = 0
  #part = 0

  constructor(native: TurnCounter) {
    native.loopWatch(Float64Array.from(bounds), this.#figures)
    every(partMs, () => this.#rotate())
  }

  /** The longest turn so far, in seconds. */
  get longest(): number {
    return Math.max(this.#longest, this.#figures[longestAt]!)
  }

  get longestLastMinute(): number {
    return Math.max(...this.#recent, this.#figures[longestAt]!)
  }

  get state(): LoopState {
    return {
      turns: this.#figures[turnsAt]!,
      longest_ms: milliseconds(this.longest),
      longest_last_minute_ms: milliseconds(this.longestLastMinute),
    }
  }

  /** The durations of all turns so far, in seconds. */
  histogram(): Histogram {
    this.#histogram.counts.set(this.#figures.subarray(bucketsAt))
    this.#histogram.sum = this.#figures[busyAt]!
    return this.#histogram
  }

  #rotate(): void {
    const longest = this.#figures[longestAt]!
    this.#figures[longestAt] = 0
    this.#longest = Math.max(this.#longest, longest)
    this.#recent[this.#part] = longest
    this.#part = (this.#part + 1) % parts
  }
}

function milliseconds(seconds: number): number {
  return Math.round(seconds * 1000)
}

let watch: EventLoopWatch | undefined

/** The watch of this process: a singleton, as there is one loop. */
export function eventLoopWatch(native: TurnCounter): EventLoopWatch {
  watch ??= new EventLoopWatch(native)
  return watch
}
