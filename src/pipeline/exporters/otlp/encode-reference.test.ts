import assert from 'node:assert/strict'
import test from 'node:test'
import {
  ProtobufLogsSerializer,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
} from '@opentelemetry/otlp-transformer'
import fc from 'fast-check'
import * as arbitrary from '../../../../test/helpers/otlp-arbitrary.ts'
import { decodeRequest } from '../../../../test/helpers/otlp-proto.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import type { Attributes } from '../../../foundation/model/attributes.ts'
import type { LogRecord } from '../../../foundation/model/log.ts'
import type {
  ExponentialHistogramPoint,
  Metric,
  NumberPoint,
  Summary,
} from '../../../foundation/model/metric.ts'
import { resource, type Scope, schemaUrl } from '../../../foundation/model/resource.ts'
import type { Signal } from '../../../foundation/model/signal.ts'
import type { Span } from '../../../foundation/model/span.ts'
import { logEncoding } from './encode-log.ts'
import { metricEncoding } from './encode-metric.ts'
import { traceEncoding } from './encode-trace.ts'
import { type Encoding, RequestBuilder } from './request.ts'

const shop = resource({ 'service.name': 'shop', 'process.pid': 42 })
const scope: Scope = { name: 'svc/http', version: '0.1.0' }

/** What OpenTelemetry's own encoder takes for the same resource and scope. */
const sdkResource = { attributes: shop.attributes.toObject(), schemaUrl }
const sdkScope = { ...scope, schemaUrl }

function hrTime(us: number): [number, number] {
  const nanos = BigInt(us * 4) * 250n
  return [Number(nanos / 1_000_000_000n), Number(nanos % 1_000_000_000n)]
}

function hex(id: Uint8Array): string {
  return Buffer.from(id).toString('hex')
}

/** An object that may have any key as its own, `__proto__` too. */
function plain({ keys, values, size }: Attributes): object {
  return Object.fromEntries(keys.slice(0, size).map((key, i) => [key, values[i]]))
}

/** Without what is empty or zero: the other encoder writes some of that where this one does not. */
function normal(value: unknown): unknown {
  if (Array.isArray(value)) return value.length > 0 ? value.map(entry => normal(entry) ?? null) : undefined
  if (typeof value !== 'object' || value === null)
    return value === '' || value === 0 || value === '0' || value === false ? undefined : value
  const entries = Object.entries(value).map(([key, entry]) => [key, normal(entry)] as const)
  const kept = entries.filter(([, entry]) => entry !== undefined)
  return kept.length > 0 ? Object.fromEntries(kept) : undefined
}

function check<T>(
  encoding: Encoding<T>,
  items: fc.Arbitrary<T>,
  serialize: (items: T[]) => Uint8Array | undefined,
): void {
  const signal: Signal = encoding.signal
  const builder = new RequestBuilder(encoding)
  fc.assert(
    fc.property(fc.array(items, { minLength: 1, maxLength: 5 }), list => {
      for (const item of list) builder.add(shop, scope, item)
      const ours = decodeRequest(signal, builder.take()[0]!.body)
      assert.deepEqual(normal(ours), normal(decodeRequest(signal, serialize(list)!)))
    }),
    { numRuns: soak ? 100_000 : 200 },
  )
}

/** An id of zeros is none; the other encoder leaves out only a parent that is not given. */
function sdkSpan(span: Span): object {
  const parent = hex(span.parentSpanId)
  return {
    spanContext: () => ({
      traceId: hex(span.traceId),
      spanId: hex(span.spanId),
      traceFlags: span.flags & 0xff,
      traceState: { serialize: () => span.traceState },
    }),
    parentSpanContext: { spanId: /[^0]/.test(parent) ? parent : '', isRemote: (span.flags & 0x200) !== 0 },
    name: span.name,
    kind: span.kind - 1,
    startTime: hrTime(span.startUs),
    endTime: hrTime(span.endUs),
    attributes: plain(span.attributes),
    status: { code: span.status, message: span.statusMessage },
    events: [],
    links: [],
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
    resource: sdkResource,
    instrumentationScope: sdkScope,
  }
}

