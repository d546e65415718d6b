/** Rest period between runs. */
export interface ThrottleOptions {
  /** Minimum milliseconds from the end of a run to the next start. */
  readonly leastMs: number
  /** The same, as a multiple of the run's duration. */
  readonly factor: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
}

/**
 * Work that any caller may request: runs once at a time, and again only after a rest. Until then all callers get the
 * last result.
 */
export class ThrottledWork<T> {
  readonly #work: () => Promise<T>
  readonly #rest: ThrottleOptions
  #made: Promise<T> | undefined
  #againMs = Number.NEGATIVE_INFINITY

  constructor(work: () => Promise<T>, rest: ThrottleOptions) {
    this.#work = work
    this.#rest = rest
  }

  get(): Promise<T> {
    const { leastMs, factor, now } = this.#rest
    const beganMs = now()
    if (this.#made === undefined || beganMs >= this.#againMs) {
      this.#againMs = Number.POSITIVE_INFINITY
      this.#made = this.#work().finally(() => {
        const endedMs = now()
        this.#againMs = endedMs + Math.max(leastMs, factor * (endedMs - beganMs))
      })
    }
    return this.#made
  }
}
