/** Minimum checks of the clock before time is up. */
const leastLooks = 5

/**
 * Time limit for a piece of work, by a clock that is checked now and then. A single check counts for at most a fifth of
 * the limit: another program may have had the CPU.
 */
export class Patience {
  readonly #milliseconds: number
  readonly #nowMs: () => number
  #lookedMs = 0
  #spentMs = 0

  /** `nowMs` is a monotonic clock. */
  constructor(milliseconds: number, nowMs: () => number) {
    this.#milliseconds = milliseconds
    this.#nowMs = nowMs
  }

  /** Starts the time. */
  begin(): void {
    this.#spentMs = 0
    this.#lookedMs = this.#nowMs()
  }

  /** Checks the clock: whether the time since `begin` is used up. */
  isOver(): boolean {
    const now = this.#nowMs()
    this.#spentMs += Math.min(this.#milliseconds / leastLooks, now - this.#lookedMs)
    this.#lookedMs = now
    return this.#spentMs >= this.#milliseconds
  }
}
