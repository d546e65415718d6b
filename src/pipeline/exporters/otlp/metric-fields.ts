// Keys of the fields of metrics.proto (opentelemetry-proto 1.11).

import { fieldKey, WireType, type Writer } from '../../../foundation/lib/protobuf.ts'
import type { Metric } from '../../../foundation/model/metric.ts'
import { encodeAttributes } from './encode-attributes.ts'

/** Keys of ScopeMetrics. */
export const metrics = fieldKey(2, WireType.bytes)

const name = fieldKey(1, WireType.bytes)
const description = fieldKey(2, WireType.bytes)
const unit = fieldKey(3, WireType.bytes)
const metadata = fieldKey(12, WireType.bytes)
export const gauge = fieldKey(5, WireType.bytes)
export const sum = fieldKey(7, WireType.bytes)
export const histogram = fieldKey(9, WireType.bytes)
export const exponentialHistogram = fieldKey(10, WireType.bytes)
export const summary = fieldKey(11, WireType.bytes)

export const dataPoints = fieldKey(1, WireType.bytes)
const aggregationTemporality = fieldKey(2, WireType.varint)
const isMonotonic = fieldKey(3, WireType.varint)
/** Numbers of AggregationTemporality. */
const delta = 1
const cumulative = 2

/** Keys of the times of all kinds of points. */
export const startTime = fieldKey(2, WireType.fixed64)
export const time = fieldKey(3, WireType.fixed64)

export const asDouble = fieldKey(4, WireType.fixed64)
export const asInt = fieldKey(6, WireType.fixed64)
export const numberExemplars = fieldKey(5, WireType.bytes)
/** Keys of number and summary points. */
export const numberAttributes = fieldKey(7, WireType.bytes)
export const numberFlags = fieldKey(8, WireType.varint)

/** Keys of both kinds of histogram points and of summary points. */
export const count = fieldKey(4, WireType.fixed64)
export const total = fieldKey(5, WireType.fixed64)
export const bucketCounts = fieldKey(6, WireType.bytes)
export const explicitBounds = fieldKey(7, WireType.bytes)
export const histogramExemplars = fieldKey(8, WireType.bytes)
export const histogramAttributes = fieldKey(9, WireType.bytes)
/** Keys of both kinds of histogram points. */
export const histogramFlags = fieldKey(10, WireType.varint)

export const quantileValues = fieldKey(6, WireType.bytes)
export const quantile = fieldKey(1, WireType.fixed64)
export const quantileValue = fieldKey(2, WireType.fixed64)

/** DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK. */
export const noRecordedValue = 1

/** Writes name, description and unit of a metric. */
export function encodeDescription(out: Writer, metric: Metric): void {
  if (metric.name !== '') out.string(name, metric.name)
  if (metric.description !== '') out.string(description, metric.description)
  if (metric.unit !== '') out.string(unit, metric.unit)
}

/** Writes the metadata of a metric, after its points. */
export function encodeMetadata(out: Writer, metric: Metric): void {
  if (metric.metadata !== undefined) encodeAttributes(out, metadata, metric.metadata)
}

/** Writes the fields after the points of sums and histograms; other kinds have no such fields. */
export function encodeAggregation(out: Writer, metric: Metric): void {
  if (metric.kind === 'gauge' || metric.kind === 'summary') return
  out.int(aggregationTemporality, metric.temporality === 'delta' ? delta : cumulative)
  if (metric.kind === 'sum' && metric.monotonic) out.bool(isMonotonic, true)
}
