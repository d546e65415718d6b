import { fieldKey, fitsInt64, WireType, type Writer } from '../../lib/protobuf.ts'
import type { Gauge, Histogram, HistogramPoint, Metric, NumberPoint, Sum } from '../../model/metric.ts'
import { encodeAttributes } from './encode-attributes.ts'
import type { Encoding } from './request.ts'

const metrics = fieldKey(2, WireType.bytes)

const name = fieldKey(1, WireType.bytes)
const description = fieldKey(2, WireType.bytes)
const unit = fieldKey(3, WireType.bytes)
const gauge = fieldKey(5, WireType.bytes)
const sum = fieldKey(7, WireType.bytes)
const histogram = fieldKey(9, WireType.bytes)

const dataPoints = fieldKey(1, WireType.bytes)
const temporality = fieldKey(2, WireType.varint)
const isMonotonic = fieldKey(3, WireType.varint)
/** AGGREGATION_TEMPORALITY_CUMULATIVE. */
const cumulative = 2

/** Both kinds of points have their times at these numbers. */
const startTime = fieldKey(2, WireType.fixed64)
const time = fieldKey(3, WireType.fixed64)

const asDouble = fieldKey(4, WireType.fixed64)
const asInt = fieldKey(6, WireType.fixed64)
const numberAttributes = fieldKey(7, WireType.bytes)

const count = fieldKey(4, WireType.fixed64)
const total = fieldKey(5, WireType.fixed64)
const bucketCounts = fieldKey(6, WireType.bytes)
const explicitBounds = fieldKey(7, WireType.bytes)
const histogramAttributes = fieldKey(9, WireType.bytes)

/** Guesses of sizes, which only have to be near. */
const usualNumberPoint = 100
const usualHistogramPoint = 400

/** Metrics as metrics.proto has them. They count by data points; a metric without any is not sent. */
export const metricEncoding: Encoding<Metric> = { signal: 'metrics', encode: encodeMetric }

function encodeMetric(out: Writer, metric: Metric): number {
  const points = metric.points.length
  if (points === 0) return 0
  const expected = points * (metric.kind === 'histogram' ? usualHistogramPoint : usualNumberPoint)
  out.open(metrics, expected)
  if (metric.name !== '') out.string(name, metric.name)
  if (metric.description !== '') out.string(description, metric.description)
  if (metric.unit !== '') out.string(unit, metric.unit)
  if (metric.kind === 'gauge') encodeGauge(out, metric, expected)
  else if (metric.kind === 'sum') encodeSum(out, metric, expected)
  else encodeHistogram(out, metric, expected)
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
  out.int(temporality, cumulative)
  if (metric.monotonic) out.bool(isMonotonic, true)
  out.close()
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
  out.int(temporality, cumulative)
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
