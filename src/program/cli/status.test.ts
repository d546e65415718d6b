import assert from 'node:assert/strict'
import { test } from 'node:test'
import { svc } from '../../../test/helpers/svc.ts'
import { liveOf, pipelineLine, startUiAgent } from '../../../test/helpers/ui-agent.ts'
import type { AgentView, ExportDocument, StatusDocument } from '../../view/api/types.ts'

const status: StatusDocument = {
  version: '0.1.0',
  commit: 'abc1234',
  built: '2026-01-01T00:00:00Z',
  uptime: '1h2m3s',
  mode: 'agent',
  host: { name: 'shop-node-3', os: 'linux', arch: 'amd64', kernel: '6.18.44' },
  ebpf: {
    enabled: true,
    programs_loaded: 12,
    maps_created: 9,
    ringbuf_size: 1,
    parts: [
      { subsystem: 'traces', state: 'on', reason: '' },
      {
        subsystem: 'connections',
        state: 'off',
        reason: 'agent.ebpf.network.tcp_metrics and flows are false',
      },
      { subsystem: 'process events', state: 'failed', reason: 'no ring buffer' },
      { subsystem: 'profiles', state: 'on', reason: '' },
    ],
  },
  profiling: { enabled: true, sample_rate: 19, profiles_collected: 5 },
  export: { endpoint: 'h:4317', connected: false, last_export: null, spans_exported: 0, metrics_exported: 0 },
  discovery: { kubernetes: false, docker: true, pods_discovered: 0, containers_discovered: 3 },
  event_loop: { turns: 9, longest_ms: 312, longest_last_minute_ms: 12 },
  last_run: {
    ended: 'fault',
    cause: 'watchdog',
    reason: 'watchdog timeout: no response to the supervisor',
    hint: '',
    version: '0.1.0',
    ended_at: '2026-01-01T00:00:00.000Z',
    uptime_seconds: 7,
  },
  reload: {
    successful: true,
    last_attempt: '2026-01-01T00:00:00.000Z',
    reason: '',
    place: '',
    hint: '',
    requires_restart: [],
  },
  cpu: { limit_cores: 0.5, used_cores: 0.124, reductions: 0, reduced: [] },
  memory: {
    limit: 512 << 20,
    resident: 110 << 20,
    anonymous: 60 << 20,
    heap: { live: 20 << 20, used: 30 << 20, limit: 256 << 20 },
    pressure: 0,
    shortages: 0,
    tables: {
      used: 3 << 20,
      limit: 64 << 20,
      largest: [
        { name: 'span window', kind: 'detail', bytes: 3 << 20, limit: 16 << 20, released: 0 },
        { name: 'routes', kind: 'cache', bytes: 100 << 10, limit: 16 << 20, released: 0 },
        { name: 'stacks of profiles', kind: 'detail', bytes: 20 << 10, limit: 16 << 20, released: 0 },
        { name: 'symbols', kind: 'cache', bytes: 0, limit: 16 << 20, released: 5 << 20 },
        { name: 'recent logs', kind: 'detail', bytes: 0, limit: 0, released: 0 },
      ],
    },
  },
  degraded: [{ subsystem: 'tls', reason: 'no symbols in \x1b[31mlibssl', hint: 'svc doctor tls' }],
}
const queue = {
  size: 3,
  capacity: 10,
  exported: 90,
  dropped: 0,
  bytes: 5 << 20,
  capacity_bytes: 10 << 20,
  on_disk: false,
}
const exporting: ExportDocument = {
  endpoint: 'h:4317',
  protocol: 'grpc',
  tls: false,
  compression: 'gzip',
  connected: false,
  last_export: null,
  last_error: 'connection refused',
  queues: { traces: { ...queue, dropped: 1234 }, metrics: queue, logs: queue, profiles: queue },
  destinations: [
    {
      signal: 'traces',
      endpoint: 'h:4317',
      connected: false,
      credentials_rejected: false,
      last_error: 'connection refused',
      last_warning: null,
      next_attempt: '2026-01-01T00:00:05Z',
    },
  ],
  disk_queue: null,
}

