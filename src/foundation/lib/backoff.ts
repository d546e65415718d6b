export interface BackoffOptions {
  /** The first delay. */
  readonly initialMs: number
  /** Upper limit of a delay. */
  readonly maxMs: number
  /** Each delay is this many times the previous one. */
  readonly multiplier: number
  /** Random share of a delay, 0 to 1. At 1 a delay may be anything up to its full length. */
  readonly jitter: number
}

/**
 * Exponential backoff. Jitter only shortens a delay, so that `maxMs` holds, and keeps agents that lost the same
 * receiver from reconnecting all at once.
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

  /** Delay before the next attempt, in milliseconds. */
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
