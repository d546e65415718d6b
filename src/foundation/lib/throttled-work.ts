/** How long work rests. */
export interface ThrottleOptions {
  /** Milliseconds from the end of the work to its next beginning, at least. */
  readonly leastMs: number
  /** The same, as a multiple of the time that the work took. */
  readonly factor: number
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number
}

/** Work that anybody may ask for: done once at a time, and anew only after a rest. Until then all get what it made last. */
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
