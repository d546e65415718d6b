import { fieldKey, fitsInt64, WireType, type Writer } from '../../../foundation/lib/protobuf.ts'
import type {
  Exemplar,
  ExponentialBuckets,
  ExponentialHistogramPoint,
  HistogramPoint,
  Metric,
  NumberPoint,
  SummaryPoint,
} from '../../../foundation/model/metric.ts'
import { encodeAttributes, encodeId } from './encode-attributes.ts'
import * as field from './metric-fields.ts'
import { metricTemplate } from './metric-template.ts'
import type { Encoding } from './request.ts'

const exponentialAttributes = fieldKey(1, WireType.bytes)
const scale = fieldKey(6, WireType.varint)
const zeroCount = fieldKey(7, WireType.fixed64)
const positive = fieldKey(8, WireType.bytes)
const minimum = fieldKey(12, WireType.fixed64)
const maximum = fieldKey(13, WireType.fixed64)
const offset = fieldKey(1, WireType.varint)
const exponentialCounts = fieldKey(2, WireType.bytes)

const filteredAttributes = fieldKey(7, WireType.bytes)
const exemplarTime = fieldKey(2, WireType.fixed64)
const exemplarValue = fieldKey(3, WireType.fixed64)
const exemplarSpanId = fieldKey(4, WireType.bytes)
const exemplarTraceId = fieldKey(5, WireType.bytes)

/** Estimated sizes. */
const usualNumberPoint = 100
const usualHistogramPoint = 400
const usualExemplar = 60
/** A double with its key. */
const doubleBytes = 9

/** Encoding of metrics (metrics.proto). Items are data points; a metric without points is not sent. */
export const metricEncoding: Encoding<Metric> = {
  signal: 'metrics',
  encode: encodeMetric,
  template: metricTemplate,
}

function encodeMetric(out: Writer, metric: Metric): number {
  const points = metric.points.length
  if (points === 0) return 0
  const small = metric.kind === 'gauge' || metric.kind === 'sum'
  const expected = points * (small ? usualNumberPoint : usualHistogramPoint)
  out.open(field.metrics, expected)
  field.encodeDescription(out, metric)
  if (metric.kind === 'gauge') {
    out.open(field.gauge, expected)
    for (const point of metric.points) encodeNumberPoint(out, point, false)
  } else if (metric.kind === 'sum') {
    out.open(field.sum, expected)
    for (const point of metric.points) encodeNumberPoint(out, point, metric.integer)
  } else if (metric.kind === 'histogram') {
    out.open(field.histogram, expected)
    for (const point of metric.points) encodeHistogramPoint(out, point, metric.bounds)
  } else if (metric.kind === 'exponential_histogram') {
    out.open(field.exponentialHistogram, expected)
    for (const point of metric.points) encodeExponentialPoint(out, point)
  } else {
    out.open(field.summary, expected)
    for (const point of metric.points) encodeSummaryPoint(out, point)
  }
  field.encodeAggregation(out, metric)
  out.close()
  field.encodeMetadata(out, metric)
  out.close()
  return points
}

function encodeTimes(out: Writer, { startUs, timeUs }: Metric['points'][number]): void {
  if (startUs !== 0) out.microsAsNanos(field.startTime, startUs)
  if (timeUs !== 0) out.microsAsNanos(field.time, timeUs)
}

function encodeNumberPoint(out: Writer, point: NumberPoint, integer: boolean): void {
  const { value } = point
  out.open(field.dataPoints, usualNumberPoint)
  encodeTimes(out, point)
  if (point.noValue === true) out.int(field.numberFlags, field.noRecordedValue)
  else {
    // A value that does not fit a 64-bit integer stays a double rather than becoming a wrong integer.
    if (integer && fitsInt64(value)) out.fixed64(field.asInt, value)
    else out.double(field.asDouble, value)
    if (point.exemplars !== undefined) encodeExemplars(out, field.numberExemplars, point.exemplars)
  }
  encodeAttributes(out, field.numberAttributes, point.attributes)
  out.close()
}

