import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import * as arbitrary from '../../../../test/helpers/otlp-arbitrary.ts'
import { decodeRequest, requestType } from '../../../../test/helpers/otlp-proto.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { Attributes, type AttributeValue } from '../../../foundation/model/attributes.ts'
import type { LogRecord } from '../../../foundation/model/log.ts'
import type {
  Exemplar,
  ExponentialHistogramPoint,
  HistogramPoint,
  Metric,
  NumberPoint,
  SummaryPoint,
} from '../../../foundation/model/metric.ts'
import { type Resource, resource, type Scope, schemaUrl } from '../../../foundation/model/resource.ts'
import type { Signal } from '../../../foundation/model/signal.ts'
import { Span } from '../../../foundation/model/span.ts'
import { logEncoding } from './encode-log.ts'
import { metricEncoding } from './encode-metric.ts'
import { traceEncoding } from './encode-trace.ts'
import { type Encoding, RequestBuilder } from './request.ts'

/** What a message has on the wire: only the fields whose value is not undefined. */
function fields(entries: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined))
}

function filled<T>(list: T[]): T[] | undefined {
  return list.length > 0 ? list : undefined
}

function wantTime(us: number): string | undefined {
  return us === 0 ? undefined : (BigInt(us * 4) * 250n).toString()
}

function wantId(id: Uint8Array): string | undefined {
  return id.some(byte => byte !== 0) ? Buffer.from(id).toString('base64') : undefined
}

function wantValue(value: AttributeValue): Record<string, unknown> {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value !== 'number') return { arrayValue: fields({ values: filled(value.map(wantValue)) }) }
  return Number.isInteger(value) && Math.abs(value) < 2 ** 63
    ? { intValue: BigInt(value).toString() }
    : { doubleValue: value }
}

function wantAttributes(attributes: Attributes): unknown[] | undefined {
  return filled(
    attributes.keys
      .slice(0, attributes.size)
      .map((key, i) => ({ key, value: wantValue(attributes.values[i]!) })),
  )
}

function wantSpan(span: Span): Record<string, unknown> {
  const status = fields({ message: span.statusMessage || undefined, code: span.status || undefined })
  return fields({
    traceId: wantId(span.traceId),
    spanId: wantId(span.spanId),
    traceState: span.traceState || undefined,
    parentSpanId: wantId(span.parentSpanId),
    name: span.name || undefined,
    kind: span.kind,
    startTimeUnixNano: wantTime(span.startUs),
    endTimeUnixNano: wantTime(span.endUs),
    attributes: wantAttributes(span.attributes),
    status: Object.keys(status).length > 0 ? status : undefined,
    flags: span.flags || undefined,
  })
}

function wantLog(record: LogRecord): Record<string, unknown> {
  return fields({
    timeUnixNano: wantTime(record.timeUs),
    severityNumber: record.severity || undefined,
    severityText: record.severityText || undefined,
    body: record.body === '' ? undefined : wantValue(record.body),
    attributes: wantAttributes(record.attributes),
    flags: record.flags || undefined,
    traceId: wantId(record.traceId),
    spanId: wantId(record.spanId),
    observedTimeUnixNano: wantTime(record.observedUs),
    eventName: record.eventName || undefined,
  })
}

type Point = Metric['points'][number]

/** A point with what its kind of metric says where there is a value. */
function wantPoint<P extends Point>(point: P, value: (point: P) => Record<string, unknown>) {
  return fields({
    attributes: wantAttributes(point.attributes),
    startTimeUnixNano: wantTime(point.startUs),
    timeUnixNano: wantTime(point.timeUs),
    ...(point.noValue ? { flags: 1 } : value(point)),
  })
}

function wantNumber({ value, exemplars }: NumberPoint, integer: boolean): Record<string, unknown> {
  const isInteger = integer && Number.isInteger(value) && Math.abs(value) < 2 ** 63
  return {
    ...(isInteger ? { asInt: BigInt(value).toString() } : { asDouble: value }),
    exemplars: wantExemplars(exemplars),
  }
}

function wantExemplars(exemplars: readonly Exemplar[] = []): unknown {
  return filled(
    exemplars.map(({ timeUs, value, traceId, spanId, attributes }) =>
      fields({
        timeUnixNano: wantTime(timeUs),
        asDouble: value,
        spanId: wantId(spanId),
        traceId: wantId(traceId),
        filteredAttributes: wantAttributes(attributes),
      }),
    ),
  )
}

