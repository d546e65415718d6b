// owns: process
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { heapAllocated, heapGrowth } from '../../../../test/helpers/heap.ts'
import { kernelOperation, setHead } from '../../../../test/helpers/kernel-operation.ts'
import { MemoryGovernor } from '../../../foundation/lib/memory-governor.ts'
import { WallClock } from '../../../foundation/lib/wall-clock.ts'
import { Attributes } from '../../../foundation/model/attributes.ts'
import type { HistogramPoint } from '../../../foundation/model/metric.ts'
import { type Resource, resource } from '../../../foundation/model/resource.ts'
import type { Span } from '../../../foundation/model/span.ts'
import type { Operation } from '../../../foundation/model/stream.ts'
import { bounds } from '../protocols/durations.ts'
import { http1 } from '../protocols/http1.ts'
import { RedTable } from './red.ts'
import { Tracer } from './tracer.ts'
import type { TracerOptions, TracerRules } from './tracer-options.ts'

const scope = { name: 'svc/test', version: '1' }
const nobody = '0000000000000000'
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const parentId = '00f067aa0ba902b7'

interface Emitted {
  readonly service: unknown
  readonly name: string
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly flags: number
  readonly startUs: number
  readonly endUs: number
  readonly status: number
  readonly attributes: Record<string, unknown>
}

const hex = (id: Uint8Array): string => Buffer.from(id).toString('hex')

const rules: TracerRules = {
  ratio: 1,
  alwaysErrors: true,
  alwaysSlow: true,
  slowNs: 1e9,
  readContext: true,
  excludedPath: path => path === '/healthz',
}

function open(changed: Partial<TracerRules> = {}, options: Partial<TracerOptions> = {}) {
  const spans: Emitted[] = []
  const dropped = new Map<string, number>()
  const red = new RedTable({ startUs: 0 })
  const services = new Map<number, ReturnType<typeof resource>>()
  const clock = { ms: 0 }
  const tracer = new Tracer({
    protocols: [http1.create({ route: (_operation, path) => path })],
    scope,
    red,
    countedBounds: bounds,
    resourceOf: ({ pid }) => {
      const of = services.get(pid) ?? resource({ 'service.name': `service ${pid}` })
      services.set(pid, of)
      return of
    },
    spans: {
      add: (of, from, span) => {
        assert.equal(from, scope)
        spans.push(copy(of.attributes.get('service.name'), span))
      },
    },
    refuse: () => {},
    clock: new WallClock(),
    drop: (reason, n) => dropped.set(reason, (dropped.get(reason) ?? 0) + n),
    rules: { ...rules, ...changed },
    isLocal: address => address === '127.0.0.1',
    now: () => clock.ms,
    ...options,
  })
  return { tracer, spans, dropped, red, clock }
}

function copy(service: unknown, span: Span): Emitted {
  const { name, kind, flags, startUs, endUs, status } = span
  return {
    service,
    name,
    kind,
    traceId: hex(span.traceId),
    spanId: hex(span.spanId),
    parentSpanId: hex(span.parentSpanId),
    flags,
    startUs,
    endUs,
    status,
    attributes: span.attributes.toObject(),
  }
}

function nameOf(side: Resource | string): unknown {
  return typeof side === 'string' ? side : side.attributes.get('service.name')
}

interface Given {
  readonly server?: boolean
  readonly path?: string
  readonly method?: string
  readonly status?: number
  readonly sequence?: number
  readonly peerAddress?: string
  readonly traceparent?: string
  readonly durationMs?: number
  readonly protocol?: string
  readonly pid?: number
  readonly clientPort?: number
}

/** An operation over port 80, by default the server's side of one with another host. */
function operationOf(given: Given): Operation {
  const { server = true, path = '/', method = 'GET', traceparent = '', clientPort = 40_000 } = given
  const head = `${method} ${path} HTTP/1.1\r\nHost: shop\r\n\r\n`
  const bytes = Buffer.from(head + traceparent, 'latin1')
  return kernelOperation({
    head: { bytes, end: head.length, traceparentStart: head.length, traceparentEnd: bytes.length },
    protocol: given.protocol ?? 'http1',
    server,
    pid: given.pid ?? (server ? 2 : 1),
    status: given.status ?? 200,
    sequence: given.sequence ?? 1,
    localAddress: '10.0.0.1',
    peerAddress: given.peerAddress ?? '10.0.0.2',
    localPort: server ? 80 : clientPort,
    peerPort: server ? clientPort : 80,
    startNs: 1_000_000_000,
    durationNs: (given.durationMs ?? 5) * 1e6,
  })
}