function encodeHistogramPoint(out: Writer, point: HistogramPoint, bounds: readonly number[]): void {
  out.open(field.dataPoints, usualHistogramPoint)
  encodeTimes(out, point)
  if (point.noValue === true) out.int(field.histogramFlags, field.noRecordedValue)
  else {
    if (point.count !== 0) out.fixed64(field.count, point.count)
    if (point.sum !== undefined) out.double(field.total, point.sum)
    if (point.buckets.length > 0) out.packedFixed64(field.bucketCounts, point.buckets)
    if (bounds.length > 0) out.packedDoubles(field.explicitBounds, bounds)
    if (point.exemplars !== undefined) encodeExemplars(out, field.histogramExemplars, point.exemplars)
  }
  encodeAttributes(out, field.histogramAttributes, point.attributes)
  out.close()
}

function encodeExponentialPoint(out: Writer, point: ExponentialHistogramPoint): void {
  out.open(field.dataPoints, usualHistogramPoint)
  encodeAttributes(out, exponentialAttributes, point.attributes)
  encodeTimes(out, point)
  if (point.noValue === true) out.int(field.histogramFlags, field.noRecordedValue)
  else {
    if (point.count !== 0) out.fixed64(field.count, point.count)
    out.double(field.total, point.sum)
    if (point.scale !== 0) out.int(scale, zigzag(point.scale))
    if (point.zeroCount !== 0) out.fixed64(zeroCount, point.zeroCount)
    if (point.positive.counts.length > 0) encodeBuckets(out, point.positive)
    if (point.min !== undefined) out.double(minimum, point.min)
    if (point.max !== undefined) out.double(maximum, point.max)
  }
  out.close()
}

function encodeBuckets(out: Writer, buckets: ExponentialBuckets): void {
  const { counts } = buckets
  out.open(positive, 2 * counts.length)
  if (buckets.offset !== 0) out.int(offset, zigzag(buckets.offset))
  out.open(exponentialCounts, counts.length)
  for (let i = 0; i < counts.length; i++) out.element(counts[i]!)
  out.close()
  out.close()
}

function encodeSummaryPoint(out: Writer, point: SummaryPoint): void {
  const { quantiles, values } = point
  out.open(field.dataPoints, usualHistogramPoint)
  encodeTimes(out, point)
  if (point.noValue === true) out.int(field.numberFlags, field.noRecordedValue)
  else {
    if (point.count !== 0) out.fixed64(field.count, point.count)
    encodeDouble(out, field.total, point.sum)
    for (let i = 0; i < quantiles.length; i++) {
      out.open(field.quantileValues, 2 * doubleBytes)
      encodeDouble(out, field.quantile, quantiles[i]!)
      encodeDouble(out, field.quantileValue, values[i]!)
      out.close()
    }
  }
  encodeAttributes(out, field.numberAttributes, point.attributes)
  out.close()
}

/** A double without field presence, which only summaries have: 0 is not written, unless it is negative. */
function encodeDouble(out: Writer, key: number, value: number): void {
  if (!Object.is(value, 0)) out.double(key, value)
}

function encodeExemplars(out: Writer, key: number, exemplars: readonly Exemplar[]): void {
  for (let i = 0; i < exemplars.length; i++) {
    const { timeUs, value, traceId, spanId, attributes } = exemplars[i]!
    out.open(key, usualExemplar)
    if (timeUs !== 0) out.microsAsNanos(exemplarTime, timeUs)
    out.double(exemplarValue, value)
    encodeId(out, exemplarSpanId, spanId)
    encodeId(out, exemplarTraceId, traceId)
    encodeAttributes(out, filteredAttributes, attributes)
    out.close()
  }
}

/** A 32-bit integer as `sint32`: small numbers are short, whatever their sign. */
function zigzag(value: number): number {
  return ((value << 1) ^ (value >> 31)) >>> 0
}
