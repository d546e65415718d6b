/**
 * Encodes spans as OTLP requests with svc's encoder and with OpenTelemetry's, and metrics that were encoded before but
 * for their numbers, by turns: nanoseconds and bytes of a span or point.
 *
 * at most: 2 min
 */
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer'
import { Attributes } from '../src/foundation/model/attributes.ts'
import type { PlacedMetric } from '../src/foundation/model/prepared-metric.ts'
import { resource, type Scope, schemaUrl } from '../src/foundation/model/resource.ts'
import { Span, SpanKind } from '../src/foundation/model/span.ts'
import { metricEncoding } from '../src/pipeline/exporters/otlp/encode-metric.ts'
import { traceEncoding } from '../src/pipeline/exporters/otlp/encode-trace.ts'
import { metricTemplate } from '../src/pipeline/exporters/otlp/metric-template.ts'
import { RequestBuilder } from '../src/pipeline/exporters/otlp/request.ts'
import { report } from './lib/figures.ts'

const spansPerRequest = 6000
const rounds = 15

const host = resource({ 'service.name': 'shop', 'host.name': 'host-1', 'process.pid': 4242 })
const scope: Scope = { name: 'svc/http', version: '0.1.0' }

/** A server span of HTTP as the tracer makes it. */
function makeSpan(i: number): Span {
  const span = new Span()
  for (let k = 0; k < 16; k++) span.traceId[k] = (i * 31 + k) & 0xff
  for (let k = 0; k < 8; k++) span.spanId[k] = (i * 17 + k + 1) & 0xff
  span.parentSpanId.fill(7)
  span.flags = 0x301
  span.name = 'GET /api/v1/users/{id}'
  span.kind = SpanKind.server
  span.startUs = 1.75e15 + i * 10.25
  span.endUs = span.startUs + 1234.5
  const { attributes } = span
  attributes.add('http.request.method', 'GET')
  attributes.add('url.path', `/api/v1/users/${i}`)
  attributes.add('url.scheme', 'http')
  attributes.add('http.route', '/api/v1/users/{id}')
  attributes.add('http.response.status_code', 200)
  attributes.add('server.address', 'users.example.internal')
  attributes.add('server.port', 8080)
  attributes.add('client.address', `10.1.2.${i & 0xff}`)
  attributes.add('network.peer.address', `10.1.2.${i & 0xff}`)
  attributes.add('network.peer.port', 32768 + (i % 20_000))
  attributes.add('network.protocol.version', '1.1')
  attributes.add(
    'user_agent.original',
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)',
  )
  return span
}

function hrTime(us: number): [number, number] {
  const seconds = Math.floor(us / 1e6)
  return [seconds, Math.round((us - seconds * 1e6) * 1000)]
}

/** The same span as OpenTelemetry's SDK holds it, its ids as text. */
function sdkSpan(span: Span): object {
  const context = {
    traceId: Buffer.from(span.traceId).toString('hex'),
    spanId: Buffer.from(span.spanId).toString('hex'),
    traceFlags: span.flags & 0xff,
  }
  return {
    spanContext: () => context,
    parentSpanContext: { spanId: Buffer.from(span.parentSpanId).toString('hex'), isRemote: true },
    name: span.name,
    kind: span.kind - 1,
    startTime: hrTime(span.startUs),
    endTime: hrTime(span.endUs),
    attributes: span.attributes.toObject(),
    status: { code: 0 },
    events: [],
    links: [],
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
    resource: sdkResource,
    instrumentationScope: sdkScope,
  }
}

const sdkResource = { attributes: host.attributes.toObject(), schemaUrl }
const sdkScope = { ...scope, schemaUrl }
const spans = Array.from({ length: spansPerRequest }, (_, i) => makeSpan(i))
const sdkSpans = spans.map(sdkSpan)
const builder = new RequestBuilder(traceEncoding)

function encodeOurs(): number {
  for (const span of spans) builder.add(host, scope, span)
  return builder.take()[0]!.body.length
}

