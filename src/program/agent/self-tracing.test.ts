import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startHttpReceiver } from '../../../test/helpers/otlp-http-receiver.ts'
import { type Answer, type Receiver, startReceiver } from '../../../test/helpers/otlp-receiver.ts'
import { loadConfig } from '../../config/index.ts'
import { createLogger } from '../../foundation/lib/logger.ts'
import { Attributes } from '../../foundation/model/attributes.ts'
import { LogRecord } from '../../foundation/model/log.ts'
import { resource } from '../../foundation/model/resource.ts'
import { Span, SpanKind } from '../../foundation/model/span.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import type { ExportRequest } from '../../pipeline/send-loop.ts'
import { ExportPipelines } from './export-pipelines.ts'
import { SelfTracer, type SelfTracingSettings } from './self-tracing.ts'

const identity = { serviceName: 'svc', instanceId: 'here', version: '1.2.3', hostName: 'host' }
const all = { enabled: true, sampleRate: 1 }

interface Scene {
  readonly tracer: SelfTracer
  readonly pipeline: Pipeline
  readonly receiver: Receiver
  /** Sends until nothing is left. */
  settle(): Promise<void>
}

/** A tracer whose spans go through a real pipeline to a receiver, and whose exports it traces. */
async function open(t: TestContext, settings: SelfTracingSettings = all): Promise<Scene> {
  const receiver = await startReceiver({ keep: true })
  t.after(() => receiver.close())
  const { pipeline } = pipelines(t, receiver.endpoint, request => tracer.exportRequest(request))
  const tracer = new SelfTracer({
    emit: (of, scope, span) => pipeline.intake('traces').add(of, scope, span),
    resource: identity,
    settings,
  })
  const settle = async () => {
    for (let round = 0; pipeline.state('traces').queued > 0; round++) {
      assert.ok(round < 10, 'each export is the reason for another')
      await pipeline.flush(60_000)
    }
  }
  return { tracer, pipeline, receiver, settle }
}

function pipelines(
  t: TestContext,
  endpoint: string,
  observe: (request: ExportRequest) => void,
  env: Readonly<Record<string, string>> = {},
): ExportPipelines {
  const { config, problems } = loadConfig({
    explicit: false,
    cwd: '/nonexistent',
    systemFile: '/nonexistent',
    env: {
      SVC_OTLP_ENDPOINT: endpoint,
      SVC_OTLP_INSECURE: 'true',
      SVC_BACKOFF_INITIAL: '10ms',
      SVC_BACKOFF_MAX: '20ms',
      SVC_PIPELINE_EXPORT_BATCH_TIMEOUT: '1m',
      SVC_PIPELINE_EXPORT_QUEUE_ENABLED: 'false',
      ...env,
    },
  })
  assert.deepEqual(problems, [])
  const log = createLogger({ level: 'error', format: 'text', write: () => {} })
  const made = new ExportPipelines(config, { log, observe, lock: () => true })
  t.after(() => made.pipeline.close())
  return made
}

/** A tracer whose spans are kept, and a clock that stands still unless it is told otherwise. */
function keeping(settings: SelfTracingSettings = all) {
  const kept: Span[] = []
  const clock = { ms: 0 }
  const emit = (_resource: unknown, _scope: unknown, span: Span) => void kept.push(span)
  const tracer = new SelfTracer({ emit, resource: identity, settings, now: () => clock.ms })
  return { tracer, kept, clock }
}

function addSpans({ pipeline }: Scene, count: number): void {
  const span = new Span()
  span.name = 'of an application'
  const shop = resource({ 'service.name': 'shop' })
  for (let i = 0; i < count; i++) pipeline.intake('traces').add(shop, { name: 'x', version: '' }, span)
}

const exported = 'opentelemetry.proto.collector.trace.v1.TraceService/Export'
const someRequest: ExportRequest = {
  endpoint: 'h:1',
  signal: 'traces',
  errorType: '',
  latencySeconds: 0.25,
  items: 7,
  call: { protocol: 'grpc', method: exported },
  httpStatus: undefined,
}
const namesOf = ({ receiver }: Scene) => receiver.lines.map(({ name }) => name)