test('spans are what the encoder of OpenTelemetry makes of them', () => {
  const spans = arbitrary.span
    .filter(span => span.traceId.some(byte => byte !== 0) && span.spanId.some(byte => byte !== 0))
    .map(span => {
      span.flags |= 0x100
      return span
    })
  check(traceEncoding, spans, list => ProtobufTraceSerializer.serializeRequest(list.map(sdkSpan) as never))
})

function sdkLog(record: LogRecord): object {
  return {
    hrTime: hrTime(record.timeUs),
    hrTimeObserved: hrTime(record.observedUs),
    severityNumber: record.severity,
    severityText: record.severityText,
    body: record.body,
    eventName: record.eventName,
    spanContext: { traceId: hex(record.traceId), spanId: hex(record.spanId), traceFlags: record.flags },
    attributes: plain(record.attributes),
    droppedAttributesCount: 0,
    resource: sdkResource,
    instrumentationScope: sdkScope,
  }
}

test('log records are what the encoder of OpenTelemetry makes of them', () => {
  const records = arbitrary.logRecord.filter(
    record => record.traceId.some(byte => byte !== 0) && record.spanId.some(byte => byte !== 0),
  )
  check(logEncoding, records, list => ProtobufLogsSerializer.serializeRequest(list.map(sdkLog) as never))
})

/** Numbers of the enumerations of @opentelemetry/sdk-metrics and api. */
const dataPointType = { histogram: 0, exponential_histogram: 1, gauge: 2, sum: 3 }
const valueType = { int: 0, double: 1 }
const aggregation = { delta: 0, cumulative: 1 }

/** Of the model what that encoder knows: no summaries. */
type SdkMetric = Exclude<Metric, Summary>

function sdkMetric(metric: SdkMetric): object {
  const { kind, name, description, unit } = metric
  const times = (point: { startUs: number; timeUs: number; attributes: Attributes }) => ({
    startTime: hrTime(point.startUs),
    endTime: hrTime(point.timeUs),
    attributes: plain(point.attributes),
  })
  const number = (point: NumberPoint) => ({ ...times(point), value: point.value })
  return {
    descriptor: {
      name,
      description,
      unit,
      valueType: kind === 'sum' && metric.integer ? valueType.int : valueType.double,
    },
    dataPointType: dataPointType[kind],
    aggregationTemporality: aggregation[(kind !== 'gauge' && metric.temporality) || 'cumulative'],
    isMonotonic: kind === 'sum' && metric.monotonic,
    dataPoints:
      kind === 'histogram'
        ? metric.points.map(point => ({
            ...times(point),
            value: {
              count: point.count,
              sum: point.sum,
              buckets: { counts: Array.from(point.buckets), boundaries: metric.bounds },
            },
          }))
        : kind === 'exponential_histogram'
          ? metric.points.map(point => ({ ...times(point), value: sdkExponential(point) }))
          : metric.points.map(number),
  }
}

function sdkExponential({ positive, ...point }: ExponentialHistogramPoint): object {
  const none = { offset: 0, bucketCounts: [] }
  const { count, sum, scale, zeroCount, min, max } = point
  const bucketCounts = Array.from(positive.counts)
  // Where there are none, nothing depends on the offset.
  const buckets = bucketCounts.length > 0 ? { offset: positive.offset, bucketCounts } : none
  return { count, sum, scale, zeroCount, min, max, positive: buckets, negative: none }
}

test('metrics are what the encoder of OpenTelemetry makes of them', () => {
  // It writes a sum of integers as integers even where they have a fraction.
  const metrics = arbitrary.plainMetric.filter(
    (metric): metric is SdkMetric =>
      metric.kind !== 'summary' &&
      (metric.kind !== 'sum' ||
        !metric.integer ||
        metric.points.every(({ value }) => Number.isSafeInteger(value))),
  )
  check(metricEncoding, metrics, list =>
    ProtobufMetricsSerializer.serializeRequest({
      resource: sdkResource,
      scopeMetrics: [{ scope: sdkScope, metrics: list.map(sdkMetric) }],
    } as never),
  )
})