function encodeTheirs(): number {
  return ProtobufTraceSerializer.serializeRequest(sdkSpans as never)!.length
}

const pointsPerFamily = 100
const familiesPerRequest = 30
const bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** A family as it is read from a page: of a histogram all lines of a point stand behind each other. */
function placedFamily(kind: 'gauge' | 'histogram'): { metric: PlacedMetric; values: Float64Array } {
  const lines = kind === 'gauge' ? 1 : bounds.length + 3
  const points = Array.from({ length: pointsPerFamily }, (_, i) => {
    const attributes = Attributes.of({ instance: `10.1.2.${i}:9100`, path: `/api/v1/${i}`, method: 'GET' })
    const at = i * lines
    const buckets = Array.from({ length: bounds.length + 1 }, (_, bucket) => at + bucket)
    const histogram = { buckets, sum: at + lines - 2, count: at + lines - 1 }
    return { attributes, startUs: 0, timeUs: 0, value: at, ...histogram }
  })
  const described = { name: `http_${kind}`, description: 'How long requests took.', unit: 's' }
  const values = new Float64Array(pointsPerFamily * lines).map((_, at) => Math.min(at % lines, lines - 3))
  return {
    metric: kind === 'gauge' ? { ...described, kind, points } : { ...described, kind, bounds, points },
    values,
  }
}

/** Adds a family by its template, as a scrape does whose page has only other numbers than the one before. */
function templateSeries(kind: 'gauge' | 'histogram'): Series {
  const { metric, values } = placedFamily(kind)
  const template = metricTemplate(metric)!
  const metrics = new RequestBuilder(metricEncoding)
  const encode = () => {
    for (let i = 0; i < familiesPerRequest; i++)
      metrics.addEncoded(host, scope, template.fill(values, 1.75e15 + i)!, pointsPerFamily)
    return metrics.take()[0]!.body.length
  }
  return {
    name: `${kind}s.prepared`,
    encode,
    items: familiesPerRequest * pointsPerFamily,
    nanoseconds: [],
    bytes: 0,
  }
}

/** What of that is the numbers alone. */
function fillSeries(kind: 'gauge' | 'histogram'): Series {
  const { metric, values } = placedFamily(kind)
  const template = metricTemplate(metric)!
  const encode = () => {
    for (let i = 0; i < familiesPerRequest; i++) template.fill(values, 1.75e15 + i)
    return familiesPerRequest * template.sizeBytes
  }
  return {
    name: `${kind}s.filled`,
    encode,
    items: familiesPerRequest * pointsPerFamily,
    nanoseconds: [],
    bytes: 0,
  }
}

interface Series {
  readonly name: string
  readonly encode: () => number
  /** Spans or points in a request. */
  readonly items: number
  readonly nanoseconds: number[]
  bytes: number
}

const series: Series[] = [
  { name: 'spans.svc', encode: encodeOurs, items: spansPerRequest, nanoseconds: [], bytes: 0 },
  { name: 'spans.otlp-transformer', encode: encodeTheirs, items: spansPerRequest, nanoseconds: [], bytes: 0 },
  templateSeries('gauge'),
  fillSeries('gauge'),
  templateSeries('histogram'),
  fillSeries('histogram'),
]

for (let round = -3; round < rounds; round++) {
  for (const one of series) {
    const start = process.hrtime.bigint()
    one.bytes = one.encode()
    const taken = Number(process.hrtime.bigint() - start)
    // The first rounds only let the compiler warm up.
    if (round >= 0) one.nanoseconds.push(taken / one.items)
  }
}

console.log(
  `${spansPerRequest} spans with 12 attributes, or ${familiesPerRequest} families of ${pointsPerFamily} points, a request; ${rounds} rounds by turns`,
)
for (const { name, items, nanoseconds, bytes } of series) {
  report(`otlp-encode.${name}.ns_per_item`, nanoseconds, 'ns', 'less')
  report(`otlp-encode.${name}.bytes_per_item`, bytes / items, 'By', 'less')
}
