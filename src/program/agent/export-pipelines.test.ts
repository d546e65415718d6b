import assert from 'node:assert/strict'
import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeCertificates } from '../../../test/helpers/certificates.ts'
import {
  type Answer,
  type Receiver,
  type ReceiverOptions,
  spawnReceiver,
  startReceiver,
} from '../../../test/helpers/otlp-receiver.ts'
import { soak } from '../../../test/helpers/soak.ts'
import { type Config, loadConfig } from '../../config/index.ts'
import { createLogger } from '../../foundation/lib/logger.ts'
import { Attributes } from '../../foundation/model/attributes.ts'
import { LogRecord } from '../../foundation/model/log.ts'
import { resource } from '../../foundation/model/resource.ts'
import { signals } from '../../foundation/model/signal.ts'
import { Span } from '../../foundation/model/span.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import { ExportPipelines } from './export-pipelines.ts'

const switches = soak ? 2000 : 200
const host = resource({ 'host.name': 'test' })
const scope = { name: 'svc', version: '1' }
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

/** No file of TLS has a new content. */
const none: ReadonlySet<string> = new Set()

const quick = {
  SVC_OTLP_INSECURE: 'true',
  SVC_BACKOFF_INITIAL: '10ms',
  SVC_BACKOFF_MAX: '50ms',
  SVC_PIPELINE_EXPORT_BATCH_TIMEOUT: '5ms',
  SVC_PIPELINE_EXPORT_QUEUE_ENABLED: 'false',
}

/** What the agent would run by, from variables of its environment. */
function configOf(env: Record<string, string>): Config {
  const nowhere = '/nonexistent'
  const all = { ...quick, ...env }
  const { config, problems } = loadConfig({ explicit: false, cwd: nowhere, systemFile: nowhere, env: all })
  assert.deepEqual(problems, [])
  return config
}

function open(t: TestContext, env: Record<string, string>): ExportPipelines {
  const log = createLogger({ level: 'error', format: 'text', write: () => {} })
  const pipelines = new ExportPipelines(configOf(env), { log, observe: () => {}, lock: () => true })
  t.after(() => pipelines.pipeline.close())
  return pipelines
}

function change(pipelines: ExportPipelines, env: Record<string, string>): void {
  const ready = pipelines.prepare(configOf(env), none)
  assert.ok(ready, 'nothing differs')
  ready.commit()
}

async function receive(t: TestContext, options: ReceiverOptions = {}): Promise<Receiver> {
  const receiver = await startReceiver(options)
  t.after(() => receiver.close())
  return receiver
}

function balanced(pipeline: Pipeline): void {
  for (const signal of signals) {
    const { collected, exported, exportedBy, rejected, droppedTotal, queued } = pipeline.state(signal)
    assert.equal(collected, exported + rejected + droppedTotal + queued, signal)
    assert.equal(
      exported,
      [...exportedBy.values()].reduce((sum, items) => sum + items, 0),
      signal,
    )
  }
}

/** Looks again and again, and that the balance holds; the test's own time limit ends it. */
async function until(pipeline: Pipeline, condition: () => boolean): Promise<void> {
  while (!condition()) {
    balanced(pipeline)
    await pause(2)
  }
}

let made = 0
function addSpans({ pipeline }: ExportPipelines, count: number): string[] {
  const span = new Span()
  return Array.from({ length: count }, () => {
    span.name = `span ${made++}`
    pipeline.intake('traces').add(host, scope, span)
    return span.name
  })
}

function addOfEach(pipelines: ExportPipelines): void {
  addSpans(pipelines, 1)
  const attributes = new Attributes()
  const points = [{ attributes, startUs: 0, timeUs: 1, value: 1 }]
  pipelines.pipeline
    .intake('metrics')
    .add(host, scope, { kind: 'gauge', name: 'g', description: '', unit: '1', points })
  pipelines.pipeline.intake('logs').add(host, scope, new LogRecord())
}

/** Sends one item of each signal and answers how many were acknowledged. */
async function sendOfEach(pipelines: ExportPipelines): Promise<number> {
  addOfEach(pipelines)
  const { acknowledged } = await pipelines.pipeline.flush(60_000)
  return acknowledged.traces + acknowledged.metrics + acknowledged.logs
}

