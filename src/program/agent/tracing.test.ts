// owns: host
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, afterEach, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { withoutBpf } from '../../../test/helpers/compile-bpf.ts'
import { type Peers, startPeers } from '../../../test/helpers/peers.ts'
import { Program, until } from '../../../test/helpers/program.ts'
import { head } from '../../../test/helpers/raw-talk.ts'
import { soak } from '../../../test/helpers/soak.ts'
import { type Config, loadConfig } from '../../config/index.ts'
import { createLogger } from '../../foundation/lib/logger.ts'
import type { Metric } from '../../foundation/model/metric.ts'
import type { Resource } from '../../foundation/model/resource.ts'
import type { Span } from '../../foundation/model/span.ts'
import { ProcessTable } from '../../identity/entities/process-table.ts'
import type { Intake } from '../../pipeline/batcher.ts'
import { type Ledger, openLedger } from '../../pipeline/ledger.ts'
import type { Items } from '../../pipeline/pipeline.ts'
import { captureOptions } from './capture-options.ts'
import { startTracing, Tracing, type TracingOptions } from './tracing.ts'

/** Two whose requests are counted, and one whose port comes and goes. */
let peers: Peers[] = []
before(async () => {
  peers = await Promise.all([startPeers(), startPeers(), startPeers()])
})
after(() => Promise.all(peers.map(each => each.close())))

/** What a test that fails leaves attached. */
const open: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

function configured(env: Record<string, string>): Config {
  const names = Object.entries(env).map(([key, value]) => [
    key.startsWith('SVC_') ? key : `SVC_AGENT_EBPF_${key}`,
    value,
  ])
  const { config, problems } = loadConfig({
    explicit: false,
    cwd: '/nonexistent',
    systemFile: '/nonexistent',
    env: Object.fromEntries(names),
  })
  assert.deepEqual(problems, [])
  return config
}

/** Takes in what tracing makes, by process. */
class Taken {
  readonly ledger: Ledger = openLedger()
  readonly spans = new Map<number, number>()
  readonly names = new Set<string>()
  /** Counts of the series of each process as they were exported last. */
  readonly series = new Map<number, Map<string, number>>()

  intake<S extends keyof Items>(signal: S): Intake<Items[S]> {
    const add = (resource: Resource, item: Span | Metric) => {
      this.ledger[signal].collected++
      const pid = Number(resource.attributes.get('process.pid'))
      if ('traceId' in item) this.#span(pid, item)
      else this.#metric(pid, item)
    }
    return { add: (resource, _scope, item) => add(resource, item as Span | Metric) }
  }

  #span(pid: number, { name }: Span): void {
    this.spans.set(pid, (this.spans.get(pid) ?? 0) + 1)
    this.names.add(name)
  }

  #metric(pid: number, metric: Metric): void {
    assert.equal(metric.kind, 'histogram')
    const known = this.series.get(pid) ?? new Map<string, number>()
    this.series.set(pid, known)
    for (const { attributes, count, buckets } of metric.points as Extract<
      Metric,
      { kind: 'histogram' }
    >['points']) {
      const id = JSON.stringify([metric.name, attributes.toObject()])
      assert.ok(count >= (known.get(id) ?? 0), `${id} went back`)
      assert.equal(
        Array.from(buckets).reduce((sum, each) => sum + each, 0),
        count,
      )
      known.set(id, count)
    }
  }

  /** Requests of a process by its metrics. */
  counted(pid: number): number {
    return [...(this.series.get(pid)?.values() ?? [])].reduce((sum, count) => sum + count, 0)
  }
}

interface Started {
  readonly tracing: Tracing
  readonly taken: Taken
  readonly processes: ProcessTable
  /** Changes the configuration to the given one. */
  change(env: Record<string, string>): void
}

function start(env: Record<string, string>): Started {
  const taken = new Taken()
  const processes = new ProcessTable({ hostName: 'here', bootId: 'boot', version: '1' })
  const options: TracingOptions = {
    config: configured(env),
    pipeline: taken,
    processes,
    log: createLogger({ level: 'error', format: 'json', write: () => {} }),
  }
  const tracing = startTracing(options)
  assert.ok(tracing instanceof Tracing, 'reason' in tracing ? tracing.reason : '')
  open.push(async () => {
    tracing.stop()
    await tracing.close()
  })
  return { tracing, taken, processes, change: changed => tracing.prepare(configured(changed)).commit() }
}

