import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { type Receiver, spawnReceiver, startReceiver } from '../../test/helpers/otlp-receiver.ts'
import { freePort } from '../../test/helpers/program.ts'
import { soak } from '../../test/helpers/soak.ts'
import { createLogger } from '../foundation/lib/logger.ts'
import { Attributes } from '../foundation/model/attributes.ts'
import { plainBatch } from '../foundation/model/batch.ts'
import { LogRecord } from '../foundation/model/log.ts'
import { resource } from '../foundation/model/resource.ts'
import { signals } from '../foundation/model/signal.ts'
import { Span } from '../foundation/model/span.ts'
import { logEncoding } from './exporters/otlp/encode-log.ts'
import { metricEncoding } from './exporters/otlp/encode-metric.ts'
import { profileEncoding } from './exporters/otlp/encode-profile.ts'
import { traceEncoding } from './exporters/otlp/encode-trace.ts'
import { RequestBuilder } from './exporters/otlp/request.ts'
import { otlpGrpc } from './exporters/otlp-grpc.ts'
import { Pipeline, type PipelineSettings, type SignalQueueSettings } from './pipeline.ts'

const host = resource({ 'host.name': 'test' })
const scope = { name: 'svc', version: '1' }

interface Options extends Partial<Omit<SignalQueueSettings, 'sender'>> {
  readonly timeoutMs?: number
  readonly retry?: Partial<PipelineSettings['retry']>
}

/** Settings for an endpoint, undefined for none, with short waits and small bounds. */
function settingsFor(endpoint: string | undefined, options: Options = {}): PipelineSettings {
  const { timeoutMs = 20_000, retry, ...overrides } = options
  const sender =
    endpoint === undefined
      ? undefined
      : otlpGrpc({
          endpoint,
          insecure: true,
          headers: {},
          compression: 'gzip',
          timeoutMs,
          tls: { caFile: '', certFile: '', keyFile: '', serverName: '', insecureSkipVerify: false },
          version: '0',
        })
  const queue = {
    sender,
    batchItems: 100,
    batchBytes: 3.75 * 1024 * 1024,
    requestBytes: 3.75 * 1024 * 1024,
    batchTimeoutMs: 5,
    queueBytes: 4 << 20,
    maxAgeMs: 0,
    concurrency: 4,
    ...overrides,
  }
  return {
    queues: { traces: queue, metrics: queue, logs: queue, profiles: queue },
    retry: { initialMs: 5, maxMs: 50, multiplier: 2, jitter: 0.2, maxElapsedMs: 0, ...retry },
    onAuthError: 'park',
  }
}

function open(t: TestContext, endpoint: string | undefined, options: Options = {}): Pipeline {
  const imbalances: unknown[] = []
  const pipeline = new Pipeline({
    settings: settingsFor(endpoint, options),
    builders: {
      traces: new RequestBuilder(traceEncoding),
      metrics: new RequestBuilder(metricEncoding),
      logs: new RequestBuilder(logEncoding),
      profiles: new RequestBuilder(profileEncoding()),
    },
    log: createLogger({ level: 'error', format: 'text', write: () => {} }),
    observe: () => {
      try {
        balanced(pipeline)
      } catch (error) {
        imbalances.push(error)
      }
    },
  })
  t.after(async () => {
    await pipeline.close()
    assert.deepEqual(imbalances, [])
  })
  return pipeline
}

/** Fails unless every item of every signal is in exactly one column. */
function balanced(pipeline: Pipeline): void {
  for (const signal of signals) {
    const { collected, exported, exportedBy, rejected, droppedTotal, queued } = pipeline.state(signal)
    assert.equal(
      exported,
      [...exportedBy.values()].reduce((sum, items) => sum + items, 0),
      signal,
    )
    assert.equal(collected, exported + rejected + droppedTotal + queued, signal)
    assert.equal(pipeline.ledger[signal].queued, queued, signal)
  }
}