test('an operation and what it consists of arrive as one trace, with who we are', async t => {
  const scene = await open(t)
  const { tracer, receiver } = scene
  const before = Date.now()
  const reload = tracer.begin('reload')
  const parse = tracer.begin('parse', SpanKind.internal, reload)
  parse.attribute('svc.keys', 12)
  parse.fail('syntax')
  parse.end()
  parse.end()
  reload.attribute('svc.changed', false)
  reload.attribute('svc.changed', true)
  reload.end()
  await scene.settle()
  const after = Date.now()

  assert.equal(tracer.made, 2)
  assert.equal(receiver.lines.length, 2)
  const [child, root] = receiver.lines
  assert.ok(child !== undefined && root !== undefined)
  for (const { resource, scope, kind, flags, startNs, endNs } of [child, root]) {
    assert.deepEqual(resource, {
      'service.name': 'svc',
      'service.instance.id': 'here',
      'service.version': '1.2.3',
      'host.name': 'host',
      'telemetry.sdk.name': 'svc',
      'telemetry.sdk.version': '1.2.3',
      'telemetry.sdk.language': 'nodejs',
    })
    assert.equal(scope, 'svc/self')
    assert.equal(kind, SpanKind.internal)
    assert.equal(flags, 1)
    assert.ok(Number(startNs) / 1e6 > before - 2 && Number(endNs) / 1e6 < after + 2)
  }
  assert.deepEqual([root.name, root.status, root.attributes], ['reload', 0, { 'svc.changed': true }])
  assert.deepEqual(
    [child.name, child.status, child.attributes],
    ['parse', 2, { 'svc.keys': 12, 'error.type': 'syntax' }],
  )
  assert.match(String(root.traceId), /^(?!0+$)[0-9a-f]{32}$/)
  assert.match(String(root.spanId), /^(?!0+$)[0-9a-f]{16}$/)
  assert.equal(root.parentSpanId, '')
  assert.equal(child.traceId, root.traceId)
  assert.equal(child.parentSpanId, root.spanId)
  assert.notEqual(child.spanId, root.spanId)
  const times = [root.startNs, child.startNs, child.endNs, root.endNs].map(ns => BigInt(String(ns)))
  assert.deepEqual(
    times,
    times.toSorted((a, b) => Number(a - b)),
    'a child lies within its parent',
  )
})

test('the sample rate decides for an operation, and what is within it follows', () => {
  const check = (settings: SelfTracingSettings, least: number, most: number) => {
    const { tracer, kept, clock } = keeping(settings)
    for (let i = 0; i < 10_000; i++) {
      clock.ms += 100
      const root = tracer.begin('root')
      const child = tracer.begin('child', SpanKind.internal, root)
      assert.equal(child.recording, root.recording)
      child.end()
      root.end()
    }
    const roots = kept.filter(({ name }) => name === 'root').length
    assert.equal(kept.length, 2 * roots)
    assert.equal(tracer.made, kept.length)
    assert.equal(tracer.lost, 0)
    assert.ok(roots >= least && roots <= most, `${roots} of 10000 at ${settings.sampleRate}`)
  }
  check({ enabled: true, sampleRate: 1 }, 10_000, 10_000)
  check({ enabled: true, sampleRate: 0 }, 0, 0)
  check({ enabled: false, sampleRate: 1 }, 0, 0)
  check({ enabled: true, sampleRate: 0.5 }, 5000 - 250, 5000 + 250) // five standard deviations
  check({ enabled: true, sampleRate: 0.01 }, 100 - 50, 100 + 50)
})

test('what is not traced is one shared object that takes everything', () => {
  const { tracer, kept } = keeping({ enabled: false, sampleRate: 1 })
  const operation = tracer.begin('reload')
  assert.equal(operation, tracer.begin('flush', SpanKind.client, operation))
  assert.equal(operation.recording, false)
  operation.attribute('a', 1)
  operation.fail('b')
  operation.end()
  assert.deepEqual(kept, [])
})

test('a change of the settings holds for what begins from then on', () => {
  const { tracer, kept } = keeping({ enabled: false, sampleRate: 1 })
  const before = tracer.begin('before')
  tracer.configure(all)
  const on = tracer.begin('on')
  const within = tracer.begin('within', SpanKind.internal, before)
  tracer.configure({ enabled: true, sampleRate: 0 })
  const after = tracer.begin('after')
  for (const operation of [before, on, within, after]) operation.end()
  assert.deepEqual(
    kept.map(({ name }) => name),
    ['on'],
  )
})