/** Resolves when the kernel side has ended so many exchanges: a sender's hook may run after the answer came. */
function finished({ tracing }: Started, exchanges: number): Promise<void> {
  const now = () => tracing.capture.counters().finished
  const what = () => `${exchanges} exchanges are finished (${now()} are)`
  return until(what, 30_000, () => now() >= exchanges)
}

const kernel = { skip: withoutBpf }

test('the kernel side follows the configuration', () => {
  const config = configured({ NETWORK_SAMPLING_SLOW_THRESHOLD: '250ms', NETWORK_EXCLUDE_PORTS: '22' })
  const { slowNs, excludePorts, boundsNs, protocols } = captureOptions(config, ['redis'])
  assert.deepEqual([slowNs, excludePorts, protocols], [250e6, [22], ['redis']])
  assert.deepEqual([boundsNs.length, boundsNs[0], boundsNs[14]], [15, 1e6, 10e9])
})

/** Keeps both peers busy until `changes` ran. Returns how many requests each of them made. */
async function underTraffic(changes: () => Promise<void>): Promise<readonly [number, number]> {
  let over = false
  const keepBusy = async (each: Peers): Promise<number> => {
    let made = 0
    while (!over) {
      await each.requests(100, '/status/200')
      made += 100
    }
    return made
  }
  const traffic = peers.map(keepBusy)
  await changes()
  over = true
  const [one, two] = await Promise.all(traffic)
  return [one!, two!]
}

const changes = soak ? 200 : 60
test(`${changes} changes under traffic cost neither a span nor a count`, kernel, async () => {
  const ports = peers.map(({ port }) => port)
  const both = ports.slice(0, 2).join()
  // Room for all that comes while this process gets no turn.
  const base = {
    RINGBUF_SIZE: String(64 << 20),
    NETWORK_SAMPLING_MAX_SPANS_PER_SECOND: '0',
    NETWORK_INCLUDE_PORTS: ports.join(),
  }
  const ways: Record<string, string>[] = [
    { NETWORK_EXCLUDE_PATHS: '/elsewhere', NETWORK_METRICS_INTERVAL: '100ms' },
    { NETWORK_EXCLUDE_PORTS: String(ports[2]), DEBUG: 'true' },
    { NETWORK_SAMPLING_MAX_SPANS_PER_SECOND: '10000000', NETWORK_SAMPLING_SLOW_THRESHOLD: '1ms' },
    {
      NETWORK_INCLUDE_PORTS: both,
      NETWORK_ROUTES_PATTERNS: '/status/{code}',
      NETWORK_METRICS_INTERVAL: '101ms',
    },
    {
      NETWORK_SAMPLING_ALWAYS_ERRORS: 'false',
      NETWORK_SAMPLING_ALWAYS_SLOW: 'false',
      NETWORK_PROPAGATION: 'off',
    },
    { NETWORK_ROUTES_UNMATCHED: 'wildcard', NETWORK_INCLUDE_PORTS: both, DEBUG: 'true' },
  ]
  const started = start(base)
  const { tracing, taken, processes, change } = started
  const made = await underTraffic(async () => {
    for (let i = 0; i < changes; i++) {
      change({ ...base, ...ways[i % ways.length] })
      await sleep(5)
    }
  })
  assert.ok(made.every(requests => requests >= changes))
  const found = (await processes.services()).flatMap(service => service.ports)
  for (const port of ports) assert.ok(found.includes(port))
  await until('all is finished', 30_000, () => {
    tracing.exportMetrics()
    const counted = peers
      .slice(0, 2)
      .map(each => [taken.counted(each.serverPid), taken.counted(each.clientPid)])
    return counted.every((sides, i) => sides.every(count => count >= made[i]!))
  })
  tracing.stop()
  const got = peers
    .slice(0, 2)
    .flatMap(({ serverPid, clientPid }) => [serverPid, clientPid])
    .map(pid => [taken.spans.get(pid), taken.counted(pid)])
  assert.deepEqual(
    got,
    made.flatMap(requests => [
      [requests, requests],
      [requests, requests],
    ]),
  )
  assert.deepEqual([...taken.names].toSorted(), ['GET', 'GET /**', 'GET /status/*', 'GET /status/{code}'])
  assert.deepEqual([...taken.ledger.traces.dropped], [])
  const { abandoned, desync, ring_full, over_budget, red_full } = tracing.capture.counters()
  assert.deepEqual([abandoned, desync, ring_full, over_budget, red_full], [0, 0, 0, 0, 0])
})

