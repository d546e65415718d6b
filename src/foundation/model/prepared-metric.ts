import type { Metric } from './metric.ts'
import type { Resource, Scope } from './resource.ts'

/**
 * A metric whose numbers are places in an array of values, so that it is made once and sent again and again:
 *
 * - `value`, `count`, `sum` and the `values` of a summary are places of values.
 * - `buckets` are places of cumulative counts, as `le` has them, the last one that of `+Inf`.
 * - `startUs` and `timeUs` are 0, or one more than the place of microseconds since the Unix epoch. 0 is: no start, and
 *   the time that is told when it is sent.
 * - Bounds and quantiles are themselves. There are no exemplars, and no point without a value.
 */
export type PlacedMetric = Metric & { readonly kind: Exclude<Metric['kind'], 'exponential_histogram'> }

/** One metric in its final form, encoded but for its numbers. */
export interface MetricTemplate {
  /** Data points. */
  readonly points: number
  readonly sizeBytes: number
  /**
   * Writes the numbers. Returns the encoded metric, valid until the next call; undefined where a histogram contradicts
   * itself (counts that fall, are no whole numbers, or are not known), and then nothing may be sent of it.
   */
  fill(values: Float64Array, timeUs: number): Uint8Array | undefined
}

/** A metric that passed everything that is done to metrics, as often as it is wanted. Made by an intake. */
export interface PreparedMetric {
  /** What it became, in parts that fit a request. */
  readonly parts: readonly {
    readonly resource: Resource
    readonly scope: Scope
    readonly template: MetricTemplate
  }[]
  /** Points that go no further, by reason: counted each time that it is sent. */
  readonly dropped: ReadonlyMap<string, number>
}

/**
 * `sent`: it was handed on, or its loss counted. `old`: what is done to metrics has changed, or it must be judged anew
 * because of its age; nothing was sent, prepare it again. `unfit`: the values contradict each other; nothing was sent.
 */
export type Sent = 'sent' | 'old' | 'unfit'

/** Where metrics enter the pipeline that come again and again with other numbers. */
export interface PreparedIntake {
  /** Undefined: what is done to it depends on more than its names and attributes, so that it must come whole each time. */
  prepare(resource: Resource, scope: Scope, metric: PlacedMetric): PreparedMetric | undefined
  /** `timeUs`: of points that have no time of their own. */
  send(prepared: PreparedMetric, values: Float64Array, timeUs: number): Sent
}
