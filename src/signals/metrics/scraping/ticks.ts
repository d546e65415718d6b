import { createHash } from 'node:crypto'

/** Maximum delay of a scrape that is still reported at its planned time, so that the differences of times compress. */
const mostToleranceMs = 2

/**
 * Maximum distance of the possible moments in an interval: several targets share each of them, and one wake-up serves
 * all of those.
 */
const mostSlotMs = 250
const leastSlots = 20

/**
 * Times of a target's scrapes: every interval, at an offset derived from its ID, so that targets are spread and each
 * keeps its offset across restarts. Uses the monotonic clock, so jumps of the wall clock have no effect.
 */
export class Ticks {
  readonly intervalMs: number
  /** By `performance.now()`. */
  #nextMs: number

  constructor(id: string, intervalMs: number, wallMs = Date.now(), nowMs = performance.now()) {
    this.intervalMs = intervalMs
    const phase = phaseOf(id, intervalMs)
    this.#nextMs = nowMs + ((((phase - wallMs) % intervalMs) + intervalMs) % intervalMs)
  }

  /** Time of the next tick, by `performance.now()`. */
  get nextMs(): number {
    return this.#nextMs
  }

  /** Moves to the first tick after `nowMs`. Returns the number of skipped ticks. */
  advance(nowMs = performance.now()): number {
    const steps = Math.max(1, Math.floor((nowMs - this.#nextMs) / this.intervalMs) + 1)
    this.#nextMs += steps * this.intervalMs
    return steps - 1
  }

  /** Time of a scrape that starts now, in milliseconds since the Unix epoch: the planned time if it is hardly late. */
  timeOf(tickMs: number, wallMs = Date.now(), nowMs = performance.now()): number {
    const lateMs = nowMs - tickMs
    return lateMs >= 0 && lateMs <= Math.min(mostToleranceMs, this.intervalMs / 100)
      ? Math.round(wallMs - lateMs)
      : wallMs
  }
}

/** Offset from 0 to the interval, by the ID alone. */
function phaseOf(id: string, intervalMs: number): number {
  const hash = createHash('md5').update(id).digest()
  const slots = Math.max(leastSlots, Math.ceil(intervalMs / mostSlotMs))
  return Math.floor((hash.readUInt32BE(0) / 2 ** 32) * slots) * (intervalMs / slots)
}
