// The agent's metrics about itself: one table of names, types, labels and where their values come from.

import { readdirSync } from 'node:fs'
import type { ShareLosses } from '../lib/fair-share.ts'
import { Registry } from '../lib/registry.ts'
import { securityMetrics } from '../model/security.ts'
import type { Signal } from '../model/signal.ts'
import type { ExportRequest } from '../pipeline/send-loop.ts'
import { type CpuStats, cpuMetrics } from './cpu-metrics.ts'
import { type EventLoopStats, eventLoopMetrics } from './event-loop-metrics.ts'
import { type MemoryStats, memoryMetrics } from './memory-metrics.ts'
import { type ScrapingStats, scrapingMetrics } from './scraping-metrics.ts'
import type { ApiStats } from './server.ts'
import { type SurroundingsStats, surroundingsMetrics } from './surroundings-metrics.ts'

/** One number for a signal and one more label (a kind of item, an endpoint, a reason). */
export type EmitItems = (signal: Signal, label: string, items: number) => void

/** Where the values come from. Called when the page is written; totals since the start of the process. */
export interface SelfMetricsSource {
  /** Items by kind: `http`, `grpc` … for spans; any short, bounded set of names for the others. */
  collected(emit: EmitItems): void
  /** Items acknowledged, by endpoint (`host:port`). */
  exported(emit: EmitItems): void
  /** Items lost, by reason. */
  dropped(emit: EmitItems): void
  /** Items waiting now. */
  queued(emit: (signal: Signal, items: number) => void): void
  /** What processors did, by rule and outcome. */
  processed(
    emit: (processor: string, signal: Signal, rule: string, outcome: string, total: number) => void,
  ): void
  /** Items found at the start in the queue on disk. */
  recovered(emit: (signal: Signal, items: number) => void): void
  /** Bytes that wait for export. */
  queuedBytes(emit: (signal: Signal, bytes: number) => void): void
  /** Undefined where batches wait in memory. */
  disk(): { readonly bytes: number; readonly maxBytes: number; readonly degraded: boolean } | undefined
  /** What does not work, or less than asked: how many reasons there are, by subsystem. */
  degraded(emit: (subsystem: string, reasons: number) => void): void
  /** Loaded programs by kernel type. */
  programs(emit: (type: string, loaded: number) => void): void
  mapEntries(emit: (map: string, entries: number) => void): void
  ringbuf(): {
    readonly received: number
    readonly lost: number
    /** Of what waits beside the ring: memory now, the most that it was, and all that it ever took in. */
    readonly heldBytes: number
    readonly peakBytes: number
    readonly absorbedBytes: number
  }
  /** Perf buffer events by CPU; emits nothing where no perf buffer is used. */
  perf(emit: (cpu: number, received: number, lost: number) => void): void
  /** What the kernel side counted, by name. */
  capture(emit: (event: string, total: number) => void): void
  /** Undefined while profiles are off. */
  profiling(): ProfilingStats | undefined
  /** What was found around it. */
  surroundings(): SurroundingsStats
  /** What is scraped. */
  scraping(): ScrapingStats
  /** Calls that the request metrics took without their dimensions. */
  requestMetrics(): { readonly overflowed: number }
  /** Servers' spans that were joined with a client of this host, and that waited for one in vain. */
  joins(): { readonly joined: number; readonly expired: number }
  /** Exports of telemetry that were seen and left alone. */
  telemetry(): number
  /** Internal operations of the agent that were not traced for want of room. */
  selfSpansLost(): number
  /** How reloading goes. */
  reloads(): ReloadState
  /** The management API listens beyond this host without a token or client certificates. */
  exposed(): boolean
  /** Undefined while the management API is off. */
  api(): ApiStats | undefined
  /** Who holds how much memory. */
  memory(): MemoryStats
  /** Runs before this one, by what ended them. */
  previousRuns(emit: (cause: string, runs: number) => void): void
  /** What it takes, and what does less. */
  cpu(): CpuStats
  /** What owners did not get of the tables that they share, or gave up for others. */
  shares(emit: (table: string, losses: ShareLosses) => void): void
  /** Undefined where the addon is missing, which measures it. */
  eventLoop(): EventLoopStats | undefined
}

export interface ProfilingStats {
  /** Samples, how their stacks ended, what was lost and names that were not written (`names_…`), by name; those whose name ends in `_ns` are nanoseconds. */
  readonly counters: Readonly<Record<string, number>>
  /** Bytes. */
  readonly mapBytes: number
  readonly tableBytes: number
  readonly symbolBytes: number
  /** Distinct frames of user space that were met, and of them those that have a name. */
  readonly frames: number
  readonly framesNamed: number
}

