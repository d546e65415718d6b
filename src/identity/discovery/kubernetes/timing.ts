import type { BackoffOptions } from '../../../foundation/lib/backoff.ts'

/** Timeouts, in milliseconds. */
export interface Timing {
  /** Minimum duration of a watch; up to twice that at random, so that not all restart together. */
  readonly watchMs: number
  /** Grace period for a watch that the server does not end in time. */
  readonly hangMs: number
  /** Timeout for the response headers, and between two pieces of a list. */
  readonly answerMs: number
  /** Maximum delay of a pod while the owners above its controller are unknown. */
  readonly ownerMs: number
  /** Maximum age of tokens and certificates read from files. */
  readonly credentialsMs: number
  /** Interval of retries after a denied request. */
  readonly refusedMs: number
  readonly backoff: BackoffOptions
}

export const usualTiming: Timing = {
  watchMs: 300_000,
  hangMs: 30_000,
  answerMs: 30_000,
  ownerMs: 5_000,
  credentialsMs: 60_000,
  refusedMs: 10 * 60_000,
  backoff: { initialMs: 500, maxMs: 30_000, multiplier: 2, jitter: 0.5 },
}
