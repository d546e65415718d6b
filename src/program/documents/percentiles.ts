// Numbers for documents.

import { percentileMs } from '../../view/window/duration-counts.ts'

/** Rounds to four decimals, which keeps documents short. */
export function rounded(value: number): number {
  return Math.round(value * 10_000) / 10_000
}

/** A percentile in milliseconds; null if nothing was timed. */
export function durationMs(durations: ArrayLike<number>, part: number, at = 0): number | null {
  const ms = percentileMs(durations, part, at)
  return ms === null ? null : rounded(ms)
}

/** Percentiles of durations for documents. */
export function percentilesOf(durations: ArrayLike<number>): {
  p50_ms: number | null
  p95_ms: number | null
  p99_ms: number | null
} {
  return {
    p50_ms: durationMs(durations, 0.5),
    p95_ms: durationMs(durations, 0.95),
    p99_ms: durationMs(durations, 0.99),
  }
}
