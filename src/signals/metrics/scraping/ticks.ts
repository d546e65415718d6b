import { createHash } from 'node:crypto'

/** Of a scrape's time against the plan: within this it is told as planned, so that differences of times compress. */
const mostToleranceMs = 2

/** Moments stand so far apart, that of many targets several are scraped at each: one waking serves them all. */
const mostSlotMs = 250
const leastSlots = 20

/**
 * When a target is scraped: every interval, at a moment of the interval that follows from its id, so that targets spread
 * and each keeps its moment over restarts. By the monotonic clock: a wall clock that jumps neither hurries nor delays.
 */
export class Ticks {
  readonly intervalMs: number
  /** Of `performance.now()`. */
  #nextMs: number

  constructor(id: string, intervalMs: number, wallMs = Date.now(), nowMs = performance.now()) {
    this.intervalMs = intervalMs
    const phase = phaseOf(id, intervalMs)
    this.#nextMs = nowMs + ((((phase - wallMs) % intervalMs) + intervalMs) % intervalMs)
  }

  /** The next one, of `performance.now()`. */
  get nextMs(): number {
    return this.#nextMs
  }

  /** Goes on to the first tick behind `nowMs`. Returns how many were passed over. */
  advance(nowMs = performance.now()): number {
    const steps = Math.max(1, Math.floor((nowMs - this.#nextMs) / this.intervalMs) + 1)
    this.#nextMs += steps * this.intervalMs
    return steps - 1
  }

  /** The time of a scrape that begins now, in milliseconds since the Unix epoch: as planned where it is hardly late. */
  timeOf(tickMs: number, wallMs = Date.now(), nowMs = performance.now()): number {
    const lateMs = nowMs - tickMs
    return lateMs >= 0 && lateMs <= Math.min(mostToleranceMs, this.intervalMs / 100)
      ? Math.round(wallMs - lateMs)
      : wallMs
  }
}

/** 0 to the interval, by the id alone. */
function phaseOf(id: string, intervalMs: number): number {
  const hash = createHash('md5').update(id).digest()
  const slots = Math.max(leastSlots, Math.ceil(intervalMs / mostSlotMs))
  return Math.floor((hash.readUInt32BE(0) / 2 ** 32) * slots) * (intervalMs / slots)
}