/** The two sides of one exchange within the host. */
function local(given: Given): { client: Operation; server: Operation } {
  const both = { peerAddress: '127.0.0.1', ...given }
  return { client: operationOf({ ...both, server: false }), server: operationOf({ ...both, server: true }) }
}

function points(red: RedTable): HistogramPoint[] {
  return red
    .collect(1)
    .flatMap(({ metrics }) => metrics)
    .flatMap(metric => (metric.kind === 'histogram' ? metric.points : []))
}

test('an exchange becomes a span and a count', () => {
  const { tracer, spans, red } = open()
  tracer.end(operationOf({ path: '/users', status: 500 }))
  assert.equal(spans.length, 1)
  const [span] = spans
  assert.deepEqual(
    [span!.service, span!.name, span!.kind, span!.status, span!.flags, span!.parentSpanId],
    ['service 2', 'GET /users', 2, 2, 1, nobody],
  )
  assert.deepEqual([span!.startUs, span!.endUs], [1_000_000, 1_005_000])
  assert.equal(span!.attributes['http.response.status_code'], 500)
  assert.deepEqual([...tracer.collected], [['http', 1]])
  assert.deepEqual(
    points(red).map(({ count, sum, attributes }) => [count, sum, attributes.get('http.route')]),
    [[1, 0.005, '/users']],
  )
})

test('ids are random: no two spans and no two traces share one', () => {
  const { tracer, spans } = open()
  for (let i = 0; i < 5000; i++) tracer.end(operationOf({}))
  assert.equal(new Set(spans.map(span => span.spanId)).size, 5000)
  assert.equal(new Set(spans.map(span => span.traceId)).size, 5000)
})

test('a traceparent is taken over: trace, parent and flags', () => {
  const check = (flags: string, server: boolean, want: number) => {
    const { tracer, spans } = open()
    tracer.end(operationOf({ server, traceparent: `00-${traceId}-${parentId}-${flags}` }))
    const [span] = spans
    assert.deepEqual([span!.traceId, span!.parentSpanId, span!.flags], [traceId, parentId, want])
    assert.notEqual(span!.spanId, parentId)
  }
  check('01', true, 0x301)
  check('00', true, 0x300)
  check('03', true, 0x303)
  check('ff', true, 0x303)
  // A client's parent may be in its own process, so nothing is said of where it is.
  check('01', false, 0x001)
})

test('what is no traceparent begins a trace of its own', () => {
  const check = (traceparent: string) => {
    const { tracer, spans } = open()
    tracer.end(operationOf({ traceparent }))
    assert.equal(spans.length, 1)
    assert.notEqual(spans[0]!.traceId, traceId, traceparent)
    assert.notEqual(spans[0]!.traceId, '0'.repeat(32))
    assert.deepEqual([spans[0]!.parentSpanId, spans[0]!.flags], [nobody, 1], traceparent)
  }
  check('')
  check(`ff-${traceId}-${parentId}-01`)
  check(`00-${'0'.repeat(32)}-${parentId}-01`)
  check(`00-${traceId}-${nobody}-01`)
  check(`00-${traceId.toUpperCase()}-${parentId}-01`)
  check(`00-${traceId}-${parentId}-0`)
  check(`00-${traceId}-${parentId}-01x`)
})

test('an invalid traceparent does not keep two sides of one host apart', () => {
  const { tracer, spans } = open()
  const sides = local({ traceparent: `00-${traceId}-${nobody}-01` })
  tracer.end(sides.client)
  tracer.end(sides.server)
  assert.equal(spans[1]!.parentSpanId, spans[0]!.spanId)
})

test('where headers are not read, they say nothing', () => {
  const { tracer, spans } = open({ readContext: false })
  tracer.end(operationOf({ traceparent: `00-${traceId}-${parentId}-01` }))
  assert.notEqual(spans[0]!.traceId, traceId)
  assert.equal(spans[0]!.parentSpanId, nobody)
})

