import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Histogram } from '../lib/registry.ts'
import { type SelfMetricsSource, selfMetrics } from './self-metrics.ts'

const turns = new Histogram([0.1])
turns.observe(0.05)

const source: SelfMetricsSource = {
  shares: emit => emit('tls_libraries', { refused: 2, taken: 1 }),
  eventLoop: () => ({ longest: 2, longestLastMinute: 0.05, histogram: () => turns }),
  previousRuns: emit => emit('watchdog', 2),
  cpu: () => ({ limit_cores: 0.5, used_cores: 0.2, changes: 3, lowered: [{ name: 'spans', steps: 2 }] }),
  memory: () => ({
    limit: 512,
    anonymous: 60,
    heap: { live: 20, limit: 256 },
    pressure: 1,
    shortages: 2,
    tables: {
      limit: 64,
      largest: [{ name: 'processes', kind: 'detail', bytes: 3, limit: 16, shed: 4 }],
    },
  }),
  collected(emit) {
    emit('traces', 'http', 10)
    emit('metrics', 'http', 4)
  },
  exported: emit => emit('traces', 'h:4317', 7),
  dropped: emit => emit('traces', 'queue_full', 1),
  queued: emit => emit('traces', 2),
  processed: emit => emit('redact', 'logs', 'email', 'redacted', 12),
  recovered: emit => emit('logs', 13),
  queuedBytes: emit => emit('traces', 14),
  disk: () => ({ bytes: 15, maxBytes: 16, degraded: true }),
  degraded: emit => emit('ebpf', 2),
  programs: emit => emit('tracing', 5),
  mapEntries: emit => emit('exchanges', 3),
  ringbuf: () => ({ received: 20, lost: 1, heldBytes: 21, peakBytes: 22, absorbedBytes: 23 }),
  perf: emit => emit(0, 9, 2),
  capture: emit => emit('desync', 3),
  profiling: () => ({
    counters: { samples_cpu: 7, samples_ns: 2_000_000_000, idle_ns: 500_000_000 },
    mapBytes: 21,
    tableBytes: 22,
    symbolBytes: 23,
    frames: 24,
    framesNamed: 20,
  }),
  scraping: () => ({
    targets: { up: 3, down: 1, unknown: 0, dropped: 2 },
    scrapes: 40,
    failures: 4,
    missed: 1,
    samples: 5000,
    wholeReads: 6,
    contradictions: 0,
    sources: [
      ['shop', 'file', true],
      ['shop', 'file', false],
    ],
  }),
  surroundings: () => ({
    containers: 31,
    pods: 32,
    lostAttributes: { not_allowed: 3, memory: 0 },
    unreadProcesses: { strings: { late: 2 } },
    gpus: 33,
    sources: [
      ['docker', true],
      ['cloud', false],
    ],
    records: new Map([['cri', 34]]),
    logFiles: 35,
    logBehindBytes: 36,
    logReadBytes: 37,
    logTruncations: 38,
    logLostRotations: 39,
    logLeftOut: 40,
    logCutTexts: 41,
    logPaused: true,
  }),
  requestMetrics: () => ({ overflowed: 5 }),
  joins: () => ({ joined: 8, expired: 1 }),
  telemetry: () => 4,
  selfSpansLost: () => 11,
  reloads: () => ({ lastSuccessful: true, lastSuccessMs: 1_500, reloads: 7, failures: 2, hash: 'abc' }),
  exposed: () => true,
  api: () => ({
    requests: new Map([[200, 30]]),
    refused: { unauthorized: 1, forbidden: 2, rate_limited: 3, pipelined: 0 },
    connections: 4,
    dropped_connections: 5,
    failed_handshakes: 6,
  }),
}

test('every metric of the specification is declared with its type', () => {
  const types = new Map<string, string>()
  const page = selfMetrics('svc', source).registry.write()
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
  const metrics = selfMetrics('agent', source)
  const request = { endpoint: 'h:4317', signal: 'traces', latencySeconds: 0.02, items: 7 } as const
  metrics.exportRequest({ ...request, errorType: '' })
  metrics.exportRequest({ ...request, errorType: 'unavailable' })
  const lines = metrics.registry.write().split('\n')
  for (const want of [
    'agent_processor_outcomes_total{processor="redact",signal_type="logs",rule="email",outcome="redacted"} 12',
    'agent_export_queue_recovered_total{signal_type="logs"} 13',
    'agent_export_queue_bytes{signal_type="traces"} 14',
    'agent_disk_queue_bytes 15',
    'agent_disk_queue_max_bytes 16',
    'agent_disk_queue_degraded 1',
    'agent_spans_collected_total{signal_type="http"} 10',
    'agent_metrics_collected_total{signal_type="http"} 4',
    'agent_spans_exported_total{endpoint="h:4317"} 7',
    'agent_spans_dropped_total{reason="queue_full"} 1',
    'agent_export_queue_size{signal_type="traces"} 2',
    'agent_ebpf_programs_loaded{program_type="tracing"} 5',
    'agent_ebpf_map_entries{map_name="exchanges"} 3',
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
  const page = selfMetrics('svc', source).registry.write()
  const value = (name: string) => Number(new RegExp(`^svc_${name} (\\S+)$`, 'm').exec(page)?.[1])
  assert.ok(value('process_cpu_seconds_total') > 0)
  assert.ok(value('process_resident_memory_bytes') > 1e7)
  assert.ok(value('process_open_fds') > 3)
  assert.ok(value('go_goroutines') >= 0)
})
