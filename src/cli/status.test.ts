import assert from 'node:assert/strict'
import { test } from 'node:test'
import { svc } from '../../test/helpers/svc.ts'
import { liveOf, pipelineLine, startUiAgent } from '../../test/helpers/ui-agent.ts'
import type { AgentView, ExportDocument, StatusDocument } from '../api/types.ts'

const status: StatusDocument = {
  version: '0.1.0',
  commit: 'abc1234',
  built: '2026-01-01T00:00:00Z',
  uptime: '1h2m3s',
  mode: 'agent',
  host: { name: 'shop-node-3', os: 'linux', arch: 'amd64', kernel: '6.18.44' },
  ebpf: { enabled: true, programs_loaded: 12, maps_created: 9, ringbuf_size: 1 },
  profiling: { enabled: true, sample_rate: 19, profiles_collected: 5 },
  export: { endpoint: 'h:4317', connected: false, last_export: null, spans_exported: 0, metrics_exported: 0 },
  discovery: { kubernetes: false, docker: true, pods_discovered: 0, containers_discovered: 3 },
  degraded: [{ subsystem: 'tls', reason: 'no symbols in \x1b[31mlibssl', mend: 'svc doctor tls' }],
}
const queue = { size: 3, capacity: 10, exported: 90, dropped: 0, bytes: 5 << 20, capacity_bytes: 10 << 20 }
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
      parked: false,
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
  assert.match(out, /\npage: http:\/\/127\.0\.0\.1:1\/ui\n/)
  assert.match(
    out,
    / {2}traces +on, 12 programs in the kernel\n {2}profiles +on, 19 Hz\n {2}discovery +docker 3 containers, kubernetes off\n/,
  )
  assert.match(out, / {2}tls +limited: no symbols in \?\[31mlibssl\n +fix: svc doctor tls\n/)
  assert.match(
    out,
    / {2}export +h:4317 \(grpc, no TLS, compression gzip\): NOT CONNECTED\n +traces: connection refused; next attempt /,
  )
  assert.match(out, / {2}traces +90 +3 +1,234! {2}#####\.\.\.\.\. 5\/10M\n/)
  assert.match(out, / {2}DROPPED SINCE THE START\n {2}traces +7! queue_full\n$/)
  assert.ok(out.split('\n').length <= 25, out)
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
