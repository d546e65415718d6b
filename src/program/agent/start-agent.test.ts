// owns: host
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { get } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, test } from 'node:test'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { withoutBpf } from '../../../test/helpers/compile-bpf.ts'
import { startInnerAgent } from '../../../test/helpers/inner-agent.ts'
import { type Receiver, startReceiver } from '../../../test/helpers/otlp-receiver.ts'
import { type Peers, startPeers } from '../../../test/helpers/peers.ts'
import { RawTalk } from '../../../test/helpers/raw-talk.ts'
import { type Config, loadConfig } from '../../config/index.ts'
import { LogRing } from '../../foundation/lib/log-ring.ts'
import { createLogger } from '../../foundation/lib/logger.ts'
import { StartError } from '../../foundation/lib/start-error.ts'
import type { RunningAgent } from '../../view/api/types.ts'
import { startAgent } from '../agent.ts'

let peers: Peers
before(async () => {
  peers = await startPeers()
})
after(() => peers.close())

/** What a test that fails leaves open. */
const open: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

async function receiving(): Promise<Receiver> {
  const receiver = await startReceiver({ keep: true })
  open.push(() => receiver.close())
  return receiver
}

/** An agent that looks at the peers alone, and its log. */
async function start(
  env: Record<string, string>,
): Promise<RunningAgent & { readonly logged: readonly string[] }> {
  const { agent, logged } = await startInnerAgent({
    SVC_SELF_TELEMETRY_LISTEN: '127.0.0.1:0',
    SVC_SELF_TELEMETRY_ADMIN_SOCKET: '',
    SVC_AGENT_NODEEXPORTER_ENABLED: 'false',
    SVC_AGENT_PROFILING_ENABLED: 'false',
    SVC_AGENT_LOGS_ENABLED: 'false',
    SVC_AGENT_DISCOVERY_ENABLED: 'false',
    SVC_AGENT_EBPF_NETWORK_INCLUDE_PORTS: String(peers.port),
    SVC_OTLP_INSECURE: 'true',
    ...env,
  })
  open.push(() => agent.stop())
  return { ...agent, logged }
}