test('the sides of an exchange within the host are one trace, whichever comes first', () => {
  const check = (order: readonly ['client' | 'server', 'client' | 'server']) => {
    const { tracer, spans } = open()
    const sides = local({ sequence: 4_294_967_295 })
    for (const side of order) tracer.end(sides[side])
    const client = spans.find(({ kind }) => kind === 3)!
    const server = spans.find(({ kind }) => kind === 2)!
    assert.equal(spans.length, 2)
    assert.deepEqual(
      [server.traceId, server.parentSpanId, server.flags],
      [client.traceId, client.spanId, 0x301],
    )
    assert.deepEqual([client.parentSpanId, client.flags], [nobody, 1])
    assert.equal(tracer.joins.joined, 1)
  }
  check(['client', 'server'])
  check(['server', 'client'])
})

test('a request within the host is told once from whom to whom, whichever side comes first', () => {
  for (const serverFirst of [false, true]) {
    const edges: unknown[] = []
    const { tracer } = open(
      {},
      {
        edge: ({ client, server, failed, clientNs, serverNs }) =>
          edges.push([nameOf(client), nameOf(server), failed, clientNs, serverNs]),
      },
    )
    const client = operationOf({
      server: false,
      sequence: 7,
      pid: 1,
      peerAddress: '127.0.0.1',
      durationMs: 4,
    })
    const server = operationOf({ server: true, sequence: 7, pid: 2, peerAddress: '127.0.0.1', durationMs: 3 })
    for (const side of serverFirst ? [server, client] : [client, server]) tracer.end(side)
    assert.deepEqual(edges, [['service 1', 'service 2', false, 4_000_000, 3_000_000]], `${serverFirst}`)
  }
})

test('a server whose client does not show up is handed on after two seconds, as the root of a trace', () => {
  const { tracer, spans, clock } = open()
  const sides = local({})
  tracer.end(sides.server)
  clock.ms = 1999
  tracer.tick()
  assert.equal(spans.length, 0)
  assert.equal(tracer.joins.waitingNow, 1)
  clock.ms = 2000
  tracer.tick()
  assert.deepEqual([spans[0]!.kind, spans[0]!.parentSpanId, spans[0]!.flags], [2, nobody, 1])
  tracer.end(sides.client)
  assert.notEqual(spans[1]!.traceId, spans[0]!.traceId)
  assert.equal(tracer.joins.waitingNow, 0)
})

test('a client that shows up after something was told of its server’s trace takes that one over', () => {
  for (const ended of [false, true]) {
    const { tracer, spans } = open()
    const { client, server } = local({ pid: 2 })
    client.connection.pid = 1
    tracer.begin(server)
    const query = operationOf({ server: false, sequence: 0, pid: 2, peerAddress: '10.0.0.9' })
    tracer.end(query)
    assert.equal(spans.length, 1)
    if (ended) tracer.end(server)
    tracer.begin(client)
    if (!ended) tracer.end(server)
    tracer.end(client)
    const [asked, first, second] = spans as [Emitted, Emitted, Emitted]
    const [answer, request] = first.kind === 2 ? [first, second] : [second, first]
    assert.equal(spans.length, 3, `ended: ${ended}`)
    assert.equal(new Set(spans.map(({ traceId }) => traceId)).size, 1, `ended: ${ended}`)
    assert.deepEqual(
      [asked.parentSpanId, answer.parentSpanId, request.parentSpanId],
      [answer.spanId, request.spanId, nobody],
    )
    assert.deepEqual([tracer.joins.joined, tracer.joins.waitingNow], [2, 0])
  }
})

test('a flush hands on all that waits', () => {
  const { tracer, spans } = open()
  for (let sequence = 1; sequence <= 10; sequence++) tracer.end(local({ sequence }).server)
  assert.equal(spans.length, 0)
  tracer.flush()
  assert.equal(spans.length, 10)
  assert.equal(tracer.joins.waitingNow, 0)
})

test('an exchange without a sequence number is not joined', () => {
  const { tracer, spans } = open()
  tracer.end(local({ sequence: 0 }).server)
  assert.equal(spans.length, 1)
})