test('what a rule leaves out is in the books, however often the rule changes', kernel, async () => {
  const [one, two] = peers as [Peers, Peers]
  const base = {
    NETWORK_INCLUDE_PORTS: `${one.port},${two.port}`,
    NETWORK_SAMPLING_MAX_SPANS_PER_SECOND: '0',
    RINGBUF_SIZE: '4096',
  }
  const ways: Record<string, string>[] = [
    { NETWORK_EXCLUDE_PATHS: '/status/*' },
    { NETWORK_SAMPLING_RATIO: '0.5', NETWORK_SAMPLING_ALWAYS_SLOW: 'false' },
    { NETWORK_SAMPLING_MAX_SPANS_PER_SECOND: '10' },
    {},
  ]
  const { tracing, taken, change } = start(base)
  const made = await underTraffic(async () => {
    for (let i = 0; i < changes; i++) {
      change({ ...base, ...ways[i % ways.length] })
      await sleep(5)
    }
  })
  const total = 2 * (made[0] + made[1])
  await until('all is finished', 30_000, () => {
    tracing.sync()
    return tracing.collected.get('http')! >= total
  })
  tracing.stop()
  const pids = [one, two].flatMap(({ serverPid, clientPid }) => [serverPid, clientPid])
  const sum = (of: (pid: number) => number) => pids.reduce((all, pid) => all + of(pid), 0)
  assert.equal(
    sum(pid => taken.counted(pid)),
    total,
  )
  const { traces } = taken.ledger
  assert.equal(sum(pid => taken.spans.get(pid)!) + traces.droppedTotal, total)
  assert.equal(traces.collected, total)
  for (const reason of ['excluded_path', 'sampled', 'over_budget', 'ring_full'] as const)
    assert.ok(traces.dropped.get(reason)! > 0, reason)
})

test('a port gives exactly the requests of the times at which it was included', kernel, async () => {
  const [one] = peers as [Peers]
  const included = { NETWORK_INCLUDE_PORTS: String(one.port) }
  const others: Record<string, string>[] = [
    { ...included, NETWORK_EXCLUDE_PORTS: String(one.port) },
    { NETWORK_INCLUDE_PORTS: '1' },
    { NETWORK_INCLUDE_PORTS: '1', NETWORK_EXCLUDE_PORTS: `2,${one.port}` },
  ]
  const started = start(included)
  const { tracing, taken, change } = started
  let want = 0
  for (let i = 0; i < 12; i++) {
    want += 30 + i
    await one.requests(30 + i, '/status/200')
    await finished(started, 2 * want)
    change(others[i % others.length]!)
    await one.requests(20, '/status/200')
    await one.freshRequests(1, '/status/200')
    change(included)
  }
  tracing.stop()
  assert.deepEqual(
    [one.serverPid, one.clientPid].map(pid => [taken.spans.get(pid), taken.counted(pid)]),
    [
      [want, want],
      [want, want],
    ],
  )
  const { finished: all, abandoned, desync } = tracing.capture.counters()
  assert.deepEqual([all, abandoned, desync], [2 * want, 0, 0])
  assert.equal(taken.ledger.traces.droppedTotal, 0)
})

test('another threshold decides what is slow', kernel, async () => {
  const server = await Program.start('raw-server.ts', { port: 0 })
  const request = [head('POST / HTTP/1.1', 'host: x', 'content-length: 5'), 'hello']
  const { length } = request.join('')
  const answer = head('HTTP/1.1 200 OK', 'content-length: 0')
  await server.ask(
    JSON.stringify([1, 2, 3].map(n => ({ after: n * length, pieces: [answer], next: 'keep' }))),
  )
  const socket = connect({ port: server.ready.port, host: '127.0.0.1', noDelay: true })
  try {
    await once(socket, 'connect')
    const base = {
      NETWORK_INCLUDE_PORTS: String(server.ready.port),
      NETWORK_SAMPLING_RATIO: '0',
      NETWORK_SAMPLING_SLOW_THRESHOLD: '1h',
    }
    const started = start(base)
    const { tracing, taken, change } = started
    const ask = async (already: number): Promise<void> => {
      socket.write(request[0]!)
      await sleep(20)
      socket.write(request[1]!)
      await once(socket, 'data')
      await finished(started, already + 1)
    }
    const { dropped } = taken.ledger.traces
    await ask(0)
    // The one that is recorded already is judged as it was configured then.
    change({ ...base, NETWORK_SAMPLING_SLOW_THRESHOLD: '1ms' })
    await ask(1)
    change({ ...base, NETWORK_SAMPLING_SLOW_THRESHOLD: '1ms', NETWORK_SAMPLING_ALWAYS_SLOW: 'false' })
    await ask(2)
    tracing.stop()
    assert.deepEqual([taken.spans.get(server.pid), dropped.get('sampled')], [1, 2])
    assert.equal(taken.counted(server.pid), 3)
  } finally {
    socket.destroy()
    await server.close()
  }
})

