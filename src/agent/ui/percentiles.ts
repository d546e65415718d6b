// Numbers as documents have them.

import { percentileMs } from '../../window/duration-counts.ts'

/** To four decimals: more would only make documents longer. */
export function rounded(value: number): number {
  return Math.round(value * 10_000) / 10_000
}

/** The duration that a part of them did not exceed, in milliseconds; null where nothing was timed. */
export function durationMs(durations: ArrayLike<number>, part: number, at = 0): number | null {
  const ms = percentileMs(durations, part, at)
  return ms === null ? null : rounded(ms)
}

/** What documents say of durations. */
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