test('a hundred operations a second are traced, and the others counted', () => {
  const { tracer, kept, clock } = keeping()
  for (let i = 0; i < 250; i++) tracer.begin('reload').end()
  assert.deepEqual([kept.length, tracer.made, tracer.lost], [100, 100, 150])
  clock.ms = 999
  tracer.begin('reload').end()
  assert.deepEqual([tracer.made, tracer.lost], [100, 151])
  clock.ms = 1000
  for (let i = 0; i < 101; i++) tracer.begin('reload').end()
  assert.deepEqual([tracer.made, tracer.lost], [200, 152])
  tracer.configure({ enabled: true, sampleRate: 0 })
  tracer.begin('reload').end()
  assert.equal(tracer.lost, 152, 'what sampling leaves out is no loss')
})

test('an export request is a call of the receiver, in the words of its protocol', () => {
  const check = (
    request: Pick<ExportRequest, 'endpoint' | 'errorType'> & Partial<ExportRequest>,
    name: string,
    want: Readonly<Record<string, unknown>>,
    status: number,
  ) => {
    const { tracer, kept, clock } = keeping()
    clock.ms = 5000
    tracer.exportRequest({ ...someRequest, ...request })
    const [span] = kept
    assert.ok(span !== undefined)
    assert.deepEqual([span.name, span.kind, span.status], [name, SpanKind.client, status])
    assert.equal(span.endUs - span.startUs, 250_000)
    assert.deepEqual(span.attributes.toObject(), { 'svc.signal': 'traces', 'svc.items': 7, ...want })
  }
  const grpc = { 'rpc.system.name': 'grpc', 'rpc.method': exported }
  const collector = { ...grpc, 'server.address': 'collector.example', 'server.port': 4317 }
  const endpoint = 'collector.example:4317'
  check({ endpoint, errorType: '' }, exported, { ...collector, 'rpc.response.status_code': 'OK' }, 0)
  check(
    { endpoint, errorType: 'unavailable' },
    exported,
    { ...collector, 'rpc.response.status_code': 'UNAVAILABLE', 'error.type': 'UNAVAILABLE' },
    2,
  )
  check(
    { endpoint: '[::1]:1', errorType: 'connect' },
    exported,
    { ...grpc, 'server.address': '::1', 'server.port': 1, 'error.type': 'connect' },
    2,
  )
  const url = 'https://collector.example:4318/v1/traces'
  const http = { 'http.request.method': 'POST', 'url.full': url, 'server.address': 'h', 'server.port': 4318 }
  const post = { endpoint: 'h:4318', call: { protocol: 'http', url } } as const
  check({ ...post, errorType: '', httpStatus: 202 }, 'POST', { ...http, 'http.response.status_code': 202 }, 0)
  // What the pipeline calls unauthenticated, as over gRPC, is a status here.
  check(
    { ...post, errorType: 'unauthenticated', httpStatus: 401 },
    'POST',
    { ...http, 'http.response.status_code': 401, 'error.type': '401' },
    2,
  )
  check({ ...post, errorType: 'dns' }, 'POST', { ...http, 'error.type': 'dns' }, 2)
})

