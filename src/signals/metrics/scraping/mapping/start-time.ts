import type { DerivedNumber } from './mapped-family.ts'

/**
 * The start that a sample `_created` tells in seconds, in microseconds since the Unix epoch. 0 where it tells none, or
 * one later than the point that it belongs to (0: not known), as happens where clocks differ: a point cannot begin
 * after it ended.
 */
export function startUsOf(seconds: number, timeUs: number): number {
  const startUs = Math.round(seconds * 1e6)
  if (!(startUs > 0) || startUs > Number.MAX_SAFE_INTEGER) return 0
  return timeUs !== 0 && startUs > timeUs ? 0 : startUs
}

/**
 * Computes the numbers of placed metrics that stand on no line, after each reading: those of `starts` go to the places
 * from `startsAt` on, in their order. `timeUs`: of points that have no time of their own.
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
