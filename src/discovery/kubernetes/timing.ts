import type { BackoffOptions } from '../../lib/backoff.ts'

/** How long things may take, in milliseconds. */
export interface Timing {
  /** A watch is asked for as long as this, and up to twice: all of them must not begin anew at once. */
  readonly watchMs: number
  /** A watch that has not ended by itself so long after it should have is given up. */
  readonly hangMs: number
  /** For the head of an answer, and between two pieces of a list. */
  readonly answerMs: number
  /** A pod waits at most so long to be told while nobody knows who stands above its owner. */
  readonly ownerMs: number
  /** Files with tokens and certificates are read again when what was read is this old. */
  readonly credentialsMs: number
  /** What nobody may look at is asked for again after so long. */
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
