import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Histogram, type Registry } from '../../foundation/lib/registry.ts'
import type { Signal } from '../../foundation/model/signal.ts'
import { DiskStore } from '../../pipeline/disk/disk-store.ts'
import { cpu } from '../subsystems/cpu.ts'
import { discovery } from '../subsystems/discovery.ts'
import { eventLoop } from '../subsystems/event-loop.ts'
import { exporting } from '../subsystems/exporting.ts'
import { gpus } from '../subsystems/gpus.ts'
import { subsystems } from '../subsystems/index.ts'
import { connections } from '../subsystems/kernel-counts.ts'
import { lastRun } from '../subsystems/last-run.ts'
import { logs } from '../subsystems/logs.ts'
import { managementApi } from '../subsystems/management-api.ts'
import { memory } from '../subsystems/memory.ts'
import { processes } from '../subsystems/processes.ts'
import { profiles } from '../subsystems/profiles.ts'
import { queue } from '../subsystems/queue.ts'
import { reload } from '../subsystems/reload.ts'
import { declareMetrics, type Running } from '../subsystems/running.ts'
import { scraping } from '../subsystems/scraping.ts'
import { selfTraces } from '../subsystems/self-traces.ts'
import { traces } from '../subsystems/traces.ts'
import { Events } from './subsystem.ts'
import { Tracing } from './tracing.ts'

const turns = new Histogram([0.1])
turns.observe(0.05)

const capture = {
  backlog: { heldBytes: 21, peakBytes: 22, absorbedBytes: 23 },
  noRoom: 'ring_full',
  received: 20,
  perfBuffers: [{ cpu: 0, received: 9, lost: 2 }],
  counters: () => ({ desync: 3, ring_full: 1, segments_lost: 0 }),
}
const tracing = Object.assign(Object.create(Tracing.prototype), {
  capture,
  red: { overflowed: 5, losses: { refused: 0, taken: 0 } },
  tracer: {
    collected: new Map([['http', 10]]),
    joins: { joined: 8, expired: 1, waitingNow: 0 },
    telemetry: 4,
  },
  tls: { losses: { refused: 2, taken: 1 }, unread: {} },
  routes: { losses: { refused: 0, taken: 0 } },
  sync() {},
})

const store = Object.create(DiskStore.prototype, {
  state: { value: { bytes: 15, maxBytes: 16, state: 'failing' } },
})
const stateOf = (signal: Signal) => ({
  exportedBy: new Map(signal === 'traces' ? [['h:4317', 7]] : []),
  dropped: new Map(signal === 'traces' ? [['queue_full', 1]] : []),
  rejected: 0,
  queuedBytes: signal === 'traces' ? 14 : 0,
  recovered: signal === 'logs' ? 13 : 0,
})
const none = { eachType: () => undefined }
const pipelines = {
  pipeline: {
    state: stateOf,
    ledger: {
      metrics: { eachType: (each: (type: string, items: number) => void) => each('http', 4) },
      logs: none,
      profiles: none,
    },
  },
  store,
  waiting: (signal: Signal) => (signal === 'traces' ? 2 : 0),
  stages: (signal: Signal) => (signal === 'logs' ? [{ name: 'redact', stage: { counters: redacted } }] : []),
}
function redacted(each: (rule: string, outcome: string, total: number) => void): void {
  each('email', 'redacted', 12)
}

const answering = { state: { connected: true, hint: '' } }
const silent = { state: { connected: false, hint: 'allow it' } }

