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

/** Counts of neighbouring buckets; the first of them has the index `offset`. */
export interface ExponentialBuckets {
  readonly offset: number
  readonly counts: ArrayLike<number>
}

/** The bucket with index i counts values above 2^(i / 2^scale), up to and including 2^((i + 1) / 2^scale). */
export interface ExponentialHistogramPoint {
  readonly attributes: Attributes
  readonly startUs: number
  readonly timeUs: number
  readonly count: number
  readonly sum: number
  /** -10 to 20. */
  readonly scale: number
  readonly zeroCount: number
  readonly positive: ExponentialBuckets
  readonly min?: number | undefined
  readonly max?: number | undefined
}

/** Points tell what came since `startUs`, each of them a part of its own. Without it they are cumulative. */
export type Temporality = 'delta' | undefined

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

/** `integer` tells whether its values go as integers or as doubles. */
export interface Sum extends Described {
  readonly kind: 'sum'
  readonly monotonic: boolean
  readonly integer: boolean
  readonly temporality?: Temporality
  readonly points: readonly NumberPoint[]
}

/** A histogram with explicit upper bounds. */
export interface Histogram extends Described {
  readonly kind: 'histogram'
  readonly temporality?: Temporality
  readonly bounds: readonly number[]
  readonly points: readonly HistogramPoint[]
}

/** A histogram whose bounds are powers of a base that each point chooses by its scale. Values are not negative. */
export interface ExponentialHistogram extends Described {
  readonly kind: 'exponential_histogram'
  readonly temporality?: Temporality
  readonly points: readonly ExponentialHistogramPoint[]
}

export type Metric = Gauge | Sum | Histogram | ExponentialHistogram
