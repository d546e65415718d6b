import type { Attributes } from './attributes.ts'

/** A sample measurement of a point (Exemplar of metrics.proto). */
export interface Exemplar {
  readonly timeUs: number
  readonly value: number
  /** 16 and 8 bytes; empty if there is no span. */
  readonly traceId: Uint8Array
  readonly spanId: Uint8Array
  /** Attributes of the measurement that are not in its series. */
  readonly attributes: Attributes
}

/** Common fields of all points. `startUs` and `timeUs` are microseconds since the Unix epoch; 0: unknown. */
interface AnyPoint {
  readonly attributes: Attributes
  readonly startUs: number
  readonly timeUs: number
  /** The series ended: the point has no value (`FLAG_NO_RECORDED_VALUE`). */
  readonly noValue?: boolean
}

export interface NumberPoint extends AnyPoint {
  readonly value: number
  readonly exemplars?: readonly Exemplar[]
}

export interface HistogramPoint extends AnyPoint {
  readonly count: number
  /** Undefined: the source reports none. */
  readonly sum: number | undefined
  readonly exemplars?: readonly Exemplar[]
  /** One more than there are bounds; the last one is the overflow bucket. */
  readonly buckets: ArrayLike<number>
}

/** Counts of consecutive buckets; the first has the index `offset`. */
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

/** Quantiles as computed by a source; only passed through. */
export interface SummaryPoint extends AnyPoint {
  readonly count: number
  readonly sum: number
  readonly quantiles: ArrayLike<number>
  /** One for each quantile. */
  readonly values: ArrayLike<number>
}

/** `delta`: each point covers the time since its `startUs`. Undefined: cumulative. */
export type Temporality = 'delta' | undefined

interface Described {
  readonly name: string
  readonly description: string
  /** UCUM, for example `s`, `By`, `{request}`. */
  readonly unit: string
  /** Describes the metric rather than its points, for example `prometheus.type`. */
  readonly metadata?: Attributes | undefined
}

export interface Gauge extends Described {
  readonly kind: 'gauge'
  readonly points: readonly NumberPoint[]
}

/** `integer`: values are encoded as integers, else as doubles. */
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

/** A histogram whose bounds are powers of a base that each point selects by its scale. Values are not negative. */
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