test('a change of something else touches nothing of the capture', kernel, async () => {
  const [one] = peers as [Peers]
  const base = { NETWORK_INCLUDE_PORTS: String(one.port) }
  const started = start(base)
  const { tracing, change } = started
  const { rules } = tracing.tracer
  // Set by hand, so that anything that writes the rules shows.
  tracing.capture.apply({ ...captureOptions(configured(base), []), excludePorts: [one.port] })
  change({ ...base, SVC_OTLP_ENDPOINT: '127.0.0.1:1' })
  change({ ...base, NETWORK_METRICS_INTERVAL: '1h' })
  change({ ...base, NETWORK_ROUTES_PATTERNS: '/status/{code}' })
  change({ ...base, DEBUG: 'true' })
  assert.equal(tracing.tracer.rules, rules)
  // Prepared and given up, it is as if it had not been.
  tracing.prepare(configured({ NETWORK_INCLUDE_PORTS: '80', NETWORK_EXCLUDE_PATHS: '/x' })).abort()
  change({ ...base, NETWORK_EXCLUDE_PATHS: '/x' })
  assert.notEqual(tracing.tracer.rules, rules)
  await one.requests(10, '/status/200')
  assert.equal(tracing.capture.counters().finished, 0)
  change({ NETWORK_INCLUDE_PORTS: `${one.port},1` })
  await one.requests(10, '/status/200')
  await finished(started, 20)
})

test('another interval neither holds exports of metrics up nor adds any', kernel, async () => {
  const exported: number[] = []
  const { tracing, change } = start({ NETWORK_INCLUDE_PORTS: '1', NETWORK_METRICS_INTERVAL: '1d' })
  const { red } = tracing
  const { collectEach } = red
  red.collectEach = nowUs => {
    exported.push(performance.now())
    return collectEach.call(red, nowUs)
  }
  const from = performance.now()
  // Far more often than there are exports.
  for (let i = 0; exported.length < 5 && i < 2_000; i++) {
    change({ NETWORK_INCLUDE_PORTS: '1', NETWORK_METRICS_INTERVAL: i % 2 === 0 ? '100ms' : '101ms' })
    await sleep(5)
  }
  assert.equal(exported.length, 5)
  const pauses = exported.map((at, i) => at - (exported[i - 1] ?? from))
  // One that is late makes the next pause shorter. Changes come each 5 ms.
  assert.ok(pauses.every(pause => pause > 50) && exported[4]! - from > 450, String(pauses))
  change({ NETWORK_INCLUDE_PORTS: '1', NETWORK_METRICS_INTERVAL: '1d' })
  await sleep(250)
  assert.equal(exported.length, 5)
})

test('what lies in the ring is read before a span waits no longer for it', kernel, async () => {
  const { capture, tracer } = start({ NETWORK_INCLUDE_PORTS: '1' }).tracing
  // Since this turn of the event loop began.
  let isDrained = false
  capture.drain = () => {
    isDrained = true
    queueMicrotask(() => {
      isDrained = false
    })
  }
  const ticks: boolean[] = []
  tracer.tick = () => ticks.push(isDrained)
  await until('it waits no longer', 60_000, () => ticks.length > 0)
  assert.ok(ticks[0])
})

test('a change that comes after the end does nothing', kernel, async () => {
  const { tracing } = start({ NETWORK_INCLUDE_PORTS: '1' })
  const timers = () => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
  const late = tracing.prepare(configured({ NETWORK_METRICS_INTERVAL: '1h', DEBUG: 'true' }))
  tracing.stop()
  const left = timers()
  late.commit()
  assert.equal(timers(), left)
})
