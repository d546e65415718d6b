import { fieldKey, fitsInt64, WireType, type Writer } from '../../lib/protobuf.ts'
import type {
  ExponentialBuckets,
  ExponentialHistogram,
  ExponentialHistogramPoint,
  Gauge,
  Histogram,
  HistogramPoint,
  Metric,
  NumberPoint,
  Sum,
  Temporality,
} from '../../model/metric.ts'
import { encodeAttributes } from './encode-attributes.ts'
import type { Encoding } from './request.ts'

const metrics = fieldKey(2, WireType.bytes)

const name = fieldKey(1, WireType.bytes)
const description = fieldKey(2, WireType.bytes)
const unit = fieldKey(3, WireType.bytes)
const gauge = fieldKey(5, WireType.bytes)
const sum = fieldKey(7, WireType.bytes)
const histogram = fieldKey(9, WireType.bytes)
const exponentialHistogram = fieldKey(10, WireType.bytes)

const dataPoints = fieldKey(1, WireType.bytes)
const aggregationTemporality = fieldKey(2, WireType.varint)
const isMonotonic = fieldKey(3, WireType.varint)
/** Numbers of AggregationTemporality. */
const delta = 1
const cumulative = 2

/** All kinds of points have their times at these numbers. */
const startTime = fieldKey(2, WireType.fixed64)
const time = fieldKey(3, WireType.fixed64)

const asDouble = fieldKey(4, WireType.fixed64)
const asInt = fieldKey(6, WireType.fixed64)
const numberAttributes = fieldKey(7, WireType.bytes)

/** Both kinds of histograms have these two. */
const count = fieldKey(4, WireType.fixed64)
const total = fieldKey(5, WireType.fixed64)
const bucketCounts = fieldKey(6, WireType.bytes)
const explicitBounds = fieldKey(7, WireType.bytes)
const histogramAttributes = fieldKey(9, WireType.bytes)

const exponentialAttributes = fieldKey(1, WireType.bytes)
const scale = fieldKey(6, WireType.varint)
const zeroCount = fieldKey(7, WireType.fixed64)
const positive = fieldKey(8, WireType.bytes)
const minimum = fieldKey(12, WireType.fixed64)
const maximum = fieldKey(13, WireType.fixed64)
const offset = fieldKey(1, WireType.varint)
const exponentialCounts = fieldKey(2, WireType.bytes)

/** Guesses of sizes, which only have to be near. */
const usualNumberPoint = 100
const usualHistogramPoint = 400

/** Metrics as metrics.proto has them. They count by data points; a metric without any is not sent. */
export const metricEncoding: Encoding<Metric> = { signal: 'metrics', encode: encodeMetric }

function encodeMetric(out: Writer, metric: Metric): number {
  const points = metric.points.length
  if (points === 0) return 0
  const small = metric.kind === 'gauge' || metric.kind === 'sum'
  const expected = points * (small ? usualNumberPoint : usualHistogramPoint)
  out.open(metrics, expected)
  if (metric.name !== '') out.string(name, metric.name)
  if (metric.description !== '') out.string(description, metric.description)
  if (metric.unit !== '') out.string(unit, metric.unit)
  if (metric.kind === 'gauge') encodeGauge(out, metric, expected)
  else if (metric.kind === 'sum') encodeSum(out, metric, expected)
  else if (metric.kind === 'histogram') encodeHistogram(out, metric, expected)
  else encodeExponentialHistogram(out, metric, expected)
  out.close()
  return points
}

function encodeGauge(out: Writer, metric: Gauge, expected: number): void {
  out.open(gauge, expected)
  for (const point of metric.points) encodeNumberPoint(out, point, false)
  out.close()
}

function encodeSum(out: Writer, metric: Sum, expected: number): void {
  out.open(sum, expected)
  for (const point of metric.points) encodeNumberPoint(out, point, metric.integer)
  encodeTemporality(out, metric.temporality)
  if (metric.monotonic) out.bool(isMonotonic, true)
  out.close()
}

function encodeTemporality(out: Writer, temporality: Temporality): void {
  out.int(aggregationTemporality, temporality === 'delta' ? delta : cumulative)
}

function encodeNumberPoint(out: Writer, point: NumberPoint, integer: boolean): void {
  const { value } = point
  out.open(dataPoints, usualNumberPoint)
  if (point.startUs !== 0) out.microsAsNanos(startTime, point.startUs)
  if (point.timeUs !== 0) out.microsAsNanos(time, point.timeUs)
  // A value that a 64-bit integer cannot hold stays a double rather than becoming a wrong integer.
  if (integer && fitsInt64(value)) out.fixed64(asInt, value)
  else out.double(asDouble, value)
  encodeAttributes(out, numberAttributes, point.attributes)
  out.close()
}

function encodeHistogram(out: Writer, metric: Histogram, expected: number): void {
  out.open(histogram, expected)
  for (const point of metric.points) encodeHistogramPoint(out, point, metric.bounds)
  encodeTemporality(out, metric.temporality)
  out.close()
}

function encodeHistogramPoint(out: Writer, point: HistogramPoint, bounds: readonly number[]): void {
  out.open(dataPoints, usualHistogramPoint)
  if (point.startUs !== 0) out.microsAsNanos(startTime, point.startUs)
  if (point.timeUs !== 0) out.microsAsNanos(time, point.timeUs)
  if (point.count !== 0) out.fixed64(count, point.count)
  out.double(total, point.sum)
  if (point.buckets.length > 0) out.packedFixed64(bucketCounts, point.buckets)
  if (bounds.length > 0) out.packedDoubles(explicitBounds, bounds)
  encodeAttributes(out, histogramAttributes, point.attributes)
  out.close()
}

function encodeExponentialHistogram(out: Writer, metric: ExponentialHistogram, expected: number): void {
  out.open(exponentialHistogram, expected)
  for (const point of metric.points) encodeExponentialPoint(out, point)
  encodeTemporality(out, metric.temporality)
  out.close()
}

function encodeExponentialPoint(out: Writer, point: ExponentialHistogramPoint): void {
  out.open(dataPoints, usualHistogramPoint)
  encodeAttributes(out, exponentialAttributes, point.attributes)
  if (point.startUs !== 0) out.microsAsNanos(startTime, point.startUs)
  if (point.timeUs !== 0) out.microsAsNanos(time, point.timeUs)
  if (point.count !== 0) out.fixed64(count, point.count)
  out.double(total, point.sum)
  if (point.scale !== 0) out.int(scale, zigzag(point.scale))
  if (point.zeroCount !== 0) out.fixed64(zeroCount, point.zeroCount)
  if (point.positive.counts.length > 0) encodeBuckets(out, point.positive)
  if (point.min !== undefined) out.double(minimum, point.min)
  if (point.max !== undefined) out.double(maximum, point.max)
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

/** A whole number of 32 bits as `sint32` has it: small ones are short, whatever their sign. */
function zigzag(value: number): number {
  return ((value << 1) ^ (value >> 31)) >>> 0
}