/** What runs of each subsystem, as far as its metrics read it. */
const running = new Map<unknown, unknown>([
  [
    memory,
    {
      state: {
        limit: 512,
        anonymous: 60,
        heap: { live: 20, limit: 256 },
        pressure: 1,
        shortages: 2,
        tables: { largest: [{ name: 'processes', kind: 'detail', bytes: 3, limit: 16, released: 4 }] },
      },
    },
  ],
  [
    cpu,
    { state: { limit_cores: 0.5, used_cores: 0.2, reductions: 3, reduced: [{ name: 'spans', steps: 2 }] } },
  ],
  [lastRun, { ends: { watchdog: 2 } }],
  [eventLoop, { watch: { longest: 2, longestLastMinute: 0.05, histogram: () => turns } }],
  [exporting, pipelines],
  [queue, pipelines],
  [traces, tracing],
  [connections, { losses: {} }],
  [
    profiles,
    {
      counters: { samples_cpu: 7, samples_ns: 2_000_000_000, idle_ns: 500_000_000 },
      sampler: { mapBytes: 21 },
      profiler: {
        arena: { bytes: 22, losses: { refused: 0, taken: 0 } },
        state: { symbolBytes: 23, seen: 24, named: 20, shares: {}, namesRefused: 0, unread: {} },
      },
    },
  ],
  [
    scraping,
    {
      totals: { scrapes: 40, failures: 4, missed: 1, samples: 5000, wholeReads: 6, contradictions: 0 },
      jobs: [
        {
          name: 'shop',
          targets: ['up', 'up', 'up', 'down'].map(health => ({ health })),
          droppedTotal: 2,
          sources: [
            { kind: 'file', connected: true },
            { kind: 'file', connected: false },
          ],
        },
      ],
    },
  ],
  [
    discovery,
    {
      entities: { containerCount: 31, podCount: 32 },
      runtimes: { docker: answering },
      cloud: silent,
    },
  ],
  [
    processes,
    {
      discovery: { entities: { lost: { not_allowed: 1, too_many: 0, too_long: 0 } } },
      processes: {
        lostAttributes: { not_allowed: 2, too_many: 0, too_long: 0, memory: 0 },
        unreadStrings: { late: 2 },
        losses: { refused: 0, taken: 0 },
      },
    },
  ],
  [gpus, { source: { state: { on: true, devices: Array.from({ length: 33 }, () => ({ reason: '' })) } } }],
  [
    logs,
    {
      status: { behindBytes: 36 },
      counts: {
        enabled: true,
        records: new Map([['cri', 34]]),
        files: 35,
        readBytes: 37,
        truncations: 38,
        lostRotations: 39,
        leftOut: { files: 30, directories: 10 },
        losses: { refused: 0, taken: 0 },
        forgottenPositions: 0,
        cutTexts: 41,
        paused: true,
      },
    },
  ],
  [selfTraces, { made: 6, lost: 11 }],
  [reload, { state: { lastSuccessful: true, lastSuccessMs: 1_500, reloads: 7, failures: 2, hash: 'abc' } }],
  [
    managementApi,
    {
      api: {
        exposed: true,
        stats: () => ({
          requests: new Map([[200, 30]]),
          refused: { unauthorized: 1, forbidden: 2, rate_limited: 3, pipelined: 0 },
          connections: 4,
          dropped_connections: 5,
          failed_handshakes: 6,
        }),
      },
    },
  ],
])

function declared(namespace: string, events = new Events()): Registry {
  const agent = {
    of: (subsystem: unknown) => running.get(subsystem),
    faults: () => ['not loaded', 'not attached'].map(reason => ({ subsystem: 'ebpf', reason, hint: '' })),
  }
  return declareMetrics(subsystems, namespace, events, () => agent as unknown as Running).registry
}