function openSockets(): number {
  return readdirSync('/proc/self/fd').filter(name => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`).startsWith('socket:')
    } catch {
      return false // the descriptor of the listing itself
    }
  }).length
}

test('under steady traffic and faults the endpoint changes again and again, and no item is lost', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-pipelines-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const dumps = [join(directory, 'a'), join(directory, 'b')]
  // In processes of their own, so that all sockets here are the agent's.
  const receivers = await Promise.all(dumps.map(dump => spawnReceiver({ dump })))
  for (const receiver of receivers) t.after(() => receiver.close())
  const faults: readonly Answer[] = [
    { kind: 'refuse', code: 14 },
    { kind: 'refuse', code: 16 },
    { kind: 'refuse', code: 8, retryMs: 20 },
    { kind: 'stall' },
    { kind: 'cut' },
  ]
  const envOf = (round: number): Record<string, string> => ({
    SVC_OTLP_ENDPOINT: receivers[round % 2]!.endpoint,
    SVC_OTLP_TIMEOUT: '200ms',
    SVC_OTLP_COMPRESSION: round % 3 === 0 ? 'gzip' : 'none',
    SVC_OTLP_CONCURRENCY: String(1 + (round % 4)),
    SVC_OTLP_MAX_MESSAGE_SIZE: round % 5 === 0 ? '64Ki' : '4Mi',
    SVC_QUEUES_TRACES_BATCH_SIZE: String(10 + (round % 7) * 30),
    SVC_QUEUES_TRACES_MEM_LIMIT: `${20 + (round % 2)}Mi`,
  })
  const socketsBefore = openSockets()
  const pipelines = open(t, envOf(0))
  const { pipeline } = pipelines
  const sent: string[] = []
  for (let round = 1; round <= switches; round++) {
    const receiver = receivers[Math.floor(Math.random() * 2)]!
    const chance = Math.floor(Math.random() * 4 * faults.length)
    await receiver.answer(faults[chance] ?? { kind: 'ok' })
    if (chance === 10) await receiver.cut()
    if (chance === 11) await receiver.goAway()
    for (let i = Math.floor(Math.random() * 4); i >= 0; i--) {
      sent.push(...addSpans(pipelines, 25))
      balanced(pipeline)
      await pause(1)
    }
    sent.push(...addSpans(pipelines, 5))
    change(pipelines, envOf(round))
    balanced(pipeline)
    assert.equal(pipeline.state('traces').destination?.endpoint, receivers[round % 2]!.endpoint)
  }
  for (const receiver of receivers) await receiver.answer({ kind: 'ok' })
  await until(pipeline, () => pipeline.state('traces').queued === 0)
  const { collected, exported, droppedTotal, exportedBy, failedRequests } = pipeline.state('traces')
  assert.deepEqual([collected, exported, droppedTotal], [sent.length, sent.length, 0])
  assert.deepEqual([...exportedBy.keys()].sort(), receivers.map(({ endpoint }) => endpoint).sort())
  assert.ok(failedRequests > 0)
  const lines = dumps.flatMap(dump => readFileSync(dump, 'utf8').trimEnd().split('\n'))
  const arrived = new Set(lines.map(line => (JSON.parse(line) as { name: string }).name))
  assert.deepEqual(
    sent.filter(name => !arrived.has(name)),
    [],
  )
  // One connection is in use; those of the past are closed.
  await until(pipeline, () => openSockets() <= socketsBefore + 1)
  await pipeline.close()
  await until(pipeline, () => openSockets() === socketsBefore)
})

test('from nowhere to somewhere and back, with the reason in the books', async t => {
  const receiver = await receive(t)
  const pipelines = open(t, {})
  const { pipeline } = pipelines
  const intake = pipeline.intake('traces')
  addSpans(pipelines, 3)
  change(pipelines, { SVC_OTLP_ENDPOINT: receiver.endpoint })
  assert.equal(await sendOfEach(pipelines), 3)
  change(pipelines, { SVC_OTLP_ENDPOINT: receiver.endpoint, SVC_OTLP_LOGS_ENABLED: 'false' })
  assert.equal(await sendOfEach(pipelines), 2)
  assert.deepEqual([...pipeline.state('logs').dropped], [['no_endpoint', 1]])
  change(pipelines, {})
  assert.equal(await sendOfEach(pipelines), 0)
  assert.deepEqual([...pipeline.state('traces').dropped], [['no_endpoint', 4]])
  change(pipelines, { SVC_OTLP_ENDPOINT: receiver.endpoint })
  assert.equal(await sendOfEach(pipelines), 3)
  assert.equal(pipeline.intake('traces'), intake)
  assert.equal(receiver.counts.traces, 3)
  balanced(pipeline)
})

test('other headers reach the receiver with the next request, and free what was parked', async t => {
  const receiver = await receive(t)
  receiver.answer = ({ headers }) =>
    headers['x-token'] === 'new' ? { kind: 'ok' } : { kind: 'refuse', code: 16 }
  const env = {
    SVC_OTLP_ENDPOINT: receiver.endpoint,
    SVC_OTLP_HEADERS: '{"X-Token": "old"}',
    SVC_BACKOFF_MAX: '1h',
  }
  const pipelines = open(t, env)
  const { pipeline } = pipelines
  addSpans(pipelines, 3)
  await until(pipeline, () => pipeline.state('traces').destination?.parked === true)
  assert.equal(pipeline.state('traces').queued, 3)
  change(pipelines, { ...env, SVC_OTLP_HEADERS: '{"X-Token": "new"}' })
  assert.equal(pipeline.state('traces').destination?.parked, false)
  await until(pipeline, () => pipeline.state('traces').exported === 3)
  assert.deepEqual(
    receiver.requests.map(({ headers }) => headers['x-token']),
    ['old', 'new'],
  )
})

test('a sender whose settings are equal keeps its connection', async t => {
  const receiver = await receive(t)
  const env = { SVC_OTLP_ENDPOINT: receiver.endpoint }
  const pipelines = open(t, env)
  assert.equal(await sendOfEach(pipelines), 3)
  assert.equal(receiver.counts.connections, 1)
  assert.equal(pipelines.prepare(configOf({ ...env, SVC_LOG_LEVEL: 'debug' }), none), undefined)
  for (const other of [
    { SVC_OTLP_CONCURRENCY: '2' },
    { SVC_OTLP_MAX_MESSAGE_SIZE: '1Mi' },
    { SVC_QUEUES_LOGS_MEM_LIMIT: '2Mi' },
    { SVC_QUEUES_METRICS_MAX_AGE: '2h' },
    { SVC_BACKOFF_MULTIPLIER: '3' },
    { SVC_PIPELINE_EXPORT_ON_AUTH_ERROR: 'drop' },
  ]) {
    change(pipelines, { ...env, ...other })
    assert.equal(await sendOfEach(pipelines), 3)
  }
  assert.equal(receiver.counts.connections, 1)
  // Traces go on alone; the others stay where they are.
  change(pipelines, { ...env, SVC_OTLP_TRACES_HEADERS: '{"x-a": "b"}' })
  assert.equal(await sendOfEach(pipelines), 3)
  assert.equal(receiver.counts.connections, 2)
  assert.deepEqual(
    new Map(receiver.requests.slice(-3).map(({ signal, headers }) => [signal, headers['x-a']])),
    new Map([
      ['traces', 'b'],
      ['metrics', undefined],
      ['logs', undefined],
    ]),
  )
})

test('requests made under a larger limit are still sent', async t => {
  const receiver = await receive(t)
  receiver.answer = () => ({ kind: 'refuse', code: 14 })
  const env = { SVC_OTLP_ENDPOINT: receiver.endpoint, SVC_OTLP_COMPRESSION: 'none' }
  const pipelines = open(t, env)
  const { pipeline } = pipelines
  addSpans(pipelines, 8000)
  await until(pipeline, () => pipeline.state('traces').destination?.lastError !== null)
  assert.ok(pipeline.state('traces').queuedBytes / pipeline.state('traces').queuedBatches > 64 * 1024)
  change(pipelines, { ...env, SVC_OTLP_MAX_MESSAGE_SIZE: '64Ki' })
  receiver.answer = () => ({ kind: 'ok' })
  await until(pipeline, () => pipeline.state('traces').exported === 8000)
})

test('a destination that cannot be made is rejected, and the previous configuration stays active', async t => {
  const receiver = await receive(t)
  const directory = mkdtempSync(join(tmpdir(), 'svc-pipelines-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const garbage = join(directory, 'garbage.pem')
  writeFileSync(garbage, 'no certificate')
  const pipelines = open(t, { SVC_OTLP_ENDPOINT: receiver.endpoint })
  assert.equal(await sendOfEach(pipelines), 3)
  const check = async (env: Record<string, string>, want: RegExp) => {
    assert.throws(() => pipelines.prepare(configOf(env), none), want)
    assert.deepEqual(pipelines.faults, [])
    assert.equal(await sendOfEach(pipelines), 3)
  }
  const path = `http://${receiver.endpoint}/v1/traces`
  await check(
    { OTEL_EXPORTER_OTLP_ENDPOINT: path },
    /^Error: cannot export traces: .*gRPC has no paths; delete .*; correct otlp\.traces, otlp/,
  )
  const secure = { SVC_OTLP_ENDPOINT: `https://${receiver.endpoint}` }
  await check(
    { ...secure, SVC_OTLP_METRICS_TLS_CA_FILE: join(directory, 'none.pem') },
    /^Error: cannot export metrics: otlp\.metrics\.tls\.ca_file \/.*none\.pem: there is no such file; correct/,
  )
  await check(
    { ...secure, SVC_OTLP_TLS_CERT_FILE: garbage, SVC_OTLP_TLS_KEY_FILE: garbage },
    /^Error: cannot export traces: OpenSSL rejected .*cert_file .*garbage\.pem.*; correct otlp\.traces\.tls/,
  )
  assert.equal(receiver.counts.connections, 1)
})