export interface ReloadState {
  readonly lastSuccessful: boolean
  /** Milliseconds since the Unix epoch; of the start where nothing was reloaded. */
  readonly lastSuccessMs: number
  readonly reloads: number
  /** Of them. */
  readonly failures: number
  /** Of the configuration that runs. */
  readonly hash: string
}

export interface SelfMetrics {
  readonly registry: Registry
  /** Counts an export request that ended. */
  exportRequest(request: Omit<ExportRequest, 'call' | 'httpStatus'>): void
}

const latencyBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const batchBounds = [1, 10, 100, 500, 1000, 2000, 4000, 8192, 16384, 32768]

/** Name in the metrics, and word for people, of each signal's items. */
const itemNames = [
  ['traces', 'spans', 'Spans'],
  ['metrics', 'metrics', 'Metric points'],
  ['logs', 'logs', 'Log records'],
  ['profiles', 'profiles', 'Profiles'],
] as const satisfies readonly (readonly [Signal, string, string])[]

/** Declares every metric under a name prefix (without the underscore). */
export function selfMetrics(namespace: string, source: SelfMetricsSource): SelfMetrics {
  const registry = new Registry()
  const named = (name: string) => `${namespace}_${name}`

  for (const [signal, name, words] of itemNames) {
    const counter = (what: string, help: string, label: string, values: (emit: EmitItems) => void) =>
      registry.collector(named(`${name}_${what}_total`), `${words} ${help}.`, 'counter', [label], emit =>
        values((of, value, items) => {
          if (of === signal) emit(items, value)
        }),
      )
    counter('collected', 'collected, by type', 'signal_type', emit => source.collected(emit))
    counter('exported', 'acknowledged by the endpoint', 'endpoint', emit => source.exported(emit))
    counter('dropped', 'lost, by reason', 'reason', emit => source.dropped(emit))
  }

  registry.collector(
    named('degraded'),
    'Number of reasons why a subsystem is degraded; svc status lists them.',
    'gauge',
    ['subsystem'],
    emit => source.degraded((subsystem, reasons) => emit(reasons, subsystem)),
  )
  registry.collector(
    named('ebpf_programs_loaded'),
    'eBPF programs loaded.',
    'gauge',
    ['program_type'],
    emit => source.programs((type, loaded) => emit(loaded, type)),
  )
  registry.collector(named('ebpf_map_entries'), 'Entries in eBPF maps.', 'gauge', ['map_name'], emit =>
    source.mapEntries((map, entries) => emit(entries, map)),
  )
  registry.collector(
    named('ebpf_ringbuf_events_total'),
    'Events read from the ring buffer.',
    'counter',
    [],
    emit => emit(source.ringbuf().received),
  )
  registry.collector(
    named('ebpf_ringbuf_lost_total'),
    'Events lost because the ring buffer was full.',
    'counter',
    [],
    emit => emit(source.ringbuf().lost),
  )
  registry.collector(
    named('ebpf_ringbuf_absorbed_bytes_total'),
    'Bytes of events moved from the ring buffer to memory because they were not read in time.',
    'counter',
    [],
    emit => emit(source.ringbuf().absorbedBytes),
  )
  registry.collector(
    named('ebpf_ringbuf_backlog_bytes'),
    'Current memory of events moved out of the ring buffer.',
    'gauge',
    [],
    emit => emit(source.ringbuf().heldBytes),
  )
  registry.collector(
    named('ebpf_ringbuf_backlog_peak_bytes'),
    'Largest memory of events moved out of the ring buffer, since the start.',
    'gauge',
    [],
    emit => emit(source.ringbuf().peakBytes),
  )
  registry.collector(
    named('ebpf_perf_events_total'),
    'Events read from perf buffers, which replace the ring buffer before Linux 5.8.',
    'counter',
    ['cpu'],
    emit => source.perf((cpu, received) => emit(received, String(cpu))),
  )
  registry.collector(
    named('ebpf_perf_lost_total'),
    'Events lost because a perf buffer was full.',
    'counter',
    ['cpu'],
    emit => source.perf((cpu, _received, lost) => emit(lost, String(cpu))),
  )

  registry.collector(
    named('ebpf_capture_total'),
    'Counters of the kernel side of the capture, by event.',
    'counter',
    ['event'],
    emit => source.capture((event, total) => emit(total, event)),
  )
  const profiling = (
    name: string,
    help: string,
    kind: 'counter' | 'gauge',
    value: (stats: ProfilingStats) => number,
  ) =>
    registry.collector(named(`profiling_${name}`), help, kind, [], emit => {
      const stats = source.profiling()
      if (stats !== undefined) emit(value(stats))
    })
  registry.collector(
    named('profiling_events_total'),
    'Counters of the sampler: samples by kind, outcomes of stacks, and losses.',
    'counter',
    ['event'],
    emit => {
      for (const [event, total] of Object.entries(source.profiling()?.counters ?? {}))
        if (!event.endsWith('_ns')) emit(total, event)
    },
  )
  registry.collector(
    named('profiling_cpu_seconds_total'),
    'CPU time represented by samples, all CPUs together.',
    'counter',
    ['state'],
    emit => {
      const stats = source.profiling()
      if (stats === undefined) return
      emit((stats.counters.samples_ns ?? 0) / 1e9, 'busy')
      emit((stats.counters.idle_ns ?? 0) / 1e9, 'idle')
    },
  )
  profiling('map_bytes', 'Memory of the sampler’s BPF maps.', 'gauge', of => of.mapBytes)
  profiling('table_bytes', 'Part of the maps’ memory for unwind tables in use.', 'gauge', of => of.tableBytes)
  profiling('symbol_bytes', 'Memory of symbol tables.', 'gauge', of => of.symbolBytes)
  profiling('frames', 'Distinct user-space frames seen.', 'gauge', of => of.frames)
  profiling('frames_named', 'Distinct user-space frames with a name.', 'gauge', of => of.framesNamed)

  surroundingsMetrics(registry, named, () => source.surroundings())
  scrapingMetrics(registry, named, () => source.scraping())

  registry.collector(
    named('request_metrics_overflowed_total'),
    'Calls counted in an overflow series, because there was no memory for their own.',
    'counter',
    [],
    emit => emit(source.requestMetrics().overflowed),
  )
  registry.collector(
    named('spans_joined_total'),
    'Server spans joined to their client span on this host.',
    'counter',
    [],
    emit => emit(source.joins().joined),
  )
  registry.collector(
    named('spans_unjoined_total'),
    'Server spans that waited for a client span on this host and did not get one.',
    'counter',
    [],
    emit => emit(source.joins().expired),
  )
  registry.collector(
    named('telemetry_exchanges_total'),
    'Telemetry exports of other programs, which get no spans.',
    'counter',
    [],
    emit => emit(source.telemetry()),
  )

  const requests = registry.counter(named('export_requests_total'), 'Completed export requests.', [
    'endpoint',
    'signal_type',
    'status',
  ])
  const errors = registry.counter(named('export_errors_total'), 'Failed export requests.', [
    'endpoint',
    'signal_type',
    'error_type',
  ])
  const latency = registry.histogram(
    named('export_latency_seconds'),
    'Time from sending an export request to its end.',
    latencyBounds,
    ['endpoint', 'signal_type'],
  )
  const batch = registry.histogram(named('export_batch_size'), 'Items in an export request.', batchBounds, [
    'signal_type',
  ])
  registry.collector(
    named('export_queue_size'),
    'Items waiting for export.',
    'gauge',
    ['signal_type'],
    emit => source.queued((signal, items) => emit(items, signal)),
  )
  registry.collector(
    named('export_queue_bytes'),
    'Bytes waiting for export, in memory or on disk.',
    'gauge',
    ['signal_type'],
    emit => source.queuedBytes((signal, bytes) => emit(bytes, signal)),
  )
  registry.collector(
    named('export_queue_recovered_total'),
    'Items in the disk queue at the start, left by a previous process.',
    'counter',
    ['signal_type'],
    emit => source.recovered((signal, items) => emit(items, signal)),
  )
  const ofDisk = (
    name: string,
    help: string,
    value: (disk: NonNullable<ReturnType<typeof source.disk>>) => number,
  ) =>
    registry.collector(named(name), help, 'gauge', [], emit => {
      const disk = source.disk()
      if (disk !== undefined) emit(value(disk))
    })
  ofDisk('disk_queue_bytes', 'Size of all files of the disk queue.', ({ bytes }) => bytes)
  ofDisk('disk_queue_max_bytes', 'Size limit of the disk queue.', ({ maxBytes }) => maxBytes)
  ofDisk(
    'disk_queue_degraded',
    'Whether batches stay in memory because the disk does not work: 1 if they do.',
    ({ degraded }) => (degraded ? 1 : 0),
  )
  registry.collector(
    named('processor_outcomes_total'),
    'Outcomes of processors, by rule and outcome.',
    'counter',
    ['processor', 'signal_type', 'rule', 'outcome'],
    emit =>
      source.processed((processor, signal, rule, outcome, total) =>
        emit(total, processor, signal, rule, outcome),
      ),
  )

  memoryMetrics(registry, named, () => source.memory())
  cpuMetrics(registry, named, () => source.cpu())
  registry.collector(
    named('previous_runs_total'),
    'Previous runs by the cause of their end, as recorded in the state directory.',
    'counter',
    ['cause'],
    emit => source.previousRuns((cause, runs) => emit(runs, cause)),
  )
  registry.collector(
    named('share_losses_total'),
    'Times that a user or container at its share of a table was refused more (refused), or lost some to another one (taken).',
    'counter',
    ['table', 'reason'],
    emit =>
      source.shares((table, { refused, taken }) => {
        emit(refused, table, 'refused')
        emit(taken, table, 'taken')
      }),
  )
  eventLoopMetrics(registry, named, () => source.eventLoop())
  registry.collector(named('process_resident_memory_bytes'), 'Resident memory.', 'gauge', [], emit =>
    emit(process.memoryUsage.rss()),
  )
  registry.collector(named('process_open_fds'), 'Open file descriptors.', 'gauge', [], emit =>
    emit(openDescriptors()),
  )
  registry.collector(
    named('go_goroutines'),
    'Active asynchronous resources of the runtime.',
    'gauge',
    [],
    emit => emit(process.getActiveResourcesInfo().length),
  )

  registry.collector(
    named('self_spans_lost_total'),
    'Operations of the agent that were not traced for lack of memory.',
    'counter',
    [],
    emit => emit(source.selfSpansLost()),
  )
  registry.collector(
    named('config_last_reload_successful'),
    'Whether the last reload of the configuration, or the start, succeeded: 1 if it did.',
    'gauge',
    [],
    emit => emit(Number(source.reloads().lastSuccessful)),
  )
  registry.collector(
    named('config_last_reload_success_timestamp_seconds'),
    'Time when a configuration was last applied.',
    'gauge',
    [],
    emit => emit(source.reloads().lastSuccessMs / 1000),
  )
  registry.collector(
    named('config_reloads_total'),
    'Reloads of the configuration.',
    'counter',
    ['result'],
    emit => {
      const { reloads, failures } = source.reloads()
      emit(reloads - failures, 'success')
      emit(failures, 'failure')
    },
  )
  registry.collector(
    named('config_info'),
    'Hash of the active configuration; the value is always 1.',
    'gauge',
    ['hash'],
    emit => emit(1, source.reloads().hash),
  )
  registry.collector(
    named('insecure_listen'),
    'Whether the management API is reachable from other hosts without a token or client certificates: 1 if it is.',
    'gauge',
    [],
    emit => emit(Number(source.exposed())),
  )
  registry.collector(
    named('api_responses_total'),
    'Responses of the management API, including those to unreadable requests.',
    'counter',
    ['code'],
    emit => {
      for (const [code, answers] of source.api()?.requests ?? []) emit(answers, String(code))
    },
  )
  registry.collector(
    named('api_refused_total'),
    'Requests rejected by the management API, by reason.',
    'counter',
    ['reason'],
    emit => {
      for (const [reason, requests] of Object.entries(source.api()?.refused ?? {})) emit(requests, reason)
    },
  )
  registry.collector(named('api_connections'), 'Open connections to the management API.', 'gauge', [], emit =>
    emit(source.api()?.connections ?? 0),
  )
  registry.collector(
    named('api_connections_dropped_total'),
    'Connections to the management API closed because too many were open.',
    'counter',
    [],
    emit => emit(source.api()?.dropped_connections ?? 0),
  )
  registry.collector(
    named('api_tls_handshakes_failed_total'),
    'Failed TLS handshakes with the management API.',
    'counter',
    [],
    emit => emit(source.api()?.failed_handshakes ?? 0),
  )

  for (const { name, help, labels } of securityMetrics) registry.counter(named(name), help, [...labels])

  return {
    registry,
    exportRequest({ endpoint, signal, errorType, latencySeconds, items }) {
      requests.labels(endpoint, signal, errorType === '' ? 'success' : 'error').inc()
      if (errorType !== '') errors.labels(endpoint, signal, errorType).inc()
      latency.labels(endpoint, signal).observe(latencySeconds)
      batch.labels(signal).observe(items)
    },
  }
}

/** The directory that is read counts itself; that one is taken off. */
function openDescriptors(): number {
  try {
    return readdirSync('/proc/self/fd').length - 1
  } catch {
    return Number.NaN // /proc is not mounted
  }
}
