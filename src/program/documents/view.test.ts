// owns: host
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { afterEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { withoutBpf } from '../../../test/helpers/compile-bpf.ts'
import { call } from '../../../test/helpers/http.ts'
import { startInnerAgent } from '../../../test/helpers/inner-agent.ts'
import { startReceiver } from '../../../test/helpers/otlp-receiver.ts'
import { startPeers } from '../../../test/helpers/peers.ts'
import type { AgentView } from '../../view/api/types.ts'

/** What a test leaves open. */
const open: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

async function viewOf(env: Record<string, string>): Promise<AgentView> {
  const { agent } = await startInnerAgent({
    SVC_SELF_TELEMETRY_ENABLED: 'false',
    SVC_AGENT_NODEEXPORTER_ENABLED: 'false',
    SVC_AGENT_PROFILING_ENABLED: 'false',
    SVC_AGENT_EBPF_NETWORK_INCLUDE_PORTS: '1',
    ...env,
  })
  open.push(() => agent.stop())
  return agent.view
}

const withoutEbpf = { SVC_AGENT_EBPF_ENABLED: 'false' }

/** The shape of a document: types at the leaves, of a list the shape of its first entry. */
function shapeOf(document: unknown): unknown {
  if (document === null) return 'null'
  if (Array.isArray(document)) return document.length === 0 ? [] : [shapeOf(document[0])]
  if (typeof document === 'number') return Number.isSafeInteger(document) ? 'integer' : 'number'
  if (typeof document !== 'object') return typeof document
  return Object.fromEntries(Object.entries(document).map(([name, value]) => [name, shapeOf(value)]))
}

const statusShape = {
  version: 'string',
  commit: 'string',
  built: 'string',
  uptime: 'string',
  mode: 'string',
  host: { name: 'string', os: 'string', arch: 'string', kernel: 'string' },
  ebpf: {
    enabled: 'boolean',
    programs_loaded: 'integer',
    maps_created: 'integer',
    ringbuf_size: 'integer',
    parts: [{ subsystem: 'string', state: 'string', reason: 'string' }],
  },
  profiling: { enabled: 'boolean', sample_rate: 'integer', profiles_collected: 'integer' },
  export: {
    endpoint: 'string',
    connected: 'boolean',
    last_export: 'null',
    spans_exported: 'integer',
    metrics_exported: 'integer',
  },
  discovery: {
    kubernetes: 'boolean',
    docker: 'boolean',
    pods_discovered: 'integer',
    containers_discovered: 'integer',
  },
  memory: {
    limit: 'integer',
    resident: 'integer',
    anonymous: 'integer',
    heap: { live: 'integer', used: 'integer', limit: 'integer' },
    pressure: 'integer',
    shortages: 'integer',
    tables: { used: 'integer', limit: 'integer', largest: [] },
  },
  cpu: { limit_cores: 'number', used_cores: 'number', reductions: 'integer', reduced: [] },
  event_loop: { turns: 'integer', longest_ms: 'integer', longest_last_minute_ms: 'integer' },
  reload: {
    successful: 'boolean',
    last_attempt: 'string',
    reason: 'string',
    place: 'string',
    hint: 'string',
    requires_restart: [],
  },
  degraded: [],
}

const queueShape = {
  size: 'integer',
  capacity: 'integer',
  exported: 'integer',
  dropped: 'integer',
  bytes: 'integer',
  capacity_bytes: 'integer',
  on_disk: 'boolean',
}
const exportShape = {
  endpoint: 'string',
  protocol: 'string',
  tls: 'boolean',
  compression: 'string',
  connected: 'boolean',
  last_export: 'null',
  last_error: 'null',
  queues: { traces: queueShape, metrics: queueShape, logs: queueShape, profiles: queueShape },
  destinations: [],
  disk_queue: 'null',
}

test('a queue on disk that is wanted and cannot be had is said where one looks, and stops nothing', async () => {
  const env = {
    ...withoutEbpf,
    SVC_PIPELINE_EXPORT_QUEUE_ENABLED: 'true',
    SVC_PIPELINE_EXPORT_QUEUE_DIRECTORY: '/proc/1/nowhere/queue',
    SVC_OTLP_ENDPOINT: '127.0.0.1:1',
  }
  const view = await viewOf(env)
  assert.match(view.readiness().otlp, /^failed: cannot open the queue in \/proc\/1\/nowhere\/queue/)
  const [queue] = view.status().degraded
  assert.equal(queue?.subsystem, 'queue')
  assert.match(queue!.hint, /restart svc/)
  assert.equal((await viewOf({ ...env, SVC_PIPELINE_EXPORT_QUEUE_ENABLED: 'false' })).readiness().otlp, 'ok')
})

test('the status document has the fields of the specification, whatever runs', async () => {
  for (const env of [{}, withoutEbpf, { SVC_MODE: 'collector' }]) {
    const { degraded, memory, last_run, ...status } = (await viewOf(env)).status()
    // Whether there was one before.
    assert.ok(last_run === null || last_run.uptime_seconds >= 0)
    const shown = { ...memory, tables: { ...memory.tables, largest: [] } }
    assert.deepEqual(shapeOf({ ...status, memory: shown, degraded: [] }), statusShape)
    assert.match(status.built, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    assert.match(status.uptime, /^\d+s$/)
    assert.deepEqual(
      [status.mode, status.host.os],
      [env === withoutEbpf || !('SVC_MODE' in env) ? 'agent' : 'collector', 'linux'],
    )
    assert.ok(withoutBpf || degraded.length === 0)
  }
})

test('the export document has the fields of the specification, with and without an endpoint', async () => {
  const view = await viewOf(withoutEbpf)
  assert.deepEqual(shapeOf(view.exporting()), exportShape)
  const { endpoint, tls, connected, protocol, compression } = view.exporting()
  assert.deepEqual(
    { endpoint, tls, connected, protocol, compression },
    {
      endpoint: '',
      tls: false,
      connected: false,
      protocol: 'grpc',
      compression: 'gzip',
    },
  )
  const sent = await viewOf({
    ...withoutEbpf,
    SVC_OTLP_ENDPOINT: '127.0.0.1:1',
    SVC_OTLP_COMPRESSION: 'none',
  })
  const destination = {
    signal: 'string',
    endpoint: 'string',
    connected: 'boolean',
    credentials_rejected: 'boolean',
    last_error: 'null',
    last_warning: 'null',
    next_attempt: 'null',
  }
  assert.deepEqual(shapeOf(sent.exporting()), { ...exportShape, destinations: [destination] })
  const of = sent.exporting()
  assert.deepEqual([of.endpoint, of.tls, of.compression], ['127.0.0.1:1', true, 'none'])
})

test('where one signal alone is sent, its endpoint and its security are shown', async () => {
  const check = async (url: string, want: boolean) => {
    const { endpoint, tls } = (await viewOf({ ...withoutEbpf, SVC_OTLP_METRICS_ENDPOINT: url })).exporting()
    assert.deepEqual([endpoint, tls], ['127.0.0.1:4317', want])
  }
  await check('http://127.0.0.1:4317', false)
  await check('https://127.0.0.1:4317', true)
})

const profilingShape = {
  sample_rate: 'integer',
  map_bytes: 'integer',
  table_bytes: 'integer',
  files: 'integer',
  files_refused: 'integer',
  symbol_bytes: 'integer',
  stacks: 'integer',
  frames: 'integer',
  frames_named: 'integer',
  worker_failures: 'integer',
  decoder_fault: 'string',
  counters: {},
  without_unwind_table: [],
}

test('the eBPF document has the fields of the specification', { skip: withoutBpf }, async () => {
  const document = (await viewOf({ SVC_AGENT_PROFILING_ENABLED: 'true' })).ebpf()
  const profiling = { ...document.profiling, counters: {}, without_unwind_table: [] }
  assert.deepEqual(shapeOf({ ...document, counters: {}, tls: [], profiling }), {
    enabled: 'boolean',
    programs: [
      {
        ...{ name: 'string', object: 'string', type: 'string' },
        ...{ attached: 'boolean', links: 'integer', id: 'integer' },
      },
    ],
    maps: [
      {
        ...{ name: 'string', object: 'string', id: 'integer', type: 'string' },
        ...{ entries: 'integer', max_entries: 'integer' },
      },
    ],
    ringbuf: { size: 'integer', events_received: 'integer', events_lost: 'integer' },
    tls: [],
    profiling: profilingShape,
    backend: 'string',
    counters: {},
  })
  assert.equal(document.enabled, true)
  assert.ok(document.programs.every(({ id, type }) => id > 0 && type !== ''))
  assert.ok(document.maps.every(({ entries, max_entries }) => entries <= Math.max(max_entries, entries && 1)))
  assert.ok(Object.values(document.counters).every(count => Number.isSafeInteger(count)))
})

test('with debug on, the eBPF document tells what each program costs', { skip: withoutBpf }, async () => {
  const peers = await startPeers()
  open.push(() => peers.close())
  const view = await viewOf({
    SVC_AGENT_EBPF_DEBUG: 'true',
    SVC_AGENT_EBPF_NETWORK_INCLUDE_PORTS: String(peers.port),
  })
  await peers.requests(50, '/status/200')
  const attached = view.ebpf().programs.filter(program => program.attached)
  assert.ok(attached.some(({ run_count }) => run_count! >= 50))
  assert.ok(attached.some(({ run_time_ns }) => run_time_ns! > 1000))
})

test('an exporter that cannot be made is a fault of its signal and stops nothing else', async () => {
  // A variable that other programs read too, so that the configuration lets it pass.
  const view = await viewOf({
    ...withoutEbpf,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:4318/v1/traces',
  })
  const reason =
    'cannot use the OTLP endpoint "http://127.0.0.1:4318/v1/traces": gRPC has no paths; delete /v1/traces'
  assert.deepEqual(
    view.status().degraded.map(found => [found.subsystem, found.reason]),
    [['export of traces', reason]],
  )
  assert.equal(view.readiness().otlp, `failed: ${reason}`)
  assert.equal(view.exporting().last_error, reason)
  assert.deepEqual(view.health(), { healthy: true })
})

/** Numbers of the programs and maps that this process has open, and of the programs of its links, once each link. */
function descriptors(): { programs: number[]; maps: number[]; links: number[] } {
  const programs = new Set<number>()
  const maps = new Set<number>()
  const links: number[] = []
  for (const fd of readdirSync('/proc/self/fdinfo')) {
    let text = ''
    try {
      text = readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1')
    } catch {
      continue // the one that the directory was read by, or a thread's that closed it
    }
    const of = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(text)?.[1] ?? 0)
    if (of('map_id') > 0) maps.add(of('map_id'))
    else if (of('link_id') > 0) links.push(of('prog_id'))
    else if (of('prog_id') > 0) programs.add(of('prog_id'))
  }
  return { programs: ordered(programs), maps: ordered(maps), links: ordered(links) }
}

const ordered = (numbers: Iterable<number>) => [...numbers].sort((a, b) => a - b)

test('what is told of the kernel is what the process has open there, whoever tells it', {
  skip: withoutBpf,
}, async () => {
  const view = await viewOf({
    SVC_AGENT_PROFILING_ENABLED: 'true',
    SVC_AGENT_PROFILING_OFF_CPU: 'true',
    SVC_AGENT_EBPF_SYSCALLS_ENABLED: 'true',
    SVC_AGENT_NODEEXPORTER_ENABLED: 'true',
    SVC_AGENT_NODEEXPORTER_LISTEN_ADDRESS: '127.0.0.1:0',
  })
  const told = () => {
    const { programs, maps } = view.ebpf()
    return {
      programs: ordered(programs.map(({ id }) => id)),
      maps: ordered(maps.map(({ id }) => id)),
      links: ordered(programs.flatMap(({ id, links }) => Array<number>(links).fill(id))),
    }
  }
  // Libraries of TLS are found and attached to one after the other.
  for (let tries = 0; tries < 500 && !isDeepStrictEqual(told(), descriptors()); tries++) await sleep(20)
  assert.deepEqual(told(), descriptors())
  const { programs, maps } = view.ebpf()
  assert.deepEqual([...new Set(programs.map(({ object }) => object))].sort(), [
    'host',
    'net',
    'process',
    'profile',
    'sock',
    'syscount',
  ])
  assert.ok(programs.every(({ attached, links }) => attached === links > 0))
  const { enabled, programs_loaded, maps_created, parts } = view.status().ebpf
  assert.deepEqual([enabled, programs_loaded, maps_created], [true, programs.length, maps.length])
  assert.ok(parts.every(({ state }) => state === 'on'))
  const page = view.registry.write()
  const sum = (name: string) =>
    [...page.matchAll(new RegExp(`^${name}\\{.*\\} (\\d+)$`, 'gm'))].reduce(
      (all, [, n]) => all + Number(n),
      0,
    )
  assert.equal(sum('svc_ebpf_programs_loaded'), programs.length)
  for (const { name } of maps) assert.ok(page.includes(`svc_ebpf_map_entries{map_name="${name}"}`), name)
})

test('without eBPF nothing is in the kernel, and what is missing for it says so', async () => {
  const before = descriptors()
  for (const [env, reason] of [
    [withoutEbpf, 'agent.ebpf.enabled is false'],
    [{ SVC_MODE: 'collector' }, 'mode is collector'],
  ] as const) {
    const { agent } = await startInnerAgent({
      ...env,
      SVC_SELF_TELEMETRY_ENABLED: 'false',
      SVC_AGENT_NODEEXPORTER_ENABLED: 'true',
      SVC_AGENT_NODEEXPORTER_LISTEN_ADDRESS: '127.0.0.1:0',
      SVC_AGENT_EBPF_REQUIRED: 'true',
    })
    open.push(() => agent.stop())
    const { url } = agent.links().find(({ what }) => what === 'host metrics')!
    const page = (await call(Number(new URL(url).port), '/metrics')).body.toString()
    assert.deepEqual(descriptors(), before)
    assert.match(page, /^node_scrape_collector_success\{collector="ebpf"\} 0$/m)
    const told = /^node_scrape_collector_reason_info\{collector="ebpf",outcome="no_data",reason="(.*)"\} 1$/m
    assert.equal(told.exec(page)?.[1], `no eBPF metrics: ${reason}`)
    assert.doesNotMatch(page, /^node_(tcp_rtt|tcp_retransmits|process_open_fds)/m)
    assert.match(page, /^node_scrape_collector_success\{collector="cgroup_usage"\}/m)
    const { ebpf, degraded } = agent.view.status()
    assert.deepEqual([ebpf.enabled, ebpf.programs_loaded, ebpf.maps_created], [false, 0, 0])
    assert.deepEqual(
      new Set(ebpf.parts.map(part => `${part.state}: ${part.reason}`)),
      new Set([`off: ${reason}`]),
    )
    assert.deepEqual(degraded, [])
    assert.equal(agent.view.readiness().ebpf, 'ok')
  }
})

test('without eBPF its document says so and is empty', async () => {
  assert.deepEqual((await viewOf(withoutEbpf)).ebpf(), {
    enabled: false,
    programs: [],
    maps: [],
    ringbuf: { size: 0, events_received: 0, events_lost: 0 },
    tls: [],
    profiling: {
      sample_rate: 0,
      map_bytes: 0,
      table_bytes: 0,
      files: 0,
      files_refused: 0,
      symbol_bytes: 0,
      stacks: 0,
      frames: 0,
      frames_named: 0,
      worker_failures: 0,
      decoder_fault: '',
      counters: {},
      without_unwind_table: [],
    },
    backend: '',
    counters: {},
  })
})

test('a subsystem that is off is ready', async () => {
  const ok = { ebpf: 'ok', otlp: 'ok', discovery: 'ok' }
  assert.deepEqual((await viewOf(withoutEbpf)).readiness(), ok)
  const collector = await viewOf({ SVC_MODE: 'collector' })
  assert.deepEqual(collector.readiness(), ok)
  const [unseen] = (await collector.processes(process.ppid, 0)).processes
  assert.equal(unseen?.reason, 'tracing is not running: mode is collector')
  // Not tried yet is no failure.
  assert.deepEqual((await viewOf({ ...withoutEbpf, SVC_OTLP_ENDPOINT: '127.0.0.1:1' })).readiness(), ok)
})

test('a subsystem that failed says why, and the others are told all the same', async () => {
  const view = await viewOf({ SVC_AGENT_EBPF_BACKEND: 'kprobe' })
  assert.deepEqual(view.readiness(), {
    ebpf: 'failed: traces: the capture back end "kprobe" is not built in this version',
    otlp: 'ok',
    discovery: 'ok',
  })
  assert.deepEqual(view.status().degraded, [
    {
      subsystem: 'traces',
      reason: 'the capture back end "kprobe" is not built in this version',
      hint: 'set agent.ebpf.backend: auto',
    },
  ])
  const { parts } = view.status().ebpf
  assert.deepEqual(
    parts.map(({ subsystem, state }) => `${subsystem} ${state}`),
    [
      'traces failed',
      ...(['connections', 'process events'] as const).map(name => `${name} ${withoutBpf ? 'failed' : 'on'}`),
      'system calls off',
      'profiles off',
      'host metrics by eBPF off',
    ],
  )
  assert.deepEqual(
    parts.map(({ reason }) => reason).filter(reason => reason.startsWith('agent.')),
    [
      'agent.ebpf.syscalls.enabled is false',
      'agent.profiling.enabled is false',
      'agent.nodeexporter.enabled is false',
    ],
  )
})

test('a receiver that refuses makes the agent not ready, until it takes something', {
  skip: withoutBpf,
}, async () => {
  const receiver = await startReceiver()
  open.push(() => receiver.close())
  receiver.answer = () => ({ kind: 'refuse', code: 14, message: 'in maintenance', retryMs: 20 })
  const peers = await startPeers()
  open.push(() => peers.close())
  const view = await viewOf({
    SVC_OTLP_ENDPOINT: receiver.endpoint,
    SVC_OTLP_INSECURE: 'true',
    SVC_AGENT_EBPF_NETWORK_INCLUDE_PORTS: String(peers.port),
    // Processes that come and go elsewhere would be told in logs, which it refuses too.
    SVC_AGENT_EBPF_PROCESS_ENABLED: 'false',
    SVC_PIPELINE_EXPORT_BATCH_TIMEOUT: '20ms',
    SVC_BACKOFF_INITIAL: '20ms',
    SVC_BACKOFF_MAX: '50ms',
  })
  const until = async (done: () => boolean): Promise<void> => {
    for (let tries = 0; !done(); tries++) {
      if (tries > 500) throw new Error(`never came: ${done}`)
      await sleep(20)
    }
  }
  await peers.requests(10, '/status/200')
  await until(() => view.readiness().otlp !== 'ok')
  assert.match(view.readiness().otlp, /^failed: .*in maintenance/)
  assert.match(view.exporting().last_error!, /in maintenance/)
  assert.deepEqual(
    view.status().degraded.map(({ subsystem }) => subsystem),
    ['export of traces'],
  )
  receiver.answer = () => ({ kind: 'ok' })
  await until(() => view.readiness().otlp === 'ok')
  const { connected, last_error, last_export } = view.exporting()
  assert.deepEqual([connected, last_error], [true, null])
  assert.match(last_export!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.equal(view.status().export.last_export, last_export)
  assert.equal(view.exporting().queues.traces.exported, view.status().export.spans_exported)
})

test('a receiver that does not know profiles is named with the hint, and makes nothing unready', {
  skip: withoutBpf,
}, async () => {
  const receiver = await startReceiver()
  open.push(() => receiver.close())
  receiver.answer = ({ signal }) =>
    signal === 'profiles' ? { kind: 'refuse', code: 12, message: 'unknown service' } : { kind: 'ok' }
  const view = await viewOf({
    SVC_OTLP_ENDPOINT: receiver.endpoint,
    SVC_OTLP_INSECURE: 'true',
    SVC_AGENT_PROFILING_ENABLED: 'true',
    SVC_AGENT_PROFILING_INTERVAL: '1s',
    SVC_PIPELINE_EXPORT_BATCH_TIMEOUT: '20ms',
  })
  const degraded = () => view.status().degraded.find(({ subsystem }) => subsystem === 'export of profiles')
  for (let tries = 0; degraded() === undefined && tries < 500; tries++) await sleep(20)
  assert.match(degraded()!.reason, /UNIMPLEMENTED/)
  assert.match(degraded()!.hint, /enable profiles at the receiver .*agent\.profiling\.enabled: false/)
  assert.equal(view.readiness().otlp, 'ok')
})