test('the ratio is exact in expectation, and what it leaves out is counted', () => {
  const check = (ratio: number, peerAddress: string) => {
    const { tracer, spans, dropped, red } = open({ ratio })
    const count = 20_000
    for (let i = 1; i <= count; i++)
      tracer.end(
        operationOf({ server: false, sequence: i * 1000, peerAddress, clientPort: 1 + (i & 0x7fff) }),
      )
    // Six standard deviations: one failure in 500 million runs.
    const slack = 6 * Math.sqrt(count * ratio * (1 - ratio))
    assert.ok(Math.abs(spans.length - count * ratio) <= slack, `${spans.length} of ${count} at ${ratio}`)
    assert.equal(spans.length + (dropped.get('sampled') ?? 0), count)
    assert.equal(points(red)[0]!.count, count)
  }
  for (const address of ['10.0.0.2', '127.0.0.1']) {
    check(0, address)
    check(0.01, address)
    check(0.5, address)
    check(0.99, address)
    check(1, address)
  }
})

test('the ratio decides alike for both sides of an exchange and for all spans of a trace', () => {
  const { tracer, spans, dropped } = open({ ratio: 0.5 })
  const count = 4000
  for (let sequence = 1; sequence <= count; sequence++) {
    const sides = local({ sequence, clientPort: 1024 + (sequence % 50_000) })
    for (const side of sequence % 2 === 0 ? (['client', 'server'] as const) : (['server', 'client'] as const))
      tracer.end(sides[side])
  }
  assert.equal(tracer.joins.waitingNow, 0)
  const kept = new Map<string, number>()
  for (const span of spans) kept.set(span.traceId, (kept.get(span.traceId) ?? 0) + 1)
  assert.ok(kept.size > count / 3 && kept.size < count / 1.5, String(kept.size))
  assert.ok([...kept.values()].every(sides => sides === 2))
  assert.equal(spans.length + dropped.get('sampled')!, 2 * count)
  // Two agents see the same header: one decision, without a word between them.
  const check = (id: string, want: number) => {
    const other = open({ ratio: 0.5 })
    const traceparent = `00-${id}-${parentId}-01`
    other.tracer.end(operationOf({ traceparent }))
    other.tracer.end(operationOf({ traceparent, server: false }))
    assert.equal(other.spans.length, want, id)
  }
  // OpenTelemetry keeps what is at or above the threshold, here half of 2^56.
  check('00000000000000000080000000000000', 2)
  check('ffffffffffffffffff7fffffffffffff', 0)
  check('000000000000000000ffffffffffffff', 2)
})

test('failed and slow exchanges are kept whatever the ratio says, if it is asked for', () => {
  const check = (given: Given, changed: Partial<TracerRules>, want: number) => {
    const { tracer, spans, dropped } = open({ ratio: 0, ...changed })
    tracer.end(operationOf(given))
    assert.equal(spans.length, want)
    assert.equal(dropped.get('sampled') ?? 0, 1 - want)
  }
  check({ status: 500 }, {}, 1)
  check({ status: 500 }, { alwaysErrors: false }, 0)
  check({ status: 404 }, {}, 0)
  check({ status: 404, server: false }, {}, 1)
  check({ durationMs: 1000 }, {}, 0)
  check({ durationMs: 1001 }, {}, 1)
  check({ durationMs: 1001 }, { alwaysSlow: false }, 0)
})

test('an excluded path makes no span and counts in the metrics', () => {
  const { tracer, spans, dropped, red } = open()
  tracer.end(operationOf({ path: '/healthz' }))
  assert.equal(spans.length, 0)
  assert.deepEqual([...dropped], [['excluded_path', 1]])
  assert.deepEqual([...tracer.collected], [['http', 1]])
  assert.equal(points(red)[0]!.count, 1)
})

test('while memory is short, long texts are left out of spans, then spans; the metrics stay exact', () => {
  const reading = { liveHeapBytes: 0, usedHeapBytes: 0, anonymousBytes: 0 }
  const bounds = { tablesBytes: 1e9, heapBytes: 1000, processBytes: 1e9 }
  const governor = new MemoryGovernor(bounds, () => reading)
  const { tracer, spans, dropped, red } = open({}, { governor })
  const long = `/${'a'.repeat(100)}`
  for (const liveHeapBytes of [0, 900, 1000]) {
    reading.liveHeapBytes = liveHeapBytes
    governor.look()
    tracer.end(operationOf({ path: long }))
    tracer.end(operationOf({ path: '/short' }))
  }
  assert.deepEqual(
    spans.map(({ attributes }) => attributes['url.path']),
    [long, '/short', undefined, '/short'],
  )
  assert.deepEqual([...dropped], [['memory_limit', 2]])
  assert.equal(
    points(red).reduce((sum, { count }) => sum + count, 0),
    6,
  )
})