/** Values of the agent's metrics: of one series where the line is given whole, else the sum over the labels. */
function metrics(agent: RunningAgent): (name: string) => number {
  const lines = agent.view.registry
    .write()
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#'))
  return name =>
    lines
      .filter(line => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}

function checkBalance(agent: RunningAgent): number {
  const of = metrics(agent)
  for (const [signal, items] of [
    ['traces', 'spans'],
    ['metrics', 'metrics'],
  ]) {
    const collected = of(`svc_${items}_collected_total`)
    const exported = of(`svc_${items}_exported_total`)
    const dropped = of(`svc_${items}_dropped_total`)
    const queued = of(`svc_export_queue_size{signal_type="${signal}"}`)
    assert.equal(exported + dropped + queued, collected, `${items}: ${exported} + ${dropped} + ${queued}`)
  }
  return of('svc_spans_collected_total')
}

/** A sender's hook may run after the answer came. */
function finished(agent: RunningAgent, exchanges: number): Promise<void> {
  return until(`${exchanges} are finished`, () => agent.view.ebpf().counters.finished! >= exchanges)
}

async function until(what: string, done: () => boolean): Promise<void> {
  for (let tries = 0; !done(); tries++) {
    if (tries > 500) throw new Error(`never came: ${what}`)
    await sleep(20)
  }
}

/** BPF descriptors and timers of this process, once what ended has had its turn. */
async function attachments(): Promise<string[]> {
  await nextTurn()
  await nextTurn()
  const found: string[] = process
    .getActiveResourcesInfo()
    .filter(name => /^(Timeout|TCPServerWrap)$/.test(name))
  for (const fd of readdirSync('/proc/self/fd')) {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`)
      if (target.includes('bpf')) found.push(target)
    } catch {
      // The one that the directory was read by.
    }
  }
  return found.sort()
}

const kernel = { skip: withoutBpf }

test('at every scrape what was collected is exported, dropped or queued', kernel, async () => {
  const receiver = await receiving()
  const agent = await start({
    SVC_OTLP_ENDPOINT: receiver.endpoint,
    SVC_AGENT_EBPF_RINGBUF_SIZE: '4096',
    SVC_AGENT_EBPF_NETWORK_SAMPLING_RATIO: '0.7',
    SVC_AGENT_EBPF_NETWORK_METRICS_INTERVAL: '200ms',
    SVC_PIPELINE_EXPORT_BATCH_TIMEOUT: '50ms',
    SVC_QUEUES_TRACES_BATCH_SIZE: '100',
  })
  // Now and then the receiver refuses some of a batch, or all of it.
  let batches = 0
  receiver.answer = ({ items, signal }) => {
    if (signal !== 'traces') return { kind: 'ok' }
    const which = batches++ % 5
    if (which === 1) return { kind: 'ok', rejected: Math.min(3, items), message: 'too old' }
    return which === 2 ? { kind: 'refuse', code: 13, message: 'no' } : { kind: 'ok' }
  }
  let over = false
  let asked = 2020
  const traffic = (async () => {
    await peers.requests(20, '/healthz')
    await peers.requests(1500, '/status/200')
    await peers.requests(500, '/status/500')
    for (; batches < 3; asked += 20) await peers.requests(20, '/status/200')
    over = true
  })()
  let scrapes = 0
  for (; !over; scrapes++) {
    checkBalance(agent)
    await sleep(5)
  }
  await traffic
  await finished(agent, 2 * asked)
  assert.ok(scrapes > 5)
  assert.equal(checkBalance(agent), 2 * asked)
  await until('an export', () => receiver.counts.traces > 0)
  await agent.stop()
  assert.equal(checkBalance(agent), 2 * asked)
  const of = metrics(agent)
  assert.equal(of('svc_export_queue_size'), 0)
  assert.equal(of('svc_spans_exported_total'), receiver.counts.traces)
  for (const reason of ['ring_full', 'sampled', 'rejected', 'internal', 'excluded_path'])
    assert.ok(of(`svc_spans_dropped_total{reason="${reason}"}`) > 0, reason)
})

test('the last metrics tell of every request', kernel, async () => {
  const receiver = await receiving()
  const agent = await start({ SVC_OTLP_ENDPOINT: receiver.endpoint })
  const { url } = agent.links().find(({ what }) => what === 'status')!
  await peers.requests(300, '/status/404')
  await finished(agent, 600)
  let release: () => void = () => {}
  const held = new Promise<void>(resolve => {
    release = resolve
  })
  receiver.answer = async () => {
    await held
    return { kind: 'ok' }
  }
  const stopping = agent.stop()
  assert.equal(agent.stop(), stopping)
  await until('the last request', () => receiver.requests.some(({ signal }) => signal === 'metrics'))
  // While it drains the agent still answers, and sees nothing more.
  await until('all is detached', () => !agent.view.ebpf().programs.some(({ attached }) => attached))
  await peers.requests(10, '/status/404')
  const status = await new Promise<number>((resolve, reject) => {
    get(url, { agent: false }, response => resolve(response.resume().statusCode!)).on('error', reject)
  })
  assert.equal(status, 200)
  release()
  await stopping
  await assert.rejects(
    new Promise((resolve, reject) => get(url, { agent: false }, resolve).on('error', reject)),
    {
      code: 'ECONNREFUSED',
    },
  )
  const counts = receiver.lines
    .filter(({ signal, name }) => signal === 'metrics' && String(name).startsWith('http.'))
    .map(({ name, points }) => [
      name,
      (points as { count: number }[]).reduce((sum, { count }) => sum + count, 0),
    ])
  assert.deepEqual(counts.toSorted(), [
    ['http.client.request.duration', 300],
    ['http.server.request.duration', 300],
  ])
  assert.equal(receiver.counts.traces, 600)
  const types = new Map<string, number>()
  const points = receiver.lines.filter(({ signal }) => signal === 'metrics')
  for (const { name, points: told } of points as unknown as { name: string; points: unknown[] }[]) {
    const type = name.startsWith('http.') ? 'http' : 'others'
    types.set(type, (types.get(type) ?? 0) + told.length)
  }
  assert.equal(metrics(agent)('svc_metrics_collected_total{signal_type="http"}'), types.get('http'))
  assert.equal(metrics(agent)('svc_metrics_collected_total{signal_type="unknown"}'), 0)
  // After the end the documents are still there.
  assert.equal(agent.view.status().export.spans_exported, 600)
  assert.equal(agent.view.ebpf().counters.finished, 600)
  assert.match(agent.logged.at(-1)!, /"msg":"drained","exported":\{"traces":600,/)
})

test('a receiver that never answers holds the end up for the drain timeout at most', kernel, async () => {
  const receiver = await receiving()
  receiver.answer = () => ({ kind: 'stall' })
  const agent = await start({
    SVC_OTLP_ENDPOINT: receiver.endpoint,
    SVC_PIPELINE_OPERATIONS_SHUTDOWN_DRAIN_TIMEOUT: '200ms',
  })
  await peers.requests(50, '/status/200')
  await finished(agent, 100)
  await agent.stop()
  assert.equal(checkBalance(agent), 100)
  assert.equal(metrics(agent)('svc_spans_dropped_total{reason="shutdown"}'), 100)
})

test('a port in use is fatal, and leaves nothing attached', kernel, async () => {
  const taken = createServer()
  await new Promise<void>(resolve => taken.listen(0, '127.0.0.1', resolve))
  const { port } = taken.address() as AddressInfo
  const start0 = await attachments()
  await assert.rejects(start({ SVC_SELF_TELEMETRY_LISTEN: `127.0.0.1:${port}` }), (error: unknown) => {
    assert.ok(error instanceof StartError)
    assert.match(error.message, new RegExp(`127\\.0\\.0\\.1:${port}`))
    assert.match(error.message, /self_telemetry\.listen/)
    assert.equal(error.exitCode, 1)
    return true
  })
  assert.deepEqual(await attachments(), start0)
  await new Promise(resolve => taken.close(resolve))
})

test('eBPF that is required and cannot be had is fatal', async () => {
  const start0 = await attachments()
  await assert.rejects(
    start({ SVC_AGENT_EBPF_REQUIRED: 'true', SVC_AGENT_EBPF_BACKEND: 'fentry' }),
    (error: unknown) => {
      assert.ok(error instanceof StartError)
      assert.equal(error.exitCode, 3)
      assert.match(
        error.message,
        /^cannot start: agent\.ebpf\.required is true and eBPF is not available: traces: the capture back end "fentry" is not built/,
      )
      return true
    },
  )
  assert.deepEqual(await attachments(), start0)
})

test('an agent that ended leaves nothing attached', kernel, async () => {
  const start0 = await attachments()
  const agent = await start({})
  assert.notDeepEqual(await attachments(), start0)
  await agent.stop()
  assert.deepEqual(await attachments(), start0)
})

test('the banner says of each subsystem what it does', async () => {
  const check = async (env: Record<string, string>, want: readonly (readonly [string, string, RegExp])[]) => {
    const agent = await start({ SVC_AGENT_EBPF_ENABLED: 'false', ...env })
    const lines = agent.banner()
    assert.deepEqual(
      lines.map(({ state, name }) => [state, name]),
      want.map(([state, name]) => [state, name]),
    )
    for (const [i, [, , detail]] of want.entries()) assert.match(lines[i]!.detail, detail)
    // What does not work says what to do about it.
    for (const { state, hint } of lines) if (state === 'failed' || state === 'none') assert.ok(hint)
    await agent.stop()
  }
  const none = ['none', 'export', /no exporter configured/] as const
  const profiles = [
    'off',
    'profiles',
    /^agent\.(profiling|ebpf)\.enabled is false$|mode is collector/,
  ] as const
  const logs = ['off', 'logs', /^agent\.logs\.enabled is false$|mode is collector/] as const
  const discovery = ['off', 'discovery', /^agent\.discovery\.enabled is false$/] as const
  const scraping = ['off', 'scraping', /^no targets in collectors\.prometheus$/] as const
  const metrics = ['off', 'host metrics', /^agent\.nodeexporter\.enabled is false$/] as const
  await check({}, [
    ['off', 'traces', /^agent\.ebpf\.(network\.)?enabled is false$/],
    profiles,
    logs,
    discovery,
    scraping,
    metrics,
    none,
  ])
  const off = { SVC_AGENT_EBPF_ENABLED: 'true', SVC_AGENT_EBPF_NETWORK_ENABLED: 'false' }
  await check(off, [
    ['off', 'traces', /^agent\.ebpf\.(network\.)?enabled is false$/],
    profiles,
    logs,
    discovery,
    scraping,
    metrics,
    none,
  ])
  await check({ SVC_MODE: 'collector' }, [
    ['off', 'traces', /mode is collector/],
    profiles,
    logs,
    discovery,
    scraping,
    metrics,
    none,
  ])
  const on = { SVC_AGENT_LOGS_ENABLED: 'true', SVC_AGENT_LOGS_POSITION_FILE: '/nonexistent/positions' }
  await check({ ...on, SVC_AGENT_DISCOVERY_ENABLED: 'true', SVC_AGENT_LOGS_PATHS: '/nonexistent/*.log' }, [
    ['off', 'traces', /^agent\.ebpf\.enabled is false$/],
    profiles,
    ['ok', 'logs', /^of containers, of files \(\/nonexistent\/\*\.log\); \d+ files so far$/],
    ['ok', 'discovery', /^containers, Kubernetes, cloud; see \/status\/discovery$/],
    scraping,
    metrics,
    none,
  ])
  await check({ SVC_OTLP_ENDPOINT: '127.0.0.1:1' }, [
    ['off', 'traces', /^agent\.ebpf\.enabled is false$/],
    profiles,
    logs,
    discovery,
    scraping,
    metrics,
    ['ok', 'export', /^OTLP over grpc to 127\.0\.0\.1:1$/],
    ['off', 'queue', /^in memory only, lost at a crash/],
  ])
  await check({ SVC_AGENT_EBPF_ENABLED: 'true', SVC_AGENT_EBPF_BACKEND: 'kprobe' }, [
    ['failed', 'traces', /"kprobe" is not built/],
    profiles,
    logs,
    discovery,
    scraping,
    metrics,
    none,
    ['limited', 'not built', /agent\.ebpf\.backend/],
  ])
})

test('the banner of an agent that sees the host names the back end', kernel, async () => {
  const [traces, profiles] = (await start({ SVC_AGENT_PROFILING_ENABLED: 'true' })).banner()
  assert.equal(traces!.state, 'ok')
  assert.match(profiles!.detail, /^on-CPU of every process, at 19 Hz$/)
  assert.match(traces!.detail, /^12 protocols of every process, by sock; \d+ sockets were already open$/)
})

test('without the management API there is nothing to look at and no port', async () => {
  const ports = async () => (await attachments()).filter(name => name === 'TCPServerWrap')
  const before = await ports()
  const agent = await start({ SVC_SELF_TELEMETRY_ENABLED: 'false', SVC_AGENT_EBPF_ENABLED: 'false' })
  assert.deepEqual(agent.links(), [])
  assert.deepEqual(await ports(), before)
})

test('exchanges whose connection lost its framing are in the books', kernel, async () => {
  const talk = await RawTalk.start(0)
  open.push(() => talk.close())
  const agent = await start({ SVC_AGENT_EBPF_NETWORK_INCLUDE_PORTS: String(talk.port) })
  const request = ['GET /x HTTP/1.1\r\nhost: x\r\n\r\n']
  const good = { request, answer: ['HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'] }
  await talk.have([good, { request, answer: ['this is no answer of HTTP, and never was one\r\n\r\n'] }])
  const of = () => metrics(agent)
  await until('the loss', () => of()('svc_ebpf_capture_total{event="abandoned"}') > 0)
  const lost = of()('svc_ebpf_capture_total{event="abandoned"}')
  assert.equal(of()('svc_spans_dropped_total{reason="framing_lost"}'), lost)
  assert.equal(of()('svc_spans_collected_total{signal_type="unknown"}'), lost)
  assert.equal(checkBalance(agent), 1 + lost)
})

test('in a pid namespace of its own the agent says that it knows no names', kernel, () => {
  const script = `
    import { startInnerAgent } from ${JSON.stringify(import.meta.resolve('../../../test/helpers/inner-agent.ts'))}
    const { agent } = await startInnerAgent({
      SVC_SELF_TELEMETRY_ENABLED: 'false',
      SVC_AGENT_NODEEXPORTER_ENABLED: 'false',
      SVC_AGENT_PROFILING_ENABLED: 'false',
      SVC_AGENT_EBPF_NETWORK_INCLUDE_PORTS: '1',
    })
    console.log(JSON.stringify([agent.banner()[1], agent.view.status().degraded, agent.view.readiness()]))
    await agent.stop()`
  const inside = ['--pid', '--fork', '--mount-proc', process.execPath, '--input-type=module', '-e', script]
  const [line, degraded, readiness] = JSON.parse(execFileSync('unshare', inside).toString())
  assert.deepEqual([line.state, line.name], ['limited', 'processes'])
  assert.match(line.detail, /its own pid namespace.*only their short name$/)
  assert.match(line.hint, /--pid=host/)
  assert.deepEqual(
    degraded.map(({ subsystem }: { subsystem: string }) => subsystem),
    ['processes'],
  )
  assert.equal(readiness.ebpf, 'ok')
})

test('the note of a run is there before its queue is opened, and names what ended the start', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-note-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const env = { SVC_PIPELINE_EXPORT_QUEUE_DIRECTORY: join(directory, 'queue') }
  const loaded = loadConfig({ explicit: false, cwd: '/nonexistent', systemFile: '/nonexistent', env })
  // What makes the queue finds none of its settings.
  const config = { ...loaded.config, queues: undefined } as unknown as Config
  const log = createLogger({ level: 'error', format: 'json', write: () => {} })
  const broken = { ...loaded, config }
  await assert.rejects(
    startAgent({ loaded: broken, log, logRing: new LogRing(), load: () => broken }),
    TypeError,
  )
  const { end } = JSON.parse(readFileSync(join(directory, 'run.json'), 'utf8'))
  assert.equal(end?.cause, 'start_failed')
  assert.match(end?.detail, /undefined/)
})
