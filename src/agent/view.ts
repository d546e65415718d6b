// What the management API shows, read from the running parts.

import { arch, hostname, platform, release } from 'node:os'
import { uptimeText } from '../api/documents.ts'
import type { SelfMetricsSource } from '../api/self-metrics.ts'
import type {
  AgentView,
  Degradation,
  EbpfDocument,
  ExportDocument,
  QueueDocument,
  ReadinessChecks,
  StatusDocument,
} from '../api/types.ts'
import { type LoadedConfig, redacted } from '../config/index.ts'
import { build } from '../lib/build.ts'
import { parseEndpoint } from '../lib/endpoint.ts'
import type { Registry } from '../lib/registry.ts'
import { type Signal, signals } from '../model/signal.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { judgeStages } from './health.ts'
import type { OutletFault } from './outlets.ts'
import { Tracing, type TracingFault } from './tracing.ts'

export interface Parts {
  readonly loaded: LoadedConfig
  readonly pipeline: Pipeline
  readonly outletFaults: readonly OutletFault[]
  /** Undefined: switched off. */
  readonly tracing: Tracing | TracingFault | undefined
  /** Of `performance.now()`. */
  readonly startedMs: number
}

/** Values of the agent's own metrics. */
export function metricsSource({ pipeline, tracing }: Parts): SelfMetricsSource {
  const running = tracing instanceof Tracing ? tracing : undefined
  let synced = false
  return {
    collected: emit => {
      // A page is written in one go: once in the books, all of its numbers are of one moment.
      if (!synced) running?.sync()
      synced = true
      queueMicrotask(() => {
        synced = false
      })
      for (const [type, items] of running?.collected ?? []) emit('traces', type, items)
      for (const signal of signals)
        if (signal !== 'traces' && pipeline.state(signal).collected > 0)
          emit(signal, signal === 'metrics' ? 'http' : signal, pipeline.state(signal).collected)
    },
    exported: emit => {
      for (const signal of signals) {
        const { destination, exported } = pipeline.state(signal)
        if (destination !== undefined) emit(signal, destination.endpoint, exported)
      }
    },
    dropped: emit => {
      for (const signal of signals) {
        const { dropped, rejected } = pipeline.state(signal)
        for (const [reason, items] of dropped) emit(signal, reason, items)
        if (rejected > 0) emit(signal, 'rejected', rejected)
      }
    },
    queued: emit => {
      for (const signal of signals)
        emit(
          signal,
          pipeline.state(signal).queued + (signal === 'traces' ? (running?.tracer.joins.waitingNow ?? 0) : 0),
        )
    },
    programs: emit => {
      const byType = new Map<string, number>()
      for (const { type, id } of running?.capture.programs() ?? [])
        if (id !== 0) byType.set(type, (byType.get(type) ?? 0) + 1)
      for (const [type, count] of byType) emit(type, count)
    },
    mapEntries: emit => {
      for (const { name, entries } of running?.capture.maps() ?? []) emit(name, entries)
    },
    ringbuf: () => ({
      received: running?.capture.received ?? 0,
      lost: running?.capture.counters().ring_full ?? 0,
    }),
    perf: () => {},
    capture: emit => {
      for (const [event, total] of Object.entries(running?.capture.counters() ?? {})) emit(event, total)
    },
    requestMetrics: () => running?.red ?? { overflowed: 0, lost: 0 },
    joins: () => running?.tracer.joins ?? { joined: 0, expired: 0 },
    telemetry: () => running?.tracer.telemetry ?? 0,
    workers: () => 0,
  }
}

export function agentView(parts: Parts, registry: Registry): AgentView {
  const { loaded, pipeline, tracing } = parts
  const { config } = loaded
  const running = tracing instanceof Tracing ? tracing : undefined
  return {
    registry,
    health: () =>
      judgeStages({
        sinceDrainMs: running?.capture.sinceDrainMs ?? 0,
        batchingMs: {
          traces: pipeline.state('traces').batchingMs,
          metrics: pipeline.state('metrics').batchingMs,
          logs: pipeline.state('logs').batchingMs,
          profiles: pipeline.state('profiles').batchingMs,
        },
        batchTimeoutMs: config.pipeline.export.batch.timeout,
      }),
    readiness: () => readiness(parts),
    status: () => status(parts),
    ebpf: (): EbpfDocument => ({
      enabled: running !== undefined,
      programs: (running?.capture.programs() ?? []).map(
        ({ name, type, attached, id, runTimeNs, runCount }) => ({
          name,
          type,
          attached,
          id,
          ...(config.agent.ebpf.debug ? { run_time_ns: runTimeNs, run_count: runCount } : {}),
        }),
      ),
      maps: (running?.capture.maps() ?? []).map(({ name, type, entries, maxEntries }) => ({
        name,
        type,
        entries,
        max_entries: maxEntries,
      })),
      ringbuf: {
        size: running?.capture.ringSize ?? 0,
        events_received: running?.capture.received ?? 0,
        events_lost: running?.capture.counters().ring_full ?? 0,
      },
      backend: running?.capture.backend.name ?? '',
      counters: running?.capture.counters() ?? {},
    }),
    exporting: (): ExportDocument => {
      const destinations = signals.map(signal => pipeline.state(signal).destination)
      const last = Math.max(0, ...destinations.map(destination => destination?.lastExportMs ?? 0))
      const sent = signals.find(signal => pipeline.state(signal).destination !== undefined)
      const { protocol, compression, endpoint, insecure } = config.otlp[sent ?? 'traces']
      return {
        endpoint: endpointOf(parts),
        protocol,
        tls: sent !== undefined && parseEndpoint(endpoint || config.otlp.endpoint, insecure).secure,
        compression,
        connected: destinations.some(destination => destination?.connected),
        last_export: last === 0 ? null : new Date(last).toISOString(),
        last_error:
          parts.outletFaults[0]?.reason ??
          destinations.find(destination => destination?.lastError != null)?.lastError ??
          null,
        queues: {
          traces: queue(pipeline, 'traces'),
          metrics: queue(pipeline, 'metrics'),
          logs: queue(pipeline, 'logs'),
          profiles: queue(pipeline, 'profiles'),
        },
      }
    },
    config: () => redacted(loaded.config, loaded.origins),
  }
}

