import type { Attributes } from './attributes.ts'

/** Of one series at one time. `startUs` and `timeUs` are microseconds since the Unix epoch. */
export interface NumberPoint {
  readonly attributes: Attributes
  readonly startUs: number
  readonly timeUs: number
  readonly value: number
}

export interface HistogramPoint {
  readonly attributes: Attributes
  readonly startUs: number
  readonly timeUs: number
  readonly count: number
  readonly sum: number
  /** One more than there are bounds; the last is the overflow bucket. */
  readonly buckets: ArrayLike<number>
}

interface Described {
  readonly name: string
  readonly description: string
  /** UCUM, for example `s`, `By`, `{request}`. */
  readonly unit: string
}

export interface Gauge extends Described {
  readonly kind: 'gauge'
  readonly points: readonly NumberPoint[]
}

/** A cumulative sum. `integer` tells whether its values go as integers or as doubles. */
export interface Sum extends Described {
  readonly kind: 'sum'
  readonly monotonic: boolean
  readonly integer: boolean
  readonly points: readonly NumberPoint[]
}

/** A cumulative histogram with explicit upper bounds. */
export interface Histogram extends Described {
  readonly kind: 'histogram'
  readonly bounds: readonly number[]
  readonly points: readonly HistogramPoint[]
}

export type Metric = Gauge | Sum | Histogram
