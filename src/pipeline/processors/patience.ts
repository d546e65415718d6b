/** Looks at the clock that it takes at least to use up the time. */
const leastLooks = 5

/**
 * How long work may take, by a clock that is looked at now and then. One look counts for no more than a fifth of the
 * time: another program may have had the processor.
 */
export class Patience {
  readonly #milliseconds: number
  readonly #nowMs: () => number
  #lookedMs = 0
  #spentMs = 0

  /** @param nowMs monotonic */
  constructor(milliseconds: number, nowMs: () => number) {
    this.#milliseconds = milliseconds
    this.#nowMs = nowMs
  }

  /** Work begins. */
  begin(): void {
    this.#spentMs = 0
    this.#lookedMs = this.#nowMs()
  }

  /** Looks at the clock: whether the time since `begin` is used up. */
  isOver(): boolean {
    const now = this.#nowMs()
    this.#spentMs += Math.min(this.#milliseconds / leastLooks, now - this.#lookedMs)
    this.#lookedMs = now
    return this.#spentMs >= this.#milliseconds
  }
}
