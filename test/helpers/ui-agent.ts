// An API of ours that answers the documents of the page as a test gives them, for the commands that ask for them.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogger } from '../../src/foundation/lib/logger.ts'
import { peerUser } from '../../src/kernel/peer-user.ts'
import { operations } from '../../src/view/api/routes.ts'
import { type Api, startApi } from '../../src/view/api/server.ts'
import type { AgentView, UiSource } from '../../src/view/api/types.ts'
import type { OverviewLine, PipelineLine, ServiceLine } from '../../src/view/api/ui/documents.ts'
import type { Live } from '../../src/view/api/ui/source.ts'
import { settings } from './api-server.ts'

type Service = Extract<OverviewLine, { kind: 'tick' }>['services'][number]

/** A document that goes on: `lines` is asked each 50 ms. */
export function liveOf<T>(lines: () => readonly T[]): Live<T> {
  return { everyMs: 50, next: lines }
}

export const overviewStart: OverviewLine = {
  kind: 'start',
  host: {
    name: 'shop-node-3',
    version: '0.1.0',
    mode: 'agent',
    system: 'Linux 6.18 amd64',
    window_ms: 900_000,
    redacted: true,
  },
  from_ms: 0,
  step_ms: 1000,
  series: [
    { chart: 'cpu', label: 'user', unit: '%', values: [30] },
    { chart: 'cpu', label: 'system', unit: '%', values: [7] },
    { chart: 'cpu', label: 'iowait', unit: '%', values: [5] },
    { chart: 'memory', label: 'used', unit: 'By', values: [1] },
    { chart: 'memory', label: 'free', unit: 'By', values: [1] },
    { chart: 'memory', label: 'swap used', unit: 'By', values: [1] },
    { chart: 'network', label: 'received', unit: 'By/s', values: [1] },
    { chart: 'network', label: 'sent', unit: 'By/s', values: [1] },
    { chart: 'network', label: 'loopback', unit: 'By/s', values: [1] },
  ],
}

export function serviceOf(name: string, more: Partial<Service> = {}): Service {
  return {
    name,
    namespace: '',
    protocols: ['http'],
    requests_per_s: 41.2,
    serves: true,
    errors_percent: 0,
    p50_ms: 8,
    p95_ms: 31,
    p99_ms: 88,
    dependencies: [],
    trend: [],
    ...more,
  }
}

export function overviewTick(services: readonly Service[], dropped = 0): OverviewLine {
  return {
    kind: 'tick',
    at_ms: 1000,
    values: [30, 7, 5, 5.1 * 2 ** 30, 10.9 * 2 ** 30, 2 ** 30, 12e6, 4.1e6, 900e6],
    services,
    processes: [],
    findings: [],
    agent: { cpu_percent: 0.6, rss_bytes: 92 * 2 ** 20, dropped, window_bytes: 0, window_max_bytes: 0 },
  }
}

export function serviceLineOf(service: Service): ServiceLine {
  return {
    found: true,
    service,
    from_ms: 0,
    step_ms: 10_000,
    requests_per_s: [0, 10, 20, 41.2],
    errors_per_s: [0, 0, 0, 1],
    p95_ms: [null, 20, 25, 31],
    callers: [{ name: 'frontend', requests_per_s: 41 }],
    callees: [{ name: 'redis', requests_per_s: 80 }],
    routes: [{ name: 'GET /cart/*', spans: 240, errors: 3, slowest_ms: 1200, trace_id: '0'.repeat(32) }],
    resource: { 'service.name': service.name, 'process.pid': 4121 },
    no_data_reason: '',
  }
}

export const pipelineLine: PipelineLine = {
  at_ms: 0,
  signals: [
    {
      signal: 'traces',
      collected: 100,
      recovered: 0,
      exported: 90,
      rejected: 0,
      dropped: [{ reason: 'queue_full', items: 7, intended: false }],
      queued: 3,
      collected_per_s: 12.5,
      exported_per_s: 11,
      dropped_per_s: 0.5,
      queued_bytes: 5 << 20,
      capacity_bytes: 10 << 20,
      full_in_s: 90,
      oldest_ms: 4000,
      durable: true,
    },
  ],
  nodes: [
    {
      id: 'otlp',
      kind: 'exporter',
      name: 'otlp collector:4317',
      signals: ['traces'],
      state: 'failed',
      reason: 'connection refused; start the receiver',
      details: [],
    },
  ],
  edges: [],
}

export interface UiAgent {
  readonly api: Api
  /** Path of a configuration by which commands find it over its socket. */
  readonly config: string
  close(): Promise<void>
}

/** Answers what is given; what is not given is asked in vain. */
export async function startUiAgent(
  source: Partial<UiSource>,
  view: Partial<AgentView> = {},
): Promise<UiAgent> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-ui-'))
  const socket = join(directory, 'svc.sock')
  const whole = { profiles: [], pages: [], health: () => ({ healthy: true }), ui: source, ...view }
  const api = await startApi({
    settings: { ...settings, admin_socket: socket },
    peerUser,
    operations: operations(whole as unknown as AgentView, '/metrics'),
    log: createLogger({ level: 'error', format: 'json', write: line => process.stderr.write(line) }),
  })
  const config = join(directory, 'config.yaml')
  writeFileSync(config, JSON.stringify({ self_telemetry: { listen: '127.0.0.1:1', admin_socket: socket } }))
  const close = async () => {
    await api.close()
    rmSync(directory, { recursive: true, force: true })
  }
  return { api, config, close }
}