async function receive(t: TestContext, options: Parameters<typeof startReceiver>[0] = {}): Promise<Receiver> {
  const receiver = await startReceiver(options)
  t.after(() => receiver.close())
  return receiver
}

let made = 0
function addSpans(pipeline: Pipeline, count: number, hosts = [host]): string[] {
  const span = new Span()
  return Array.from({ length: count }, (_, i) => {
    span.name = `span ${made++}`
    pipeline.intake('traces').add(hosts[i % hosts.length]!, scope, span)
    return span.name
  })
}

const names = (receiver: Receiver): string[] => receiver.lines.map(line => line.name)
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

/** Looks again and again, and that the balance holds; the test's own time limit ends it. */
async function until(pipeline: Pipeline, condition: () => boolean): Promise<void> {
  while (!condition()) {
    balanced(pipeline)
    await pause(2)
  }
}

test('all four signals arrive, and every item is accounted for', async t => {
  const receiver = await receive(t)
  const pipeline = open(t, receiver.endpoint)
  addSpans(pipeline, 250)
  const record = new LogRecord()
  record.body = 'a line'
  for (let i = 0; i < 30; i++) pipeline.intake('logs').add(host, scope, record)
  const attributes = new Attributes()
  const points = [1, 2, 3].map(value => ({ attributes, startUs: 0, timeUs: 1, value }))
  pipeline
    .intake('metrics')
    .add(host, scope, { kind: 'gauge', name: 'g', description: '', unit: '1', points })
  const sample = { frames: [{ name: 'main', file: '', line: 0 }], value: 1, attributes }
  const profile = { kind: 'cpu', unit: 'nanoseconds', startUs: 1, durationUs: 1, samples: [sample] } as const
  pipeline.intake('profiles').add(host, scope, profile)
  const flushed = await pipeline.flush(60_000)
  const { requests, connections, ...counts } = receiver.counts
  assert.deepEqual(counts, { traces: 250, metrics: 3, logs: 30, profiles: 1 })
  assert.equal(connections, 1)
  assert.ok(requests >= 6, 'three for the spans')
  assert.deepEqual(flushed, {
    acknowledged: { ...flushed.acknowledged, metrics: 3, logs: 30, profiles: 1 },
    left: { traces: 0, metrics: 0, logs: 0, profiles: 0 },
  })
  balanced(pipeline)
  const { destination, exported } = pipeline.state('traces')
  assert.equal(exported, 250)
  assert.equal(destination?.connected, true)
  assert.equal(destination?.endpoint, receiver.endpoint)
  assert.ok(Date.now() - destination!.lastExportMs! < 60_000)
})

test('without an endpoint items are counted with that reason, and nothing is kept', async t => {
  const pipeline = open(t, undefined)
  addSpans(pipeline, 1000)
  const state = pipeline.state('traces')
  assert.deepEqual([...state.dropped], [['no_endpoint', 1000]])
  assert.deepEqual([state.queued, state.queuedBytes, state.destination], [0, 0, undefined])
  const none = { traces: 0, metrics: 0, logs: 0, profiles: 0 }
  assert.deepEqual(await pipeline.flush(1000), { acknowledged: none, left: none })
  balanced(pipeline)
})

test('a receiver that comes late gets everything', async t => {
  const port = await freePort()
  const pipeline = open(t, `127.0.0.1:${port}`)
  const sent = addSpans(pipeline, 1000)
  await until(pipeline, () => pipeline.state('traces').destination?.lastError !== null)
  assert.equal(pipeline.state('traces').destination?.connected, false)
  assert.equal(pipeline.state('traces').queued, 1000)
  const receiver = await receive(t, { port, keep: true })
  await until(pipeline, () => pipeline.state('traces').queued === 0)
  assert.deepEqual(names(receiver).sort(), sent.sort())
})

