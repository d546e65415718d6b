import type { DerivedNumber } from './mapped-family.ts'

/**
 * Start from a `_created` sample in seconds, as microseconds since the Unix epoch. 0 if invalid, or later than its
 * point (0: unknown), as with different clocks: a point cannot start after its end.
 */
export function startUsOf(seconds: number, timeUs: number): number {
  const startUs = Math.round(seconds * 1e6)
  if (!(startUs > 0) || startUs > Number.MAX_SAFE_INTEGER) return 0
  return timeUs !== 0 && startUs > timeUs ? 0 : startUs
}

/**
 * Computes the derived numbers of placed metrics after each reading: those of `starts` go to the places from `startsAt`
 * on, in order. `timeUs`: time of points without their own.
 */
export function writeStarts(
  starts: readonly DerivedNumber[],
  values: Float64Array,
  startsAt: number,
  timeUs: number,
): void {
  for (let i = 0; i < starts.length; i++) {
    const { from, time } = starts[i]!
    values[startsAt + i] = from < 0 ? 0 : startUsOf(values[from]!, time === 0 ? timeUs : values[time - 1]!)
  }
}
