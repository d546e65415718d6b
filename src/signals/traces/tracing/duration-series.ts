// One series of a duration metric: its counts, in the two forms of histograms.

import { type BucketCounts, ExponentialBucketCounts } from '../../../foundation/lib/exponential-buckets.ts'
import type { Attributes } from '../../../foundation/model/attributes.ts'
import type { DurationDesc } from '../../../foundation/model/call.ts'
import type { Metric } from '../../../foundation/model/metric.ts'

/** Buckets of an exponential histogram and its initial scale, both as in the SDKs' defaults. */
const mostBuckets = 160
const startScale = 8

/** The bounds of a metric, prepared for counting. */
export class Scale {
  readonly boundsNs: Float64Array
  /** Geometric middle of each bucket in seconds. The first and last, which have one bound, are treated as octaves. */
  readonly middles: Float64Array

  constructor(bounds: readonly number[]) {
    this.boundsNs = Float64Array.from(bounds, bound => Math.round(bound * 1e9))
    const edges = bounds.length > 0 ? [bounds[0]! / 2, ...bounds, bounds.at(-1)! * 2] : [1, 1]
    this.middles = Float64Array.from(edges.slice(1), (edge, i) => Math.sqrt(edge * edges[i]!))
  }
}

/** Recording into a series allocates nothing, except for buckets on first use. */
export abstract class DurationSeries {
  readonly attributes: Attributes
  readonly startUs: number
  count = 0
  sumNs = 0
  /** The part of the counts that was already exported. */
  #exportedCount = 0
  #exportedSumNs = 0

  constructor(attributes: Attributes, startUs: number) {
    this.attributes = attributes
    this.startUs = startUs
  }

  /** Calls counted and not yet exported. */
  get unreported(): number {
    return this.count - this.#exportedCount
  }

  abstract observe(durationNs: number): void
  /** `buckets` are by the bounds of the metric. */
  abstract merge(count: number, sumNs: number, buckets: ArrayLike<number>): void

  /** Marks everything counted as exported. */
  markReported(): void {
    this.#exportedCount = this.count
    this.#exportedSumNs = this.sumNs
  }

  /** Moves the unexported counts to another series of its metric, because this one is removed. */
  handOver(to: this): void {
    to.count += this.count - this.#exportedCount
    to.sumNs += this.sumNs - this.#exportedSumNs
  }
}

/** How the series of a metric count and are exported. */
export interface HistogramForm<S extends DurationSeries = DurationSeries> {
  create(attributes: Attributes, startUs: number, scale: Scale): S
  metric(desc: DurationDesc, series: readonly S[], timeUs: number): Metric
}

class ExplicitSeries extends DurationSeries {
  readonly buckets: Float64Array
  #exported: Float64Array | undefined
  readonly #boundsNs: Float64Array

  constructor(attributes: Attributes, startUs: number, { boundsNs }: Scale) {
    super(attributes, startUs)
    this.#boundsNs = boundsNs
    this.buckets = new Float64Array(boundsNs.length + 1)
  }

  override observe(durationNs: number): void {
    const boundsNs = this.#boundsNs
    let bucket = 0
    while (bucket < boundsNs.length && durationNs > boundsNs[bucket]!) bucket++
    this.buckets[bucket]!++
    this.count++
    this.sumNs += durationNs
  }

  override merge(count: number, sumNs: number, buckets: ArrayLike<number>): void {
    for (let i = 0; i < this.buckets.length; i++) this.buckets[i]! += buckets[i] ?? 0
    this.count += count
    this.sumNs += sumNs
  }

  override markReported(): void {
    super.markReported()
    this.#exported ??= new Float64Array(this.buckets.length)
    this.#exported.set(this.buckets)
  }

  override handOver(to: this): void {
    super.handOver(to)
    for (let i = 0; i < this.buckets.length; i++)
      to.buckets[i]! += this.buckets[i]! - (this.#exported?.[i] ?? 0)
  }
}

/** By the bounds of the metric. */
export const explicit: HistogramForm<ExplicitSeries> = {
  create: (attributes, startUs, scale) => new ExplicitSeries(attributes, startUs, scale),
  metric: ({ name, description, bounds }, series, timeUs) => ({
    kind: 'histogram',
    name,
    description,
    unit: 's',
    bounds,
    points: series.map(({ attributes, startUs, count, sumNs, buckets }) => ({
      attributes,
      startUs,
      timeUs,
      count,
      sum: sumNs / 1e9,
      buckets,
    })),
  }),
}

class ExponentialSeries extends DurationSeries {
  zeroCount = 0
  readonly buckets = new ExponentialBucketCounts(startScale, mostBuckets)
  #toldZeroCount = 0
  #exported: BucketCounts | undefined
  readonly #middles: Float64Array

  constructor(attributes: Attributes, startUs: number, { middles }: Scale) {
    super(attributes, startUs)
    this.#middles = middles
  }

  override observe(durationNs: number): void {
    if (durationNs > 0) this.buckets.add(durationNs / 1e9, 1)
    else this.zeroCount++
    this.count++
    this.sumNs += durationNs
  }

  /** Values counted by other bounds are put in the middle of their buckets, as nothing more precise is known. */
  override merge(count: number, sumNs: number, buckets: ArrayLike<number>): void {
    const middles = this.#middles
    for (let i = 0; i < middles.length; i++) {
      const times = buckets[i] ?? 0
      if (times > 0) this.buckets.add(middles[i]!, times)
    }
    this.count += count
    this.sumNs += sumNs
  }

  override markReported(): void {
    super.markReported()
    this.#toldZeroCount = this.zeroCount
    const { scale, offset, counts } = this.buckets
    this.#exported = { scale, offset, counts: counts.slice() }
  }

  override handOver(to: this): void {
    super.handOver(to)
    to.zeroCount += this.zeroCount - this.#toldZeroCount
    const { scale, offset } = this.buckets
    for (const [i, times] of this.buckets.since(this.#exported).entries())
      if (times > 0) to.buckets.add(2 ** ((offset + i + 0.5) * 2 ** -scale), times)
  }
}

/** With bounds that each series chooses from its values. */
export const exponential: HistogramForm<ExponentialSeries> = {
  create: (attributes, startUs, scale) => new ExponentialSeries(attributes, startUs, scale),
  metric: ({ name, description }, series, timeUs) => ({
    kind: 'exponential_histogram',
    name,
    description,
    unit: 's',
    points: series.map(({ attributes, startUs, count, sumNs, zeroCount, buckets }) => ({
      attributes,
      startUs,
      timeUs,
      count,
      sum: sumNs / 1e9,
      scale: buckets.scale,
      zeroCount,
      positive: { offset: buckets.offset, counts: buckets.counts },
    })),
  }),
}