test('other rules hold from the next exchange on, and what waits for its other side is not judged again', () => {
  const { tracer, spans, dropped, red } = open()
  const waiting = local({ path: '/users' })
  tracer.end(waiting.server)
  tracer.rules = { ...rules, ratio: 0, excludedPath: path => path === '/users' }
  tracer.end(operationOf({ path: '/users' }))
  tracer.end(operationOf({ path: '/healthz' }))
  assert.deepEqual(
    [...dropped],
    [
      ['excluded_path', 1],
      ['sampled', 1],
    ],
  )
  tracer.end(operationOf({ path: '/healthz', durationMs: 1001 }))
  tracer.rules = { ...tracer.rules, slowNs: 1.002e9 }
  tracer.end(operationOf({ path: '/healthz', durationMs: 1001 }))
  assert.deepEqual([spans.length, dropped.get('sampled')], [1, 2])
  tracer.rules = rules
  tracer.end(waiting.client)
  assert.equal(
    spans.find(({ kind }) => kind === 3)!.spanId,
    spans.find(({ parentSpanId }) => parentSpanId !== nobody)!.parentSpanId,
  )
  assert.equal(spans.length, 3)
  const traceparent = `00-${traceId}-${parentId}-01`
  tracer.rules = { ...rules, readContext: false }
  tracer.end(operationOf({ traceparent }))
  assert.notEqual(spans.at(-1)!.traceId, traceId)
  assert.equal(
    points(red).reduce((sum, { count }) => sum + count, 0),
    7,
  )
})

/** An export of spans over HTTP, by default of process 1 to a receiver. */
function exportOf(given: Given & { readonly port?: number; readonly line?: string } = {}): Operation {
  const { server = false, port = 4318, line = 'POST /v1/traces HTTP/1.1' } = given
  const operation = operationOf({ server, pid: 1, ...given })
  const { connection, head } = operation
  setHead(operation, `${line}\r\nHost: collector\r\nContent-Type: application/x-protobuf\r\n\r\n`)
  head.traceparentStart = head.traceparentEnd = 0
  if (server) connection.localPort = port
  else connection.peerPort = port
  return operation
}

/** A tracer before which processes count as instrumented once they exported spans. */
function openExporting() {
  const exported = new Set<number>()
  return {
    exported,
    ...open(
      {},
      {
        exports: ({ pid }) => exported.add(pid),
        hidden: ({ pid }) => (exported.has(pid) ? 'instrumented' : ''),
      },
    ),
  }
}

test('an export of telemetry is neither span nor metric', () => {
  const check = (given: Parameters<typeof exportOf>[0]) => {
    const { tracer, spans, dropped, red } = open()
    tracer.end(exportOf(given))
    assert.deepEqual([spans.length, dropped.size, tracer.collected.size, tracer.telemetry], [0, 0, 0, 1])
    assert.deepEqual(points(red), [])
  }
  check({})
  check({ port: 80, status: 404 })
  check({ server: true })
  check({ server: true, port: 4317 })
})

test('who asks a server at another port for a path of telemetry is counted like others', () => {
  for (const line of ['POST /v1/traces HTTP/1.1', 'POST /any/v1/metrics HTTP/1.1']) {
    const { tracer, spans, red, exported } = openExporting()
    tracer.end(exportOf({ server: true, port: 80, line, status: 404 }))
    tracer.end(exportOf({ server: true, port: 80, line, sequence: 2 }))
    assert.deepEqual([spans.length, tracer.telemetry, tracer.collected.get('http')], [2, 0, 2])
    assert.equal(
      points(red).reduce((sum, { count }) => sum + count, 0),
      2,
    )
    assert.equal(exported.size, 0)
  }
})

test('an application exports spans of its own where a receiver takes them at the path for it', () => {
  const check = (given: Parameters<typeof exportOf>[0], want: boolean) => {
    const { tracer, exported } = openExporting()
    tracer.end(exportOf(given))
    assert.equal(exported.has(1), want, JSON.stringify(given))
  }
  check({}, true)
  check({ port: 80, status: 202 }, true)
  for (const status of [0, 301, 404, 503]) check({ status }, false)
  // Hosted receivers have a prefix.
  check({ line: 'POST /otlp/v1/traces HTTP/1.1' }, true)
  check({ line: 'POST /v1/metrics HTTP/1.1' }, false)
  check({ line: 'GET /v1/traces HTTP/1.1' }, false)
  check({ server: true }, false)
})

