// The selected part of the window: a range of intervals.

import type { ProfilesLine } from '../../../src/view/api/ui/documents.ts'

export type Interval = ProfilesLine['intervals'][number]

/** Both are included. */
export interface Chosen {
  readonly first: number
  readonly last: number
}

/** Milliseconds since the Unix epoch. */
export interface Range {
  readonly fromMs: number
  readonly toMs: number
}

/**
 * The intervals whose middle is between two times; if these are 0, or have left the window, the intervals of the last
 * `spanMs`, at least one. Undefined: there are no intervals.
 */
export function chosenIntervals(
  intervals: readonly Interval[],
  fromMs: number,
  toMs: number,
  spanMs: number,
): Chosen | undefined {
  if (intervals.length === 0) return undefined
  const last = intervals.length - 1
  const asked = toMs > 0 ? between(intervals, fromMs, toMs) : undefined
  return (
    asked ??
    between(intervals, intervals[last]!.to_ms - spanMs, Number.POSITIVE_INFINITY) ?? { first: last, last }
  )
}

function between(intervals: readonly Interval[], fromMs: number, toMs: number): Chosen | undefined {
  const isIn = (each: Interval) => middle(each) >= fromMs && middle(each) < toMs
  const first = intervals.findIndex(isIn)
  return first < 0 ? undefined : { first, last: intervals.findLastIndex(isIn) }
}

function middle({ from_ms, to_ms }: Interval): number {
  return (from_ms + to_ms) / 2
}

export function rangeOf(intervals: readonly Interval[], { first, last }: Chosen): Range {
  return { fromMs: intervals[first]!.from_ms, toMs: intervals[last]!.to_ms }
}

/** As many intervals just before, as far as they exist. */
export function intervalsBefore({ first, last }: Chosen): Chosen | undefined {
  return first === 0 ? undefined : { first: Math.max(0, first - (last - first + 1)), last: first - 1 }
}

/** The selection after an arrow key; `extend` keeps its other end. */
export function stepped({ first, last }: Chosen, step: number, extend: boolean, count: number): Chosen {
  const within = (at: number) => Math.max(0, Math.min(count - 1, at))
  if (!extend) {
    const at = within(step < 0 ? first + step : last + step)
    return { first: at, last: at }
  }
  return step < 0 ? { first: within(first + step), last } : { first, last: within(last + step) }
}

/** The range between two indexes, in either order. */
export function spanned(a: number, b: number): Chosen {
  return { first: Math.min(a, b), last: Math.max(a, b) }
}