/** What does not work, or less than asked, and the mend. */
export function degradations({ tracing, outletFaults, pipeline }: Parts): Degradation[] {
  const found: Degradation[] = []
  if (tracing !== undefined && !(tracing instanceof Tracing))
    found.push({ subsystem: 'ebpf', reason: tracing.reason, mend: tracing.mend })
  if (tracing instanceof Tracing)
    for (const { reason, mend } of tracing.limits) found.push({ subsystem: 'processes', reason, mend })
  for (const { signal, reason, mend } of outletFaults)
    found.push({ subsystem: `export of ${signal}`, reason, mend })
  for (const signal of signals) {
    const lastError = pipeline.state(signal).destination?.lastError
    if (lastError)
      found.push({
        subsystem: `export of ${signal}`,
        reason: lastError,
        mend: 'svc doctor tries the endpoint; what is queued is sent when it answers',
      })
  }
  return found
}

function readiness(parts: Parts): ReadinessChecks {
  const of = (subsystem: string): string => {
    const fault = degradations(parts).find(found => found.subsystem.startsWith(subsystem))
    return fault === undefined ? 'ok' : `failed: ${fault.reason}`
  }
  return { ebpf: of('ebpf'), otlp: of('export'), discovery: 'ok' }
}

function status(parts: Parts): StatusDocument {
  const { loaded, pipeline, tracing, startedMs } = parts
  const { config } = loaded
  const running = tracing instanceof Tracing ? tracing : undefined
  const { version, commit, built } = build()
  const destinations = signals.map(signal => pipeline.state(signal).destination)
  const last = Math.max(0, ...destinations.map(destination => destination?.lastExportMs ?? 0))
  return {
    version,
    commit,
    built,
    uptime: uptimeText(performance.now() - startedMs),
    mode: config.mode,
    host: { name: hostname(), os: platform(), arch: architecture(), kernel: release() },
    ebpf: {
      enabled: running !== undefined,
      programs_loaded: running?.capture.programs().filter(({ id }) => id !== 0).length ?? 0,
      maps_created: running?.capture.maps().length ?? 0,
      ringbuf_size: running?.capture.ringSize ?? 0,
    },
    // Profiles and discovery are not built in this version: off, whatever the configuration says.
    profiling: { enabled: false, sample_rate: config.agent.profiling.sample_rate, profiles_collected: 0 },
    export: {
      endpoint: endpointOf(parts),
      connected: destinations.some(destination => destination?.connected),
      last_export: last === 0 ? null : new Date(last).toISOString(),
      spans_exported: pipeline.state('traces').exported,
      metrics_exported: pipeline.state('metrics').exported,
    },
    discovery: { kubernetes: false, docker: false, pods_discovered: 0, containers_discovered: 0 },
    degraded: degradations(parts),
  }
}

function queue(pipeline: Pipeline, signal: Signal): QueueDocument {
  const { queued, capacity, exported, rejected, droppedTotal, queuedBytes, capacityBytes } =
    pipeline.state(signal)
  return {
    size: queued,
    capacity,
    exported,
    dropped: droppedTotal + rejected,
    bytes: queuedBytes,
    capacity_bytes: capacityBytes,
  }
}

/** `host:port` of the first signal that is sent, '' for none. */
export function endpointOf({ pipeline }: Parts): string {
  for (const signal of signals) {
    const { destination } = pipeline.state(signal)
    if (destination !== undefined) return destination.endpoint
  }
  return ''
}

/** As the conventions name it (`host.arch`). */
function architecture(): string {
  return arch() === 'x64' ? 'amd64' : arch()
}