test('over gRPC an application exports spans of its own by the one method, answered by OK', () => {
  const traces = 'opentelemetry.proto.collector.trace.v1.TraceService/Export'
  const check = (name: string, status: string, want: boolean, server = false) => {
    const { tracer, exported } = openExporting()
    const operation = operationOf({ server, pid: 1, peerAddress: '10.0.0.9' })
    operation.connection.fromBytes = true
    const { call } = operation
    call.name = name
    call.signalType = 'grpc'
    call.telemetry = true
    call.dimensions.add('rpc.method', name)
    if (status !== '') call.dimensions.add('rpc.response.status_code', status)
    if (status !== 'OK') call.error = status || 'no_response'
    tracer.begin(operation)
    tracer.end(operation)
    assert.equal(exported.has(1), want, `${name} ${status}`)
  }
  check(traces, 'OK', true)
  check(traces, 'UNIMPLEMENTED', false)
  check(traces, '', false)
  check(traces, 'OK', false, true)
  check('opentelemetry.proto.collector.logs.v1.LogsService/Export', 'OK', false)
  check('opentelemetry.proto.collector.trace.v1.TraceService2/Export', 'OK', false)
})

test('a proxy that passes an export on keeps its spans', () => {
  for (const path of [
    '/v1/traces',
    '/any/v1/traces',
    '/otlp/traces',
    '/v1/%74races',
    '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
    `/${'a'.repeat(300)}`,
  ]) {
    const { tracer, spans, exported } = openExporting()
    // What was cut before the version may have gone on.
    const line = `POST ${path}${path.length > 300 ? '' : ' HTTP/1.1'}`
    const incoming = exportOf({ server: true, port: 80, line })
    if (path.length > 300) incoming.head.end = line.length
    tracer.begin(incoming)
    tracer.end(exportOf({ sequence: 2, clientPort: 40_001 }))
    tracer.end(incoming)
    assert.equal(spans.length, 1, path)
    tracer.end(operationOf({ pid: 1, sequence: 3 }))
    assert.equal(spans.length, 2, path)
    exported.clear()
    tracer.end(exportOf({ sequence: 4, clientPort: 40_001 }))
    assert.equal(exported.size, 0, path)
  }
})

test('requests that pass on nothing leave an application instrumented', () => {
  const { tracer, spans, dropped, clock } = openExporting()
  const ask = (line: string, status = 200) =>
    tracer.end(exportOf({ server: true, port: 80, line, status, sequence: 9 }))
  tracer.end(exportOf())
  ask('POST /orders HTTP/1.1')
  ask('POST /v1/traces HTTP/1.1', 404)
  ask('GET /v1/traces HTTP/1.1')
  assert.deepEqual([spans.length, dropped.get('instrumented')], [0, 3])
  ask('POST /v1/traces HTTP/1.1')
  assert.equal(spans.length, 1)
  // The number may be another process's by then.
  clock.ms += 3_600_000
  ask('POST /orders HTTP/1.1')
  assert.equal(spans.length, 1)
})

test('what no protocol can read is counted as collected and as dropped', () => {
  const check = (given: Given, bytes: string | undefined) => {
    const { tracer, spans, dropped } = open()
    const operation = operationOf(given)
    if (bytes !== undefined) operation.head.bytes = Buffer.from(bytes)
    tracer.end(operation)
    assert.equal(spans.length, 0)
    assert.deepEqual([...tracer.collected], [['unknown', 1]])
    assert.deepEqual([...dropped], [['unreadable', 1]])
  }
  check({ protocol: 'smtp' }, undefined)
  check({}, '\x16\x03\x01 nothing of HTTP')
  check({}, '')
})