function wantHistogram({ count, sum, buckets, exemplars }: HistogramPoint, bounds: readonly number[]) {
  return {
    count: count === 0 ? undefined : String(count),
    sum,
    bucketCounts: filled(Array.from(buckets, String)),
    explicitBounds: filled([...bounds]),
    exemplars: wantExemplars(exemplars),
  }
}

function wantSummary({ count, sum, quantiles, values }: SummaryPoint): Record<string, unknown> {
  const unlessZero = (value: number | undefined) => (Object.is(value, 0) ? undefined : value)
  const quantileValues = Array.from(quantiles, (quantile, i) =>
    fields({ quantile: unlessZero(quantile), value: unlessZero(values[i]) }),
  )
  return {
    count: count === 0 ? undefined : String(count),
    sum: unlessZero(sum),
    quantileValues: filled(quantileValues),
  }
}

function wantData(metric: Metric): Record<string, unknown> {
  if (metric.kind === 'gauge') {
    const dataPoints = metric.points.map(point => wantPoint(point, of => wantNumber(of, false)))
    return { gauge: { dataPoints } }
  }
  if (metric.kind === 'summary')
    return { summary: { dataPoints: metric.points.map(point => wantPoint(point, wantSummary)) } }
  const aggregationTemporality = metric.temporality === 'delta' ? 1 : 2
  if (metric.kind === 'sum') {
    const dataPoints = metric.points.map(point => wantPoint(point, of => wantNumber(of, metric.integer)))
    const isMonotonic = metric.monotonic || undefined
    return { sum: fields({ dataPoints, aggregationTemporality, isMonotonic }) }
  }
  if (metric.kind === 'histogram') {
    const dataPoints = metric.points.map(point => wantPoint(point, of => wantHistogram(of, metric.bounds)))
    return { histogram: { dataPoints, aggregationTemporality } }
  }
  const dataPoints = metric.points.map(point => wantPoint(point, wantExponential))
  return { exponentialHistogram: { dataPoints, aggregationTemporality } }
}

function wantMetric(metric: Metric): Record<string, unknown> {
  return fields({
    name: metric.name || undefined,
    description: metric.description || undefined,
    unit: metric.unit || undefined,
    metadata: metric.metadata && wantAttributes(metric.metadata),
    ...wantData(metric),
  })
}

function wantExponential(point: ExponentialHistogramPoint): Record<string, unknown> {
  const { offset, counts } = point.positive
  return {
    count: point.count === 0 ? undefined : String(point.count),
    sum: point.sum,
    scale: point.scale || undefined,
    zeroCount: point.zeroCount === 0 ? undefined : String(point.zeroCount),
    positive:
      counts.length > 0
        ? fields({ offset: offset || undefined, bucketCounts: Array.from(counts, String) })
        : undefined,
    min: point.min,
    max: point.max,
  }
}

const host: Resource = resource({ 'service.name': 'shop', 'host.name': 'größe', 'process.pid': 42 })
const scope: Scope = { name: 'svc/http', version: '0.1.0' }

/** Generated items, through one builder that is used again for every run, must decode to what they are. */
function checkSignal<T>(
  encoding: Encoding<T>,
  items: fc.Arbitrary<T>,
  resourceField: string,
  scopeField: string,
  itemField: string,
  want: (item: T) => unknown,
): void {
  const builder = new RequestBuilder(encoding)
  fc.assert(
    fc.property(fc.array(items, { minLength: 1, maxLength: 6 }), list => {
      for (const item of list) builder.add(host, scope, item)
      const bound = builder.bytes
      const [batch] = builder.take()
      assert.ok(batch)
      assert.equal(batch.signal, encoding.signal)
      assert.equal(batch.body.length <= bound, true, `${batch.body.length} bytes, bound ${bound}`)
      checkShortest(encoding.signal, batch.body)
      assert.deepEqual(decodeRequest(encoding.signal, batch.body), {
        [resourceField]: [
          {
            resource: { attributes: wantAttributes(host.attributes) },
            [scopeField]: [{ scope, [itemField]: list.map(want), schemaUrl }],
            schemaUrl,
          },
        ],
      })
    }),
    { numRuns: soak ? 35_000 : 300 },
  )
}

/** Another encoder, which leaves out all that proto3 lets it, makes no shorter message of it. */
function checkShortest(signal: Signal, body: Uint8Array): void {
  const type = requestType(signal)
  assert.equal(type.encode(type.decode(body)).finish().length, body.length)
}

test('spans decode to what they were, with zero values left out', () => {
  checkSignal(traceEncoding, arbitrary.span, 'resourceSpans', 'scopeSpans', 'spans', wantSpan)
})