test('a stalled receiver fills the queue to its bound; the oldest are dropped, the rest arrives', async t => {
  const receiver = await receive(t, { keep: true })
  let stalled = true
  receiver.answer = () => ({ kind: stalled ? 'stall' : 'ok' })
  const pipeline = open(t, receiver.endpoint, { queueBytes: 100_000, timeoutMs: 300, concurrency: 2 })
  const sent: string[] = []
  while (sent.length < 20_000) {
    sent.push(...addSpans(pipeline, 500))
    await pause(1)
    balanced(pipeline)
    assert.ok(pipeline.state('traces').queuedBytes <= 100_000)
  }
  stalled = false
  await until(pipeline, () => pipeline.state('traces').queued === 0)
  const { dropped, exported, droppedTotal } = pipeline.state('traces')
  assert.deepEqual([...dropped.keys()], ['queue_full'])
  assert.equal(exported + droppedTotal, 20_000)
  const arrived = new Set(names(receiver))
  assert.equal(arrived.size, exported)
  assert.ok(
    sent.slice(-100).every(name => arrived.has(name)),
    'the newest are kept',
  )
})

test('the order of a receiver to wait is kept by all of the signal', async t => {
  const receiver = await receive(t)
  let refusedAt = 0
  receiver.answer = () => {
    if (refusedAt > 0) return { kind: 'ok' }
    refusedAt = performance.now()
    return { kind: 'refuse', code: 8, retryMs: 200 }
  }
  const pipeline = open(t, receiver.endpoint, { concurrency: 1 })
  addSpans(pipeline, 100)
  await until(pipeline, () => refusedAt > 0)
  addSpans(pipeline, 100)
  await until(pipeline, () => receiver.requests.length > 1)
  assert.ok(performance.now() - refusedAt >= 199)
  await until(pipeline, () => pipeline.state('traces').exported === 200)
})

test('a partial success parts a batch between exported and rejected', async t => {
  const receiver = await receive(t)
  receiver.answer = ({ items }) => ({ kind: 'ok', rejected: items / 2, message: 'half' })
  const pipeline = open(t, receiver.endpoint)
  addSpans(pipeline, 400)
  await until(pipeline, () => pipeline.state('traces').queued === 0)
  const { exported, rejected, destination } = pipeline.state('traces')
  assert.deepEqual([exported, rejected, destination?.lastWarning], [200, 200, 'half'])
  assert.equal(receiver.requests.length, 4)
})

test('requests under way stay below the bound of the signal', async t => {
  const receiver = await receive(t)
  let first = true
  receiver.answer = async () => {
    // Behind the first, which is alone, others wait for one another.
    for (let i = 0; i < 400 && !first && receiver.mostOpen < 3; i++) await pause(5)
    first = false
    await pause(5)
    return { kind: 'ok' }
  }
  const pipeline = open(t, receiver.endpoint, { concurrency: 3 })
  const hosts = Array.from({ length: 64 }, (_, i) => resource({ 'host.name': `host ${i}` }))
  addSpans(pipeline, 2000, hosts)
  await until(pipeline, () => pipeline.state('traces').queued === 0)
  assert.equal(receiver.mostOpen, 3)
})

test('what is told of one resource arrives in order, one request after the other', async t => {
  const receiver = await receive(t, { keep: true })
  let refused = 0
  receiver.answer = async ({ items }) => {
    await pause(Math.random() * 4)
    return items % 3 === 0 && refused++ < 20 ? { kind: 'refuse', code: 14 } : { kind: 'ok' }
  }
  const pipeline = open(t, receiver.endpoint, { concurrency: 8 })
  const hosts = Array.from({ length: 5 }, (_, i) => resource({ 'host.name': `host ${i}` }))
  const added = addSpans(pipeline, 1000, hosts)
  await until(pipeline, () => pipeline.state('traces').queued === 0)
  for (const [i, { attributes }] of hosts.entries()) {
    const mine = receiver.lines.filter(line => isDeepStrictEqual(line.resource, attributes.toObject()))
    assert.deepEqual(
      mine.map(line => line.name),
      added.filter((_, at) => at % hosts.length === i),
    )
  }
})