function view(isReady: boolean): Partial<AgentView> {
  return {
    status: () => status,
    exporting: () => exporting,
    warnings: () => [],
    readiness: () => ({ ebpf: 'ok', otlp: isReady ? 'ok' : 'failed: connection refused', discovery: 'ok' }),
  }
}

test('a screenful tells what works, what is limited, what is sent and what is lost', async t => {
  const agent = await startUiAgent({ pipeline: () => liveOf(() => [pipelineLine]) }, view(false))
  t.after(() => agent.close())
  const { code, out, talk } = await svc(['status', '--config', agent.config])
  assert.deepEqual([code, talk], [1, ''], 'it is not ready')
  assert.match(
    out,
    /^svc 0\.1\.0 \(commit abc1234\), mode agent, up 1h2m3s, NOT READY\nshop-node-3, linux 6\.18\.44 amd64\n/,
  )
  assert.match(out, /\nPage: http:\/\/127\.0\.0\.1:1\/ui\n/)
  assert.match(
    out,
    / {2}eBPF +12 programs in the kernel: traces, profiles\n {2}profiles +on, 19 Hz\n {2}discovery +docker 3 containers, kubernetes off\n {2}memory +60\/512M \(resident 110M\), live heap 20\/256M, tables 3\/64M\n {2}cpu +0\.12 of 0\.50 cores\n {2}event loop +longest turn 12 ms in the last minute, 312 ms since start\n {2}last run +ended at 2026-01-01T00:00:00\.000Z: watchdog timeout: no response to the supervisor\n/,
  )
  assert.match(out, / {2}tls +limited: no symbols in \?\[31mlibssl\n +Fix: svc doctor tls\n/)
  assert.match(
    out,
    / {2}export +h:4317 \(grpc, no TLS, compression gzip\): NOT CONNECTED\n +traces: connection refused; next attempt /,
  )
  assert.match(out, / {2}traces +90 +3 +1,234! {2}#####\.\.\.\.\. 5\/10M\n/)
  assert.match(out, / {2}DROPPED SINCE START\n {2}traces +7! queue_full\n$/)
  assert.match(
    out,
    /\n {2}MEMORY +IN USE +LIMIT +RELEASED\n {2}span window +3M +16M\n {2}symbols +0B +16M +5M\n {2}2 smaller tables +120K\n/,
  )
  assert.ok(out.split('\n').length <= 32, out)
  const table = out.split('\n').slice(-8, -3)
  assert.match(table[0]!, /MEMORY/)
  for (const line of table) assert.ok(line.length <= 80, line)
})

test('of a queue on disk each signal tells what it holds, and the bound that all share stands once', async t => {
  const queues = { ...exporting.queues }
  for (const signal of ['traces', 'metrics', 'logs', 'profiles'] as const)
    queues[signal] = { ...queue, on_disk: true }
  const disk = {
    state: 'ok',
    reason: '',
    bytes: 20 << 20,
    max_bytes: 500 << 20,
    free_bytes: 1 << 30,
  } as const
  const agent = await startUiAgent({}, {
    ...view(true),
    exporting: () => ({ ...exporting, queues, disk_queue: disk }),
    ui: undefined,
  } as never)
  t.after(() => agent.close())
  const { out } = await svc(['status', '--config', agent.config])
  assert.match(out, / {2}traces +90 +3 +0 {2}#####\.\.\.\.\. 5M on disk\n/)
  assert.match(out, / {2}profiles .* 5M on disk\n {2}queue on disk: 20\/500M for all signals together\n/)
  assert.equal(out.match(/500M/g)?.length, 1)
})

test('--json has the documents in one object, and an agent that is ready exits with 0', async t => {
  const agent = await startUiAgent({}, { ...view(true), ui: undefined } as never)
  t.after(() => agent.close())
  const { code, out } = await svc(['status', '--json', '--config', agent.config])
  assert.equal(code, 0)
  const found = JSON.parse(out)
  assert.deepEqual(Object.keys(found), ['status', 'ready', 'export', 'pipeline', 'page'])
  assert.deepEqual([found.status, found.export, found.pipeline, found.page], [status, exporting, null, ''])
})
