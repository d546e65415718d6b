import { setFixed64, setMicrosAsNanos, Writer } from '../../../foundation/lib/protobuf.ts'
import type {
  Histogram,
  HistogramPoint,
  Metric,
  NumberPoint,
  SummaryPoint,
} from '../../../foundation/model/metric.ts'
import type { MetricTemplate } from '../../../foundation/model/prepared-metric.ts'
import { BackwardWriter } from './backward-writer.ts'
import { encodeAttributes } from './encode-attributes.ts'
import * as field from './metric-fields.ts'

/** Maximum exact count. */
const mostCounted = 2 ** 53

/**
 * Encodes a metric without its numbers (`PlacedMetric`). Undefined for metrics without such a form: exponential
 * histograms, sums of integers, points without a value or with exemplars, and metrics without points.
 *
 * `fill` returns the same bytes as the encoding of the metric with its numbers, except that four kinds of fields are
 * written even if they are 0, which is equivalent for a receiver: placed times, counts, and the sums and quantile
 * values of summaries.
 */
export function metricTemplate(metric: Metric): MetricTemplate | undefined {
  if (metric.points.length === 0 || metric.kind === 'exponential_histogram') return undefined
  if (metric.kind === 'sum' && metric.integer) return undefined
  for (const point of metric.points)
    if (point.noValue === true || ('exemplars' in point && point.exemplars.length > 0)) return undefined
  return new Encoder().template(metric)
}

/** Reused; contents are copied before the next use. */
const fields = new Writer(1024)
const whole = new BackwardWriter()

/**
 * Writes a metric from end to start: the distance of a number from the end is known when it is written, and does not
 * change afterwards. Lists contain distances, each followed by the places of its number.
 */
class Encoder {
  readonly #out = whole
  readonly #sentTimes: number[] = []
  readonly #times: number[] = []
  readonly #doubles: number[] = []
  readonly #counts: number[] = []
  /** Each with its own place and that of the bucket before it. */
  readonly #buckets: number[] = []
  /** Pairs of places that must hold the same number. */
  readonly #equal: number[] = []

  template(metric: Metric): MetricTemplate {
    const out = this.#out
    out.length = 0
    this.#fields(() => field.encodeMetadata(fields, metric))
    const data = out.length
    this.#fields(() => field.encodeAggregation(fields, metric))
    if (metric.kind === 'histogram') this.#histogram(metric)
    else if (metric.kind === 'summary') each(metric.points, point => this.#summaryPoint(point))
    else each(metric.points as readonly NumberPoint[], point => this.#numberPoint(point))
    out.header(dataFields[metric.kind] >>> 3, data)
    this.#fields(() => field.encodeDescription(fields, metric))
    out.header(field.metrics >>> 3, 0)
    const size = out.length
    return new FilledTemplate(metric.points.length, new Uint8Array(out.written()), [
      offsets(this.#sentTimes, 1, size),
      offsets(this.#times, 2, size),
      offsets(this.#doubles, 2, size),
      offsets(this.#counts, 2, size),
      offsets(this.#buckets, 3, size),
      this.#equal,
    ])
  }

  #numberPoint(point: NumberPoint): void {
    const before = this.#out.length
    this.#fields(() => encodeAttributes(fields, field.numberAttributes, point.attributes))
    this.#number(field.asDouble, this.#doubles, point.value)
    this.#end(point, before)
  }

  #histogram({ points, bounds }: Histogram): void {
    each(points, point => {
      const before = this.#out.length
      this.#fields(() => {
        if (bounds.length > 0) fields.packedDoubles(field.explicitBounds, bounds)
        encodeAttributes(fields, field.histogramAttributes, point.attributes)
      })
      this.#bucketCounts(point)
      if (point.sum !== undefined) this.#number(field.total, this.#doubles, point.sum)
      this.#number(field.count, this.#counts, point.count)
      this.#end(point, before)
    })
  }

  #bucketCounts({ count, buckets }: HistogramPoint): void {
    const { length } = buckets
    if (length === 0) return
    const out = this.#out
    const before = out.length
    for (let i = length - 1; i >= 0; i--) {
      out.double(0)
      if (i > 0) this.#buckets.push(out.length, buckets[i]!, buckets[i - 1]!)
      else this.#counts.push(out.length, buckets[0]!)
    }
    out.header(field.bucketCounts >>> 3, before)
    if (buckets[length - 1] !== count) this.#equal.push(buckets[length - 1]!, count)
  }

  #summaryPoint(point: SummaryPoint): void {
    const out = this.#out
    const before = out.length
    this.#fields(() => encodeAttributes(fields, field.numberAttributes, point.attributes))
    for (let i = point.quantiles.length - 1; i >= 0; i--) {
      const quantile = out.length
      this.#number(field.quantileValue, this.#doubles, point.values[i]!)
      const of = point.quantiles[i]!
      if (!Object.is(of, 0)) this.#fields(() => fields.double(field.quantile, of))
      out.header(field.quantileValues >>> 3, quantile)
    }
    this.#number(field.total, this.#doubles, point.sum)
    this.#number(field.count, this.#counts, point.count)
    this.#end(point, before)
  }

  /** Writes the times, which are the first fields of a point, and its header. */
  #end({ startUs, timeUs }: Metric['points'][number], before: number): void {
    if (timeUs > 0) this.#number(field.time, this.#times, timeUs - 1)
    else {
      this.#out.double(0)
      this.#sentTimes.push(this.#out.length)
      this.#out.varint(field.time)
    }
    if (startUs > 0) this.#number(field.startTime, this.#times, startUs - 1)
    this.#out.header(field.dataPoints >>> 3, before)
  }

