import type { Attributes } from './attributes.ts'

/** A measurement that stands for those that went into a point (Exemplar of metrics.proto). */
export interface Exemplar {
  readonly timeUs: number
  readonly value: number
  /** 16 and 8 bytes; empty where there is none. */
  readonly traceId: Uint8Array
  readonly spanId: Uint8Array
  /** What of the measurement is no attribute of its series. */
  readonly attributes: Attributes
}

/** What all points have. `startUs` and `timeUs` are microseconds since the Unix epoch; 0 is not known. */
interface AnyPoint {
  readonly attributes: Attributes
  readonly startUs: number
  readonly timeUs: number
  /** The series ended: the point says so and has no value (`FLAG_NO_RECORDED_VALUE`). */
  readonly noValue?: boolean
}

/** Of one series at one time. */
export interface NumberPoint extends AnyPoint {
  readonly value: number
  readonly exemplars?: readonly Exemplar[]
}

export interface HistogramPoint extends AnyPoint {
  readonly count: number
  /** Undefined: the source tells none. */
  readonly sum: number | undefined
  readonly exemplars?: readonly Exemplar[]
  /** One more than there are bounds; the last is the overflow bucket. */
  readonly buckets: ArrayLike<number>
}

/** Counts of neighbouring buckets; the first of them has the index `offset`. */
export interface ExponentialBuckets {
  readonly offset: number
  readonly counts: ArrayLike<number>
}

/** The bucket with index i counts values above 2^(i / 2^scale), up to and including 2^((i + 1) / 2^scale). */
export interface ExponentialHistogramPoint extends AnyPoint {
  readonly count: number
  readonly sum: number
  /** -10 to 20. */
  readonly scale: number
  readonly zeroCount: number
  readonly positive: ExponentialBuckets
  readonly min?: number | undefined
  readonly max?: number | undefined
}

/** Quantiles as a source computed them, for those who take them from elsewhere. */
export interface SummaryPoint extends AnyPoint {
  readonly count: number
  readonly sum: number
  readonly quantiles: ArrayLike<number>
  /** One for each quantile. */
  readonly values: ArrayLike<number>
}

/** Points tell what came since `startUs`, each of them a part of its own. Without it they are cumulative. */
export type Temporality = 'delta' | undefined

interface Described {
  readonly name: string
  readonly description: string
  /** UCUM, for example `s`, `By`, `{request}`. */
  readonly unit: string
  /** About the metric, not about its points, for example `prometheus.type`. */
  readonly metadata?: Attributes | undefined
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

export interface Summary extends Described {
  readonly kind: 'summary'
  readonly points: readonly SummaryPoint[]
}

export type Metric = Gauge | Sum | Histogram | ExponentialHistogram | Summary