test('exchanges that the kernel only counted are in the metrics, without a route, and make no span', () => {
  const { tracer, spans, dropped, red } = open()
  const operation = operationOf({ path: '*', method: 'POST', status: 503 })
  const buckets = new Float64Array(15)
  buckets[0] = 2
  buckets[14] = 1
  tracer.counted(operation, 3, 12_000_000_000, buckets)
  tracer.counted(operation, 0, 500_000_000, new Float64Array(15))
  assert.deepEqual([spans.length, dropped.size], [0, 0])
  assert.deepEqual([...tracer.collected], [['http', 3]])
  const [point, ...others] = points(red)
  assert.deepEqual(others, [])
  assert.deepEqual([point!.count, point!.sum, Array.from(point!.buckets)], [3, 12.5, Array.from(buckets)])
  assert.deepEqual(point!.attributes.toObject(), {
    'http.request.method': 'POST',
    'url.scheme': 'http',
    'http.response.status_code': 503,
    'error.type': '503',
    'network.protocol.version': '1.1',
  })
  tracer.counted(operationOf({ protocol: 'smtp' }), 4, 1, buckets)
  assert.equal(tracer.collected.get('unknown'), 4)
})

test('after any sequence of exchanges what was collected is emitted, dropped or waits', () => {
  const one = fc.record({
    server: fc.boolean(),
    path: fc.constantFrom('/', '/users', '/healthz', '*'),
    status: fc.constantFrom(0, 200, 404, 500),
    sequence: fc.nat(6),
    peerAddress: fc.constantFrom('127.0.0.1', '10.0.0.2'),
    traceparent: fc.constantFrom('', `00-${traceId}-${parentId}-01`, 'nonsense'),
    protocol: fc.constantFrom('http1', 'http1', 'http1', 'smtp'),
    durationMs: fc.constantFrom(1, 2000),
  })
  const step = fc.oneof({ weight: 9, arbitrary: one }, fc.nat(1500))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), fc.constantFrom(0, 0.3, 1), (steps, ratio) => {
      const { tracer, spans, dropped, clock, red } = open({ ratio })
      const sum = (numbers: Iterable<number>) => [...numbers].reduce((a, b) => a + b, 0)
      const balance = () => spans.length + sum(dropped.values()) + tracer.joins.waitingNow
      let given = 0
      for (const next of steps) {
        if (typeof next === 'number') {
          clock.ms += next
          tracer.tick()
        } else {
          tracer.end(operationOf(next))
          given++
        }
        assert.equal(sum(tracer.collected.values()), given)
        assert.equal(balance(), given)
      }
      tracer.flush()
      assert.equal(tracer.joins.waitingNow, 0)
      assert.equal(balance(), given)
      const counted = sum(points(red).map(({ count }) => count))
      assert.equal(counted, given - (dropped.get('unreadable') ?? 0))
      for (const span of spans) assert.ok(span.endUs >= span.startUs)
    }),
    { numRuns: 200 },
  )
})

test('a hundred thousand exchanges leave no growth behind, and hardly anything for the collector', async () => {
  let emitted = 0
  const seen = new Attributes()
  const made = resource({ 'service.name': 'shop' })
  const spans: TracerOptions['spans'] = {
    add: (_resource, _scope, span) => {
      seen.clear()
      emitted += span.attributes.size > 0 ? 1 : 0
    },
  }
  const { tracer } = open({ ratio: 0.9 }, { resourceOf: () => made, spans })
  const given: Operation[] = []
  for (let i = 0; i < 256; i++) {
    given.push(local({ path: `/users/${i % 16}` }).client, local({ path: `/users/${i % 16}` }).server)
    given.push(operationOf({ traceparent: `00-${traceId}-${parentId}-01` }), operationOf({ status: 500 }))
  }
  let sequence = 0
  const run = (rounds: number) => {
    for (let round = 0; round < rounds; round++) {
      for (let i = 0; i < given.length; i += 2) {
        // Other rules now and then, and each pair is the next exchange on its connection.
        if (i % 256 === 0) tracer.rules = { ...rules, ratio: i % 512 === 0 ? 0.9 : 0.8 }
        sequence = (sequence + 1000) >>> 0
        given[i]!.sequence = sequence
        given[i + 1]!.sequence = sequence
        tracer.end(given[i]!)
        tracer.end(given[i + 1]!)
      }
    }
    tracer.flush()
  }
  const grown = await heapGrowth(() => run(50))
  assert.ok(emitted > 100_000)
  assert.ok(grown < 512 * 1024, `${grown} bytes more`)
  const bytes = heapAllocated(() => run(4)) / (4 * given.length)
  assert.ok(bytes < 64, `${bytes} bytes an exchange`)
})
