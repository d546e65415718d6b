import type { Metric } from './metric.ts'
import type { Resource, Scope } from './resource.ts'

/**
 * A metric whose numbers are indexes into an array of values, so that it is built once and sent many times:
 *
 * - `value`, `count`, `sum` and the `values` of a summary are indexes.
 * - `buckets` are indexes of cumulative counts, like `le`; the last one is +Inf.
 * - `startUs` and `timeUs` are 0, or the index plus one of microseconds since the Unix epoch. 0 means no start, and for
 *   `timeUs` the time passed to `send`.
 * - Bounds and quantiles are literal. There are no exemplars, and no points without a value.
 */
export type PlacedMetric = Metric & { readonly kind: Exclude<Metric['kind'], 'exponential_histogram'> }

/** A metric in its final encoding, except for its numbers. */
export interface MetricTemplate {
  /** Data points. */
  readonly points: number
  readonly sizeBytes: number
  /**
   * Writes the numbers. Returns the encoded metric, valid until the next call; undefined if a histogram is inconsistent
   * (counts that decrease, are not whole numbers, or are missing), in which case it must not be sent.
   */
  fill(values: Float64Array, timeUs: number): Uint8Array | undefined
}

/** A metric that has passed all processing and can be sent repeatedly. Created by an intake. */
export interface PreparedMetric {
  /** The processed metric, in parts that each fit in a request. */
  readonly parts: readonly {
    readonly resource: Resource
    readonly scope: Scope
    readonly template: MetricTemplate
  }[]
  /** Points that processing drops, by reason: counted on each send. */
  readonly dropped: ReadonlyMap<string, number>
}

/**
 * `sent`: it was passed on, or its loss counted. `old`: the processing changed, or its age requires it to run again;
 * nothing was sent, prepare it again. `unfit`: the values are inconsistent; nothing was sent.
 */
export type Sent = 'sent' | 'old' | 'unfit'

/** Pipeline intake for metrics that recur with new numbers. */
export interface PreparedIntake {
  /** Undefined: its processing depends on more than names and attributes, so it must be sent whole each time. */
  prepare(resource: Resource, scope: Scope, metric: PlacedMetric): PreparedMetric | undefined
  /** `timeUs`: time of points without their own. */
  send(prepared: PreparedMetric, values: Float64Array, timeUs: number): Sent
}