test('log records decode to what they were, with zero values left out', () => {
  checkSignal(logEncoding, arbitrary.logRecord, 'resourceLogs', 'scopeLogs', 'logRecords', wantLog)
})

test('metrics decode to what they were, with zero values left out', () => {
  checkSignal(metricEncoding, arbitrary.metric, 'resourceMetrics', 'scopeMetrics', 'metrics', wantMetric)
})

/** The values of a span with one attribute for each of the given ones, as they come back. */
function roundTrip(values: AttributeValue[]): unknown[] {
  const builder = new RequestBuilder(traceEncoding)
  const span = new Span()
  for (const [i, value] of values.entries()) span.attributes.add(`k${i}`, value)
  builder.add(host, scope, span)
  const request = decodeRequest('traces', builder.take()[0]!.body) as {
    resourceSpans: [{ scopeSpans: [{ spans: [{ attributes: { value: unknown }[] }] }] }]
  }
  return request.resourceSpans[0].scopeSpans[0].spans[0].attributes.map(({ value }) => value)
}

test('a whole number is an integer and any other number a double', () => {
  const check = (value: number, want: unknown) => assert.deepEqual(roundTrip([value]), [want])
  check(0, { intValue: '0' })
  check(-0, { intValue: '0' })
  check(-1, { intValue: '-1' })
  check(Number.MAX_SAFE_INTEGER, { intValue: '9007199254740991' })
  check(Number.MIN_SAFE_INTEGER, { intValue: '-9007199254740991' })
  check(2 ** 53, { intValue: '9007199254740992' })
  check(-(2 ** 62), { intValue: String(-(2n ** 62n)) })
  check(2 ** 63, { doubleValue: 2 ** 63 })
  check(1e300, { doubleValue: 1e300 })
  check(0.5, { doubleValue: 0.5 })
  check(Number.NaN, { doubleValue: Number.NaN })
  check(Number.POSITIVE_INFINITY, { doubleValue: Number.POSITIVE_INFINITY })
  check(Number.NEGATIVE_INFINITY, { doubleValue: Number.NEGATIVE_INFINITY })
})

test('an attribute with an empty value keeps its type', () => {
  assert.deepEqual(roundTrip(['', [], [''], false]), [
    { stringValue: '' },
    { arrayValue: {} },
    { arrayValue: { values: [{ stringValue: '' }] } },
    { boolValue: false },
  ])
})

test('lone surrogates become replacement characters, other texts stay as they are', () => {
  assert.deepEqual(roundTrip(['a\ud800b', 'plain', 'ü', '😀', 'x'.repeat(70_000), 'ü'.repeat(70_000)]), [
    { stringValue: 'a\ufffdb' },
    { stringValue: 'plain' },
    { stringValue: 'ü' },
    { stringValue: '😀' },
    { stringValue: 'x'.repeat(70_000) },
    { stringValue: 'ü'.repeat(70_000) },
  ])
})

test('attribute names without end are all encoded', () => {
  const builder = new RequestBuilder(traceEncoding)
  for (let i = 0; i < 3000; i++) {
    const span = new Span()
    span.attributes.add(`made.up.name.${i}`, i)
    builder.add(host, scope, span)
  }
  const request = decodeRequest('traces', builder.take()[0]!.body) as {
    resourceSpans: [{ scopeSpans: [{ spans: { attributes: unknown }[] }] }]
  }
  request.resourceSpans[0].scopeSpans[0].spans.forEach((span, i) => {
    assert.deepEqual(span.attributes, [{ key: `made.up.name.${i}`, value: { intValue: String(i) } }])
  })
})

test('a sum beyond 64 bits or with a fraction stays a double', () => {
  const check = (value: number, want: object) => {
    const builder = new RequestBuilder(metricEncoding)
    const point = { attributes: new Attributes(), startUs: 0, timeUs: 0, value }
    const described = { name: 'm', description: '', unit: '' }
    builder.add(host, scope, { ...described, kind: 'sum', monotonic: true, integer: true, points: [point] })
    const request = decodeRequest('metrics', builder.take()[0]!.body) as {
      resourceMetrics: [{ scopeMetrics: [{ metrics: [{ sum: { dataPoints: unknown } }] }] }]
    }
    assert.deepEqual(request.resourceMetrics[0].scopeMetrics[0].metrics[0].sum.dataPoints, [want])
  }
  check(7, { asInt: '7' })
  check(-7, { asInt: '-7' })
  check(2 ** 62, { asInt: String(2n ** 62n) })
  check(2 ** 63, { asDouble: 2 ** 63 })
  check(1.5, { asDouble: 1.5 })
  check(Number.NaN, { asDouble: Number.NaN })
})