test('an endpoint that comes by a reload finds its queue in memory, and that is said', async t => {
  const receiver = await receive(t)
  const directory = mkdtempSync(join(tmpdir(), 'svc-pipelines-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const env = {
    SVC_PIPELINE_EXPORT_QUEUE_ENABLED: 'true',
    SVC_PIPELINE_EXPORT_QUEUE_DIRECTORY: join(directory, 'queue'),
  }
  const pipelines = open(t, env)
  assert.equal(pipelines.store, undefined, 'without an endpoint there is nothing to keep')
  change(pipelines, { ...env, SVC_OTLP_ENDPOINT: receiver.endpoint })
  assert.match(String(pipelines.store), /no endpoint was configured at the start/)
  assert.equal(await sendOfEach(pipelines), 3)
  change(pipelines, env)
  assert.equal(pipelines.store, undefined)
  assert.deepEqual(readdirSync(directory), [])
})

test('at the start a destination that cannot be made is a fault that stops no other signal', async t => {
  const receiver = await receive(t)
  const env = { SVC_OTLP_ENDPOINT: receiver.endpoint }
  const path = { OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: `http://${receiver.endpoint}/v1/logs` }
  const pipelines = open(t, { ...env, ...path })
  assert.deepEqual(
    pipelines.faults.map(({ signal }) => signal),
    ['logs'],
  )
  assert.equal(await sendOfEach(pipelines), 2)
  // What concerns other keys is not held up by it; what concerns export is, until it is fixed.
  assert.equal(pipelines.prepare(configOf({ ...env, ...path, SVC_LOG_LEVEL: 'debug' }), none), undefined)
  assert.throws(
    () => pipelines.prepare(configOf({ ...env, ...path, SVC_OTLP_CONCURRENCY: '2' }), none),
    /export logs/,
  )
  change(pipelines, env)
  assert.deepEqual(pipelines.faults, [])
  assert.equal(await sendOfEach(pipelines), 3)
})

test('a change that is not made leaves all as it was', async t => {
  const [receiver, other] = [await receive(t), await receive(t)]
  const pipelines = open(t, { SVC_OTLP_ENDPOINT: receiver.endpoint })
  pipelines.prepare(configOf({ SVC_OTLP_ENDPOINT: other.endpoint }), none)!.abort()
  assert.equal(await sendOfEach(pipelines), 3)
  assert.deepEqual([receiver.counts.traces, other.counts.requests], [1, 0])
})

test('renewed files of TLS are taken up by a new connection', async t => {
  const certificates = makeCertificates()
  t.after(() => certificates.remove())
  const { file, text } = certificates
  const tls = { cert: text('server.pem'), key: text('server.key'), clientCa: text('ca.pem') }
  const receiver = await receive(t, { tls })
  const [cert, key] = [file('mine.pem'), file('mine.key')]
  const show = (name: string) => {
    copyFileSync(file(`${name}.pem`), cert)
    copyFileSync(file(`${name}.key`), key)
  }
  show('client')
  const env = {
    SVC_OTLP_ENDPOINT: `https://${receiver.endpoint}`,
    SVC_OTLP_TLS_CA_FILE: file('ca.pem'),
    SVC_OTLP_TLS_CERT_FILE: cert,
    SVC_OTLP_TLS_KEY_FILE: key,
  }
  const pipelines = open(t, env)
  assert.equal(await sendOfEach(pipelines), 3)
  show('server')
  const renewed = new Set(signals.flatMap(signal => [`otlp.${signal}.tls.cert_file`]))
  pipelines.prepare(configOf(env), renewed)!.commit()
  assert.equal(await sendOfEach(pipelines), 3)
  assert.equal(receiver.counts.connections, 2)
  // A pair that does not fit is told before anything is closed.
  copyFileSync(file('client.key'), key)
  assert.throws(() => pipelines.prepare(configOf(env), renewed), /OpenSSL rejected .*key_file/)
  assert.equal(await sendOfEach(pipelines), 3)
  assert.equal(receiver.counts.connections, 2)
})