  /** Writes a 64-bit field whose number comes from a place. */
  #number(key: number, list: number[], place: number): void {
    this.#out.double(0)
    list.push(this.#out.length, place)
    this.#out.varint(key)
  }

  /** Writes fields that never change. */
  #fields(write: () => void): void {
    fields.clear()
    write()
    this.#out.raw(fields.written())
  }
}

const dataFields = {
  gauge: field.gauge,
  sum: field.sum,
  histogram: field.histogram,
  exponential_histogram: field.exponentialHistogram,
  summary: field.summary,
}

function each<P>(points: readonly P[], write: (point: P) => void): void {
  for (let i = points.length - 1; i >= 0; i--) write(points[i]!)
}

/** Turns distances from the end (the first of each `width` numbers) into offsets. */
function offsets(list: number[], width: number, size: number): number[] {
  for (let i = 0; i < list.length; i += width) list[i] = size - list[i]!
  return list
}

/** Bytes, and the positions of the numbers in them. */
class FilledTemplate implements MetricTemplate {
  readonly points: number
  readonly #bytes: Uint8Array
  readonly #view: DataView
  /** All lists of the encoder, concatenated: there are many templates, so each has few objects. */
  readonly #program: Uint32Array
  /** Ends of the lists in `#program`. */
  readonly #sentTimesEnd: number
  readonly #timesEnd: number
  readonly #doublesEnd: number
  readonly #countsEnd: number
  readonly #bucketsEnd: number

  constructor(points: number, bytes: Uint8Array, lists: readonly number[][]) {
    this.points = points
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    this.#program = Uint32Array.from(lists.flat())
    const [sentTimes, times, doubles, counts, buckets] = lists as [
      number[],
      number[],
      number[],
      number[],
      number[],
    ]
    this.#sentTimesEnd = sentTimes.length
    this.#timesEnd = this.#sentTimesEnd + times.length
    this.#doublesEnd = this.#timesEnd + doubles.length
    this.#countsEnd = this.#doublesEnd + counts.length
    this.#bucketsEnd = this.#countsEnd + buckets.length
  }

  get sizeBytes(): number {
    return this.#bytes.length
  }

  fill(values: Float64Array, timeUs: number): Uint8Array | undefined {
    if (!this.#fillCounts(values)) return undefined
    this.#fillTimes(values, timeUs)
    const program = this.#program
    const view = this.#view
    const end = this.#doublesEnd
    for (let i = this.#timesEnd; i < end; i += 2) view.setFloat64(program[i]!, values[program[i + 1]!]!, true)
    return this.#bytes
  }

  #fillTimes(values: Float64Array, timeUs: number): void {
    const program = this.#program
    const view = this.#view
    const sent = this.#sentTimesEnd
    if (sent > 0) {
      setMicrosAsNanos(view, program[0]!, timeUs)
      const low = view.getUint32(program[0]!, true)
      const high = view.getUint32(program[0]! + 4, true)
      for (let i = 1; i < sent; i++) {
        const at = program[i]!
        view.setUint32(at, low, true)
        view.setUint32(at + 4, high, true)
      }
    }
    const end = this.#timesEnd
    for (let i = sent; i < end; i += 2) setMicrosAsNanos(view, program[i]!, values[program[i + 1]!]!)
  }

  /** Writes all counts. False if they are not valid for a histogram. */
  #fillCounts(values: Float64Array): boolean {
    const program = this.#program
    const view = this.#view
    const countsEnd = this.#countsEnd
    const bucketsEnd = this.#bucketsEnd
    let i = this.#doublesEnd
    for (; i < countsEnd; i += 2) {
      if (!writeCount(view, program[i]!, values[program[i + 1]!]!)) return false
    }
    for (; i < bucketsEnd; i += 3) {
      const count = values[program[i + 1]!]! - values[program[i + 2]!]!
      if (!writeCount(view, program[i]!, count)) return false
    }
    for (; i < program.length; i += 2) if (values[program[i]!] !== values[program[i + 1]!]) return false
    return true
  }
}

/** Writes a count as `fixed64`. False if the value is not a count. */
function writeCount(view: DataView, at: number, value: number): boolean {
  const small = value | 0
  // Fast path for nearly all counts, which halves the time (measured).
  if (small === value && small >= 0) {
    view.setInt32(at, small, true)
    view.setInt32(at + 4, 0, true)
    return true
  }
  if (!(value >= 0 && value <= mostCounted && Math.floor(value) === value)) return false
  setFixed64(view, at, value)
  return true
}
