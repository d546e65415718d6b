/**
 * What an item costs from the intake to a compressed request, through all processors, in CPU of one core: ours, and by
 * turns what the obvious code does (a regular expression of V8 for each rule, OpenTelemetry's serializer, gzip as it
 * comes).
 *
 * at most: 2 min
 */
import { gzipSync } from 'node:zlib'
import { ProtobufLogsSerializer, ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer'
import { loadConfig } from '../src/config/index.ts'
import { LogRecord } from '../src/foundation/model/log.ts'
import { resource, type Scope, schemaUrl } from '../src/foundation/model/resource.ts'
import { Span, SpanKind } from '../src/foundation/model/span.ts'
import { logEncoding } from '../src/pipeline/exporters/otlp/encode-log.ts'
import { traceEncoding } from '../src/pipeline/exporters/otlp/encode-trace.ts'
import { RequestBuilder } from '../src/pipeline/exporters/otlp/request.ts'
import { compileChain } from '../src/pipeline/processors/chain.ts'
import { silentLogger } from '../test/helpers/silent-logger.ts'
import { report } from './lib/figures.ts'

const perRequest = 4000
const rounds = 15

const rules = ['email', 'phone', 'ssn', 'credit_card', 'ipv4', 'iban', 'jwt', 'api_key']
const { config, problems } = loadConfig({
  explicit: false,
  cwd: '/nonexistent',
  systemFile: '/nonexistent',
  env: {
    SVC_PIPELINE_PII_REDACTION_ENABLED: 'true',
    SVC_PIPELINE_PII_REDACTION_ALLOWED_ATTRIBUTES: 'client.address,network.peer.address',
    SVC_PIPELINE_PII_REDACTION_RULES: JSON.stringify(rules.map(type => ({ name: type, type }))),
    SVC_PIPELINE_TRANSFORM_ENABLED: 'true',
    SVC_PIPELINE_TRANSFORM_RULES: JSON.stringify([
      {
        name: 'team',
        match: { attributes: { 'http.route': '/api/v1/users/{id}' } },
        actions: [{ type: 'set_attribute', set_attribute: { key: 'team', value: 'users' } }],
      },
      {
        name: 'noise',
        match: { signal_types: ['logs'], log_bodies: ['^DEBUG'] },
        actions: [{ type: 'drop' }],
      },
    ]),
    SVC_PIPELINE_LIMITS_RATE_ENABLED: 'true',
    SVC_PIPELINE_LIMITS_RATE_TRACES_PER_SECOND: '100000000',
    SVC_PIPELINE_LIMITS_RATE_LOGS_PER_SECOND: '100000000',
  },
})
if (problems.length > 0) throw new Error(problems.map(({ key, message }) => `${key}: ${message}`).join('\n'))
const env = {
  log: silentLogger,
  installKey: () => new Uint8Array(32),
  nowMs: () => performance.now(),
}

const host = resource({ 'service.name': 'shop', 'host.name': 'host-1', 'process.pid': 4242 })
const scope: Scope = { name: 'svc/http', version: '0.1.0' }
const sdkResource = { attributes: host.attributes.toObject(), schemaUrl, asyncAttributesPending: false }
const sdkScope = { ...scope, schemaUrl }
const agent = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)'

const naive = [
  /[a-z0-9._%+-]+@[a-z0-9.-]+\.[a-z]{2,}/gi,
  /\+\d{7,15}|\(?\d{3}\)?[-. ]\d{3}[-. ]\d{4}/g,
  /\b\d{3}-\d{2}-\d{4}\b/g,
  /\b(?:\d[ -]?){13,19}\b/g,
  /\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b/g,
  /\b[A-Z]{2}\d{2}[A-Z0-9]{11,30}\b/g,
  /eyJ[\w-]+\.[\w-]+\.[\w-]+/g,
  /\b(?:AKIA|ghp_|xox[abpr]-)[\w-]{10,}|(?:api_key|token|secret)\s*[=:]\s*\S{8,}/gi,
]
const scrub = (text: string) => naive.reduce((out, rule) => out.replace(rule, '[REDACTED]'), text)
const scrubAll = (attributes: Record<string, unknown>) => {
  for (const [key, value] of Object.entries(attributes))
    if (typeof value === 'string' && !key.endsWith('.address')) attributes[key] = scrub(value)
  return attributes
}

function fillSpan(span: Span, i: number): void {
  for (let k = 0; k < 16; k++) span.traceId[k] = (i * 31 + k) & 0xff
  for (let k = 0; k < 8; k++) span.spanId[k] = (i * 17 + k + 1) & 0xff
  span.name = 'GET /api/v1/users/{id}'
  span.kind = SpanKind.server
  span.startUs = 1.75e15 + i * 10.25
  span.endUs = span.startUs + 1234.5
  const { attributes } = span
  attributes.clear()
  attributes.add('http.request.method', 'GET')
  attributes.add('url.path', paths[i % paths.length]!)
  attributes.add('url.scheme', 'http')
  attributes.add('http.route', '/api/v1/users/{id}')
  attributes.add('http.response.status_code', 200)
  attributes.add('server.address', 'users.example.internal')
  attributes.add('server.port', 8080)
  attributes.add('client.address', `10.1.2.${i & 0xff}`)
  attributes.add('network.peer.port', 32768 + (i % 20_000))
  attributes.add('network.protocol.version', '1.1')
  attributes.add('user_agent.original', agent)
}
const paths = Array.from({ length: 1000 }, (_, i) => `/api/v1/users/${i}`)

