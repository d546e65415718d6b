import { percentileMs } from '../../window/duration-counts.ts'

/** What documents say of durations, in milliseconds; null where nothing was timed. */
export function percentilesOf(durations: ArrayLike<number>): {
  p50_ms: number | null
  p95_ms: number | null
  p99_ms: number | null
} {
  return {
    p50_ms: percentileMs(durations, 0.5),
    p95_ms: percentileMs(durations, 0.95),
    p99_ms: percentileMs(durations, 0.99),
  }
}