test('draining sends all there is, and says so', async t => {
  const receiver = await receive(t)
  const pipeline = open(t, receiver.endpoint, { batchTimeoutMs: 60_000 })
  addSpans(pipeline, 150)
  const { exported, dropped } = await pipeline.drain(60_000)
  assert.equal(exported.traces + dropped.traces, 150)
  assert.equal(receiver.counts.traces, 150)
  addSpans(pipeline, 5)
  assert.deepEqual([...pipeline.state('traces').dropped], [['shutdown', 5]])
  balanced(pipeline)
})

test('draining without a receiver gives up in time and counts what is left', async t => {
  const receiver = await receive(t)
  receiver.answer = () => ({ kind: 'stall' })
  const pipeline = open(t, receiver.endpoint, { timeoutMs: 60_000 })
  addSpans(pipeline, 1234)
  const { exported, dropped } = await pipeline.drain(50)
  assert.deepEqual([exported.traces, dropped.traces], [0, 1234])
  assert.deepEqual([...pipeline.state('traces').dropped], [['shutdown', 1234]])
  balanced(pipeline)
  await pipeline.close()
})

test('a compressor that never answers holds up no end, and what it holds is sent or counted', async t => {
  const receiver = await receive(t)
  for (const [timeoutMs, sent] of [
    [0, 0],
    [60_000, 250],
  ] as const) {
    const pipeline = open(t, receiver.endpoint, { compress: () => new Promise(() => {}) })
    addSpans(pipeline, 250)
    assert.equal((await pipeline.flush(1)).left.traces, 250)
    const began = performance.now()
    const { exported, dropped } = await pipeline.drain(timeoutMs)
    assert.ok(performance.now() - began < 10_000)
    assert.deepEqual([exported.traces, dropped.traces], [sent, 250 - sent])
    assert.equal(pipeline.state('traces').queued, 0)
    assert.ok(receiver.counts.traces >= sent)
    balanced(pipeline)
  }
})

test('a metric that is larger than requests may be goes in several, with all of its points', async t => {
  const receiver = await receive(t)
  const pipeline = open(t, receiver.endpoint, { batchBytes: 16 * 1024, batchItems: 10_000 })
  const points = Array.from({ length: 5000 }, (_, value) => {
    const attributes = Attributes.of({ route: `/a/route/that/takes/some/room/${value}` })
    return { attributes, startUs: 0, timeUs: 1, value }
  })
  const metric = { kind: 'gauge', name: 'g', description: '', unit: '1', points } as const
  pipeline.intake('metrics').add(host, scope, metric)
  await until(pipeline, () => pipeline.state('metrics').queued === 0)
  assert.equal(receiver.counts.metrics, 5000)
  assert.ok(receiver.requests.every(({ items }) => items < 1000))
  balanced(pipeline)
})

test('a receiver that is away and back, in a process of its own, loses nothing', async t => {
  const first = await spawnReceiver({ port: await freePort() })
  const pipeline = open(t, first.endpoint)
  addSpans(pipeline, 500)
  await until(pipeline, () => pipeline.state('traces').exported === 500)
  assert.equal((await first.counts()).traces, 500)
  await first.close()
  addSpans(pipeline, 700)
  await until(pipeline, () => pipeline.state('traces').destination?.connected === false)
  const second = await spawnReceiver({ port: first.port })
  t.after(() => second.close())
  await until(pipeline, () => pipeline.state('traces').queued === 0)
  assert.equal((await second.counts()).traces, 700)
})