test('each destination of a real pipeline is traced by the protocol that it has', async t => {
  const http = await startHttpReceiver()
  t.after(() => http.close())
  const grpc = await startReceiver()
  t.after(() => grpc.close())
  http.answer = ({ path }) => (path === '/v1/logs' ? { kind: 'ok' } : { kind: 'refuse', status: 400 })
  const { tracer, kept } = keeping()
  const { pipeline } = pipelines(t, grpc.endpoint, request => tracer.exportRequest(request), {
    SVC_OTLP_LOGS_PROTOCOL: 'http/json',
    SVC_OTLP_LOGS_ENDPOINT: `${http.endpoint}/v1/logs`,
    SVC_OTLP_METRICS_PROTOCOL: 'http/protobuf',
    SVC_OTLP_METRICS_ENDPOINT: `${http.endpoint}/own/path`,
  })
  const shop = resource({ 'service.name': 'shop' })
  const scope = { name: 'x', version: '' }
  // More than there are of ours, which alone would not be traced.
  for (let i = 0; i < 5; i++) pipeline.intake('traces').add(shop, scope, new Span())
  pipeline.intake('logs').add(shop, scope, new LogRecord())
  pipeline.intake('metrics').add(shop, scope, {
    kind: 'gauge',
    name: 'g',
    description: '',
    unit: '',
    points: [{ attributes: new Attributes(), startUs: 0, timeUs: 1, value: 1 }],
  })
  await pipeline.flush(60_000)
  const told = kept.map(({ name, attributes }) => {
    const { 'svc.signal': signal, ...rest } = attributes.toObject()
    return [
      signal,
      name,
      rest['url.full'],
      rest['http.response.status_code'],
      rest['rpc.method'],
      rest['error.type'],
    ]
  })
  assert.deepEqual(
    told.sort((a, b) => String(a[0]).localeCompare(String(b[0]))),
    [
      ['logs', 'POST', `${http.endpoint}/v1/logs`, 200, undefined, undefined],
      ['metrics', 'POST', `${http.endpoint}/REDACTED`, 400, undefined, '400'],
      ['traces', exported, undefined, undefined, exported, undefined],
    ],
  )
})

test('a request to the API is a call that we served', () => {
  const check = (route: string, status: number, name: string, want: object, code: number) => {
    const { tracer, kept } = keeping()
    tracer.apiRequest({ method: 'GET', route, status, seconds: 0.5 })
    const [span] = kept
    assert.ok(span !== undefined)
    assert.deepEqual([span.name, span.kind, span.status], [name, SpanKind.server, code])
    assert.equal(span.endUs - span.startUs, 500_000)
    assert.deepEqual(span.attributes.toObject(), {
      'http.request.method': 'GET',
      'http.response.status_code': status,
      ...want,
    })
  }
  check('/status', 200, 'GET /status', { 'http.route': '/status' }, 0)
  check('', 404, 'GET', {}, 0)
  check('/ready', 503, 'GET /ready', { 'http.route': '/ready', 'error.type': '503' }, 2)
})

test('an export of application spans is traced, and the export of that span is not', async t => {
  const scene = await open(t)
  addSpans(scene, 5)
  await scene.settle()
  assert.deepEqual(namesOf(scene), [...Array(5).fill('of an application'), exported])
  assert.equal(scene.receiver.requests.length, 2)
  addSpans(scene, 3)
  scene.tracer.begin('reload').end()
  await scene.settle()
  assert.deepEqual(namesOf(scene).slice(6), [...Array(3).fill('of an application'), 'reload', exported])
  assert.equal(scene.receiver.requests.length, 4)
})

test('a pipeline with nothing to do becomes silent at any rate of tracing', async t => {
  const scene = await open(t)
  const { tracer, pipeline, receiver } = scene
  // Batches of ours that are under way together with those of others, and exports of another signal.
  for (let round = 0; round < 20; round++) {
    tracer.begin('reload').end()
    if (round % 3 === 0) addSpans(scene, 2)
    tracer.exportRequest({ ...someRequest, endpoint: 'a:1', signal: 'metrics', items: 1 })
    void pipeline.flush(60_000)
  }
  await scene.settle()
  assert.equal(receiver.counts.traces, tracer.made + 14)
  assert.ok(tracer.made > 40, 'exports with spans of applications were traced')
  assert.ok(tracer.made < 80)
})

test('tries in vain to send spans of ours are not traced, so that an outage does not grow', async t => {
  const check = async (answer: Answer, want: number) => {
    const scene = await open(t)
    const { tracer, receiver } = scene
    let left = 5
    receiver.answer = () => (left-- > 0 ? answer : { kind: 'ok' })
    tracer.begin('reload').end()
    await scene.settle()
    assert.equal(tracer.made, 1)
    assert.equal(receiver.counts.traces, want)
    left = 0
    addSpans(scene, 3)
    await scene.settle()
    assert.equal(tracer.made, 2, 'tracing of exports goes on')
  }
  await check({ kind: 'refuse', code: 14 }, 1)
  await check({ kind: 'refuse', code: 3 }, 0)
})
