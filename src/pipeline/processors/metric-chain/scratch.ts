import { Attributes } from '../../../foundation/model/attributes.ts'
import type {
  Exemplar,
  ExponentialBuckets,
  ExponentialHistogramPoint,
  HistogramPoint,
  Metric,
  NumberPoint,
  SummaryPoint,
  Temporality,
} from '../../../foundation/model/metric.ts'

/** A point of any kind of metric. */
export type Point = Metric['points'][number] | ScratchPoint

const none: readonly number[] = []
export const noExemplars: readonly Exemplar[] = []

/** A reusable point of any kind: only the fields of its metric's kind are valid. */
export class ScratchPoint implements NumberPoint, HistogramPoint {
  attributes: Attributes
  startUs = 0
  timeUs = 0
  noValue = false
  value = 0
  count = 0
  sum: number | undefined = 0
  exemplars: readonly Exemplar[] = noExemplars
  buckets: ArrayLike<number> = none
  scale = 0
  zeroCount = 0
  positive: ExponentialBuckets = { offset: 0, counts: none }
  min: number | undefined = undefined
  max: number | undefined = undefined
  quantiles: ArrayLike<number> = none
  values: ArrayLike<number> = none
  /** Own attributes, for changes without changing the source's. */
  readonly copied = new Attributes()
  /** Own buckets, for differences; grows as needed. */
  readonly ownBuckets: number[] = []
  readonly ownPositive = { offset: 0, counts: this.ownBuckets }

  constructor() {
    this.attributes = this.copied
  }

  /** Takes over a point without its attributes. Buckets are only referenced. */
  take(kind: Metric['kind'], point: Point): void {
    this.startUs = point.startUs
    this.timeUs = point.timeUs
    this.noValue = point.noValue === true
    if (kind === 'histogram') this.#takeHistogram(point as HistogramPoint)
    else if (kind === 'exponential_histogram') this.#takeExponential(point as ExponentialHistogramPoint)
    else if (kind === 'summary') this.#takeSummary(point as SummaryPoint)
    else this.#takeNumber(point as NumberPoint)
  }

  copyAttributes(from: Attributes): void {
    const { copied } = this
    const { keys, values, size } = from
    copied.clear()
    for (let i = 0; i < size; i++) copied.add(keys[i]!, values[i]!)
    this.attributes = copied
  }

  /** Releases objects of the source. */
  release(): void {
    this.attributes = this.copied
    this.copied.forget()
    this.exemplars = noExemplars
    this.buckets = none
    this.positive = this.ownPositive
    this.quantiles = none
    this.values = none
  }

  #takeNumber({ value, exemplars }: NumberPoint): void {
    this.value = value
    this.exemplars = exemplars ?? noExemplars
  }

  #takeHistogram({ count, sum, buckets, exemplars }: HistogramPoint): void {
    this.count = count
    this.sum = sum
    this.buckets = buckets
    this.exemplars = exemplars ?? noExemplars
  }

  #takeSummary({ count, sum, quantiles, values }: SummaryPoint): void {
    this.count = count
    this.sum = sum
    this.quantiles = quantiles
    this.values = values
  }

  #takeExponential(point: ExponentialHistogramPoint): void {
    this.count = point.count
    this.sum = point.sum
    this.scale = point.scale
    this.zeroCount = point.zeroCount
    this.positive = point.positive
    this.min = point.min
    this.max = point.max
  }
}

/** A reusable metric of any kind. */
export class ScratchMetric {
  kind: Metric['kind'] = 'gauge'
  name = ''
  description = ''
  unit = ''
  metadata: Attributes | undefined = undefined
  monotonic = false
  integer = false
  bounds: readonly number[] = none
  temporality: Temporality = undefined
  readonly points: ScratchPoint[] = []
  readonly #shelf: ScratchPoint[] = []

  /** Takes over a metric without its points. */
  take(metric: Metric, temporality: Temporality): void {
    this.kind = metric.kind
    this.name = metric.name
    this.description = metric.description
    this.unit = metric.unit
    this.metadata = metric.metadata
    this.monotonic = metric.kind === 'sum' && metric.monotonic
    this.integer = metric.kind === 'sum' && metric.integer
    this.bounds = metric.kind === 'histogram' ? metric.bounds : none
    this.temporality = temporality
    this.points.length = 0
  }

  /** The point that `keep` would add. */
  get next(): ScratchPoint {
    const at = this.points.length
    let point = this.#shelf[at]
    if (point === undefined) {
      point = new ScratchPoint()
      this.#shelf.push(point)
    }
    return point
  }

  keep(point: ScratchPoint): void {
    this.points.push(point)
  }

  /** Removes the points and their references. */
  empty(): void {
    for (let i = 0; i < this.points.length; i++) this.points[i]!.release()
    this.points.length = 0
  }

  /** Valid until it is filled again. All fields of its kind are set. */
  get metric(): Metric {
    return this as unknown as Metric
  }
}
