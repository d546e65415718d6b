export interface BackoffOptions {
  /** The first wait. */
  readonly initialMs: number
  /** No wait is longer. */
  readonly maxMs: number
  /** Each wait is this many times the one before. */
  readonly multiplier: number
  /** Share of a wait that is left to chance, 0 to 1. At 1 a wait may be anything up to its full length. */
  readonly jitter: number
}

/**
 * Waits between attempts that grow exponentially. Chance only shortens a wait, so that `maxMs` holds, and
 * keeps agents that lost the same receiver from all coming back to it at once.
 */
export class Backoff {
  readonly #options: BackoffOptions
  readonly #random: () => number
  #full: number

  constructor(options: BackoffOptions, random: () => number = Math.random) {
    this.#options = options
    this.#random = random
    this.#full = options.initialMs
  }

  /** How long to wait before the next attempt, in milliseconds. */
  next(): number {
    const { maxMs, multiplier, jitter } = this.#options
    const full = Math.min(this.#full, maxMs)
    this.#full = Math.min(full * multiplier, maxMs)
    return full * (1 - jitter * this.#random())
  }

  /** Starts over after a success. */
  reset(): void {
    this.#full = this.#options.initialMs
  }
}