test('under random faults every item is in one column, and what was acknowledged has arrived', async t => {
  const receiver = await receive(t, { keep: true })
  const chances = [
    () => ({ kind: 'refuse', code: 14 }) as const,
    () => ({ kind: 'refuse', code: 3 }) as const,
    () => ({ kind: 'refuse', code: 16 }) as const,
    () => ({ kind: 'refuse', code: 8, retryMs: 10 }) as const,
    () => ({ kind: 'cut' }) as const,
    () => ({ kind: 'stall' }) as const,
    (items: number) => ({ kind: 'ok', rejected: Math.min(items, 3), message: 'three' }) as const,
  ]
  let faults = true
  receiver.answer = ({ items }) => {
    if (faults && Math.random() < 0.02) receiver.goAway()
    const pick = faults ? Math.floor(Math.random() * chances.length * 2) : chances.length
    return chances[pick]?.(items) ?? { kind: 'ok' }
  }
  const pipeline = open(t, receiver.endpoint, { timeoutMs: 100, queueBytes: 200_000 })
  const total = soak ? 500_000 : 50_000
  const sent = new Set<string>()
  while (sent.size < total) {
    for (const name of addSpans(pipeline, 250)) sent.add(name)
    balanced(pipeline)
    await pause(1)
  }
  faults = false
  await until(pipeline, () => pipeline.state('traces').queued === 0)
  const { collected, exported, rejected, droppedTotal, dropped } = pipeline.state('traces')
  assert.equal(collected, sent.size)
  assert.equal(collected, exported + rejected + droppedTotal)
  for (const reason of dropped.keys()) assert.ok(['invalid_argument', 'queue_full'].includes(reason), reason)
  // At least once: an acknowledged item is there, though one whose answer was cut off may be there twice.
  const arrived = new Set(names(receiver))
  assert.ok(arrived.size >= exported + rejected, `${arrived.size} of ${exported + rejected}`)
  for (const name of arrived) assert.ok(sent.has(name))
})

test('a flush sends what waits for its batch, and tells what a stalled receiver leaves', async t => {
  const receiver = await receive(t)
  const pipeline = open(t, receiver.endpoint, { batchTimeoutMs: 600_000 })
  addSpans(pipeline, 250)
  assert.equal(pipeline.state('traces').queued, 250)
  const before = pipeline.state('traces').exported
  const { acknowledged, left } = await pipeline.flush(60_000)
  assert.deepEqual([before + acknowledged.traces, left.traces], [250, 0])
  receiver.answer = () => ({ kind: 'stall' })
  addSpans(pipeline, 130)
  const [first, second] = [pipeline.flush(20), pipeline.flush(20)]
  for (const flushed of [await first, await second])
    assert.deepEqual([flushed.acknowledged.traces, flushed.left.traces], [0, 130])
})

test('what is asked of the sending is counted', async t => {
  const receiver = await receive(t)
  let refuse = 2
  receiver.answer = () => (refuse-- > 0 ? { kind: 'refuse', code: 14 } : { kind: 'ok' })
  const pipeline = open(t, receiver.endpoint, { concurrency: 1 })
  addSpans(pipeline, 300)
  assert.ok(pipeline.state('traces').queuedBatches === 3)
  await until(pipeline, () => pipeline.state('traces').oldestMs >= 1)
  await until(pipeline, () => pipeline.state('traces').queued === 0)
  const { requests, failedRequests, retries, queuedBatches, oldestMs, requestsInFlight } =
    pipeline.state('traces')
  assert.deepEqual([requests, failedRequests, retries], [5, 2, 2])
  assert.deepEqual([queuedBatches, oldestMs, requestsInFlight], [0, 0, 0])
})

test('from somewhere to nowhere and back: what waits is dropped as such, the intake stays the same', async t => {
  const receiver = await receive(t)
  receiver.answer = () => ({ kind: 'stall' })
  const options = { timeoutMs: 200, concurrency: 1, batchTimeoutMs: 600_000 }
  const pipeline = open(t, receiver.endpoint, options)
  const intake = pipeline.intake('traces')
  addSpans(pipeline, 250)
  pipeline.change(settingsFor(undefined, options))
  addSpans(pipeline, 30)
  let state = pipeline.state('traces')
  assert.deepEqual([[...state.dropped], state.queued], [[['no_endpoint', 30]], 250])
  assert.equal(state.destination, undefined)
  balanced(pipeline)
  await until(pipeline, () => pipeline.state('traces').queued === 0)
  state = pipeline.state('traces')
  assert.deepEqual([...state.dropped], [['no_endpoint', 280]])
  receiver.answer = () => ({ kind: 'ok' })
  pipeline.change(settingsFor(receiver.endpoint, options))
  assert.equal(pipeline.intake('traces'), intake)
  addSpans(pipeline, 70)
  const { acknowledged } = await pipeline.flush(60_000)
  assert.equal(acknowledged.traces, 70)
  assert.deepEqual([...pipeline.state('traces').exportedBy], [[receiver.endpoint, 70]])
})