/** A line of 217 bytes; every fiftieth has something to redact in it. */
function lineOf(i: number): string {
  const who = i % 50 === 0 ? `user=jane.doe${i}@example.com` : `user=${i}`
  return `2026-01-02T03:04:05.678Z INFO  [worker-${i % 8}] c.e.shop.OrderService - order ${100_000 + i} placed ${who} items=3 total=129.90 latency=37ms path=/api/v1/orders/${i} trace=4bf92f3577b34da6a3ce929d0e0e4736 ok`
    .padEnd(217, '.')
    .slice(0, 217)
}
const lines = Array.from({ length: perRequest }, (_, i) => lineOf(i))

interface Contender {
  readonly name: string
  run(): number
}

function ours(signal: 'traces' | 'logs'): Contender {
  const chain = compileChain(signal, config.pipeline, env)!
  const builder = new RequestBuilder<Span & LogRecord>(
    (signal === 'traces' ? traceEncoding : logEncoding) as never,
  )
  const out = {
    add: (from: typeof host, by: Scope, item: unknown) => void builder.add(from, by, item as never),
    drop: () => {},
  }
  const span = new Span()
  const record = new LogRecord()
  return {
    name: 'svc',
    run: () => {
      for (let i = 0; i < perRequest; i++) {
        if (signal === 'traces') {
          fillSpan(span, i)
          chain.run(host, scope, span as never, out)
        } else {
          record.timeUs = 1.75e15 + i
          record.severity = 9
          record.body = lines[i]!
          record.attributes.clear()
          record.attributes.add('log.file.path', '/var/log/shop/orders.log')
          chain.run(host, scope, record as never, out)
        }
      }
      return gzipSync(builder.take()[0]!.body, { level: 1 }).length
    },
  }
}

function naiveTraces(): Contender {
  const span = new Span()
  const context = (i: number) => ({
    traceId: String(i).padStart(32, '0'),
    spanId: String(i + 1).padStart(16, '0'),
    traceFlags: 1,
  })
  return {
    name: 'naive',
    run: () => {
      const all: unknown[] = []
      for (let i = 0; i < perRequest; i++) {
        fillSpan(span, i)
        const attributes = scrubAll(span.attributes.toObject())
        if (attributes['http.route'] === '/api/v1/users/{id}') attributes.team = 'users'
        const own = context(i)
        all.push({
          spanContext: () => own,
          name: span.name,
          kind: 1,
          startTime: [1_750_000_000, i],
          endTime: [1_750_000_000, i + 1],
          attributes,
          status: { code: 0 },
          events: [],
          links: [],
          droppedAttributesCount: 0,
          droppedEventsCount: 0,
          droppedLinksCount: 0,
          resource: sdkResource,
          instrumentationScope: sdkScope,
        })
      }
      return gzipSync(ProtobufTraceSerializer.serializeRequest(all as never)!).length
    },
  }
}

function naiveLogs(): Contender {
  return {
    name: 'naive',
    run: () => {
      const all: unknown[] = []
      for (let i = 0; i < perRequest; i++) {
        const body = scrub(lines[i]!)
        if (/^DEBUG/.test(body)) continue
        all.push({
          hrTime: [1_750_000_000, i],
          hrTimeObserved: [1_750_000_000, i],
          severityNumber: 9,
          body,
          attributes: scrubAll({ 'log.file.path': '/var/log/shop/orders.log' }),
          resource: sdkResource,
          instrumentationScope: sdkScope,
          droppedAttributesCount: 0,
        })
      }
      return gzipSync(ProtobufLogsSerializer.serializeRequest(all as never)!).length
    },
  }
}

function compare(what: string, contenders: readonly Contender[]): void {
  const times = new Map<string, number[]>()
  let bytes = 0
  for (const { run } of contenders) for (let i = 0; i < 3; i++) run()
  for (let round = 0; round < rounds; round++)
    for (const { name, run } of contenders) {
      const start = process.cpuUsage()
      bytes = run()
      const { user, system } = process.cpuUsage(start)
      times.set(name, [...(times.get(name) ?? []), (user + system) / perRequest])
    }
  for (const [name, all] of times) report(`pipeline.${what}.${name}.cpu_us_per_item`, all, 'us', 'less')
  if (bytes === 0) throw new Error('nothing was made')
}

compare('spans', [ours('traces'), naiveTraces()])
compare('log_records', [ours('logs'), naiveLogs()])