test('every metric of the specification is declared with its type', () => {
  const types = new Map<string, string>()
  const page = declared('svc').write()
  for (const [, name, type] of page.matchAll(/^# TYPE (\S+) (\S+)$/gm)) types.set(name!, type!)
  const check = (type: string, ...names: string[]) => {
    for (const name of names) assert.equal(types.get(`svc_${name}`), type, name)
  }
  for (const items of ['spans', 'metrics', 'logs', 'profiles'])
    check('counter', `${items}_collected_total`, `${items}_exported_total`, `${items}_dropped_total`)
  check('gauge', 'ebpf_programs_loaded', 'ebpf_map_entries', 'export_queue_size')
  check('counter', 'ebpf_ringbuf_events_total', 'ebpf_ringbuf_lost_total')
  check('counter', 'ebpf_perf_events_total', 'ebpf_perf_lost_total')
  check('counter', 'export_requests_total', 'export_errors_total')
  check('histogram', 'export_latency_seconds', 'export_batch_size')
  check('counter', 'process_cpu_seconds_total')
  check('gauge', 'process_resident_memory_bytes', 'process_open_fds', 'go_goroutines')
  check('counter', 'security_events_total', 'file_integrity_violations_total')
  check('counter', 'container_escape_attempts_total', 'ebpf_capture_total')
  check('counter', 'request_metrics_overflowed_total')
})

test('values carry their labels, under the configured prefix', () => {
  const events = new Events()
  const registry = declared('agent', events)
  const request = {
    endpoint: 'h:4317',
    signal: 'traces',
    latencySeconds: 0.02,
    items: 7,
    call: { protocol: 'grpc', method: 'Export' },
    httpStatus: undefined,
  } as const
  events.exported.report({ ...request, errorType: '' })
  events.exported.report({ ...request, errorType: 'unavailable' })
  const lines = registry.write().split('\n')
  for (const want of [
    'agent_processor_outcomes_total{processor="redact",signal_type="logs",rule="email",outcome="redacted"} 12',
    'agent_export_queue_recovered_total{signal_type="logs"} 13',
    'agent_export_queue_bytes{signal_type="traces"} 14',
    'agent_disk_queue_bytes 15',
    'agent_disk_queue_max_bytes 16',
    'agent_disk_queue_degraded 1',
    'agent_spans_collected_total{signal_type="http"} 10',
    'agent_spans_collected_total{signal_type="internal"} 6',
    'agent_metrics_collected_total{signal_type="http"} 4',
    'agent_spans_exported_total{endpoint="h:4317"} 7',
    'agent_spans_dropped_total{reason="queue_full"} 1',
    'agent_export_queue_size{signal_type="traces"} 2',
    'agent_degraded{subsystem="ebpf"} 2',
    'agent_ebpf_ringbuf_events_total 20',
    'agent_ebpf_ringbuf_lost_total 1',
    'agent_ebpf_ringbuf_backlog_bytes 21',
    'agent_ebpf_ringbuf_backlog_peak_bytes 22',
    'agent_ebpf_ringbuf_absorbed_bytes_total 23',
    'agent_ebpf_perf_events_total{cpu="0"} 9',
    'agent_ebpf_perf_lost_total{cpu="0"} 2',
    'agent_ebpf_capture_total{event="desync"} 3',
    'agent_profiling_events_total{event="samples_cpu"} 7',
    'agent_profiling_cpu_seconds_total{state="busy"} 2',
    'agent_profiling_cpu_seconds_total{state="idle"} 0.5',
    'agent_profiling_map_bytes 21',
    'agent_profiling_table_bytes 22',
    'agent_profiling_symbol_bytes 23',
    'agent_profiling_frames 24',
    'agent_profiling_frames_named 20',
    'agent_request_metrics_overflowed_total 5',
    'agent_spans_joined_total 8',
    'agent_discovery_containers 31',
    'agent_discovery_pods 32',
    'agent_gpu_devices 33',
    'agent_discovery_connected{source="docker"} 1',
    'agent_discovery_connected{source="cloud"} 0',
    'agent_log_records_total{source="cri"} 34',
    'agent_log_files 35',
    'agent_log_behind_bytes 36',
    'agent_log_read_bytes_total 37',
    'agent_log_truncations_total 38',
    'agent_log_lost_rotations_total 39',
    'agent_log_left_out 40',
    'agent_log_cut_texts_total 41',
    'agent_process_memory_unread_total{reader="strings",reason="late"} 2',
    'agent_share_losses_total{table="tls_libraries",reason="refused"} 2',
    'agent_scrape_targets{health="up"} 3',
    'agent_scrape_source_connected{job="shop",kind="file"} 0',
    'agent_process_attributes_dropped_total{reason="not_allowed"} 3',
    'agent_log_paused 1',
    'agent_event_loop_turn_seconds_bucket{le="0.1"} 1',
    'agent_event_loop_turn_seconds_count 1',
    'agent_event_loop_longest_turn_seconds{since="minute"} 0.05',
    'agent_event_loop_longest_turn_seconds{since="start"} 2',
    'agent_spans_unjoined_total 1',
    'agent_telemetry_exchanges_total 4',
    'agent_export_requests_total{endpoint="h:4317",signal_type="traces",status="success"} 1',
    'agent_export_requests_total{endpoint="h:4317",signal_type="traces",status="error"} 1',
    'agent_export_errors_total{endpoint="h:4317",signal_type="traces",error_type="unavailable"} 1',
    'agent_export_latency_seconds_bucket{endpoint="h:4317",signal_type="traces",le="0.025"} 2',
    'agent_export_batch_size_sum{signal_type="traces"} 14',
    'agent_self_spans_lost_total 11',
    'agent_config_last_reload_successful 1',
    'agent_config_last_reload_success_timestamp_seconds 1.5',
    'agent_config_reloads_total{result="success"} 5',
    'agent_config_reloads_total{result="failure"} 2',
    'agent_config_info{hash="abc"} 1',
    'agent_insecure_listen 1',
    'agent_api_responses_total{code="200"} 30',
    'agent_api_refused_total{reason="rate_limited"} 3',
    'agent_api_connections 4',
    'agent_api_connections_dropped_total 5',
    'agent_api_tls_handshakes_failed_total 6',
  ])
    assert.ok(lines.includes(want), want)
  assert.ok(!lines.some(line => /^agent_(security|file_integrity|container_escape)/.test(line)))
})

test('the process reports its own use', () => {
  const page = declared('svc').write()
  const value = (name: string) => Number(new RegExp(`^svc_${name} (\\S+)$`, 'm').exec(page)?.[1])
  assert.ok(value('process_cpu_seconds_total') > 0)
  assert.ok(value('process_resident_memory_bytes') > 1e7)
  assert.ok(value('process_open_fds') > 3)
  assert.ok(value('go_goroutines') >= 0)
})