test('a change after the end changes nothing, and closes what it brought', async t => {
  const [first, second] = [await receive(t), await receive(t)]
  const pipeline = open(t, first.endpoint)
  await pipeline.drain(60_000)
  const settings = settingsFor(second.endpoint)
  pipeline.change(settings)
  addSpans(pipeline, 5)
  assert.deepEqual([...pipeline.state('traces').dropped], [['shutdown', 5]])
  assert.equal(pipeline.state('traces').destination?.endpoint, first.endpoint)
  const batch = plainBatch('traces', 1, new Uint8Array(0))
  const { sender } = settings.queues.traces
  await assert.rejects(sender!.send(batch, new AbortController().signal), /closed/)
})

test('a smaller bound of the queue drops the oldest at once, and the batches that follow fit it', async t => {
  const receiver = await receive(t, { keep: true })
  receiver.answer = () => ({ kind: 'stall' })
  const pipeline = open(t, receiver.endpoint, { concurrency: 1, timeoutMs: 60_000 })
  const sent = addSpans(pipeline, 10_000)
  await until(pipeline, () => receiver.requests.length === 1)
  const small = { queueBytes: 100_000, concurrency: 4 }
  pipeline.change(settingsFor(receiver.endpoint, small))
  const { queuedBytes, dropped, droppedTotal } = pipeline.state('traces')
  assert.ok(queuedBytes <= 100_000)
  assert.deepEqual([...dropped.keys()], ['queue_full'])
  balanced(pipeline)
  sent.push(...addSpans(pipeline, 20))
  receiver.answer = () => ({ kind: 'ok' })
  receiver.cut() // the request that hangs at the former sender
  await until(pipeline, () => pipeline.state('traces').queued === 0)
  const arrived = new Set(names(receiver))
  assert.equal(arrived.size, pipeline.state('traces').exported)
  assert.equal(arrived.size + pipeline.state('traces').droppedTotal, sent.length)
  assert.ok(droppedTotal > 0 && sent.slice(-20).every(name => arrived.has(name)))
})

test('metrics that were prepared arrive with the numbers of each time, and balance with and without an endpoint', async t => {
  const receiver = await receive(t, { keep: true })
  const pipeline = open(t, undefined)
  const prepared = pipeline.prepared('scraped')
  const point = { attributes: Attributes.of({ a: 'b' }), startUs: 0, timeUs: 0, value: 1 }
  const gauge = { kind: 'gauge', name: 'g', description: '', unit: '', points: [point, point] } as const
  const values = Float64Array.of(0, 7)
  const first = prepared.prepare(host, scope, gauge)!
  assert.equal(prepared.send(first, values, 1e15), 'sent')
  pipeline.change(settingsFor(receiver.endpoint))
  assert.equal(prepared.send(first, values, 1e15), 'old')
  const second = prepared.prepare(host, scope, gauge)!
  for (const value of [8, 9]) {
    values[1] = value
    assert.equal(prepared.send(second, values, value * 1e15), 'sent')
  }
  await pipeline.flush(20_000)
  balanced(pipeline)
  const { collected, exported, dropped } = pipeline.state('metrics')
  assert.deepEqual([collected, exported, [...dropped]], [6, 4, [['no_endpoint', 2]]])
  const told = JSON.stringify(receiver.lines).match(/"value":\d+/g)
  assert.deepEqual(told, ['"value":8', '"value":8', '"value":9', '"value":9'])
})
