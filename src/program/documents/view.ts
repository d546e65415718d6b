// The documents of the management API, read from the running subsystems.

import { arch, hostname, platform, release } from 'node:os'
import { type Config, redacted } from '../../config/index.ts'
import { build } from '../../foundation/lib/build.ts'
import { parseEndpoint } from '../../foundation/lib/endpoint.ts'
import { bySignal, type Signal, signals } from '../../foundation/model/signal.ts'
import { ProfilerBusy, profileKinds } from '../../foundation/runtime/runtime-profiler.ts'
import { findAsset } from '../../kernel/assets.ts'
import { countedMaps, loadedMaps, loadedPrograms } from '../../kernel/loaded.ts'
import { DiskStore } from '../../pipeline/disk/disk-store.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import { ringEvents } from '../../signals/capture/capture.ts'
import { profileFile } from '../../signals/profiles/profile-file.ts'
import { uptimeText } from '../../view/api/documents.ts'
import type {
  AgentView,
  Degradation,
  EbpfDocument,
  ExportDocument,
  PipelineDocument,
  QueueDocument,
  ReadinessChecks,
  StatusDocument,
} from '../../view/api/types.ts'
import type { ExportPipelines } from '../agent/export-pipelines.ts'
import { judgeStages } from '../agent/health.ts'
import { failureText, kernelState } from '../agent/kernel-state.ts'
import type { Profiling } from '../agent/profiling.ts'
import { reloadDocument, reloadWarnings } from '../agent/reload-view.ts'
import { type Fault, faultsOf } from '../agent/subsystem.ts'
import { Tracing } from '../agent/tracing.ts'
import type { Subsystems } from '../subsystems/by-name.ts'
import { explain } from './process-view.ts'

/** Parts of the view that are not documents across subsystems. */
export type Shown = Pick<AgentView, 'registry' | 'pages' | 'ui' | 'browsers'>

export function agentView(subsystems: Subsystems, shown: Shown): AgentView {
  return {
    ...shown,
    pageDirectory: findAsset('ui') ?? '',
    ...documentsOf(subsystems),
    ...actionsOf(subsystems),
  }
}

type Actions = 'reload' | 'flush' | 'profile' | 'takeProfile' | 'profileFile'

function documentsOf(parts: Subsystems): Omit<AgentView, keyof Shown | Actions | 'pageDirectory'> {
  const { profiler, tracing, pipelines } = parts
  const { pipeline } = pipelines
  const config = () => parts.loaded().config
  const running = tracing instanceof Tracing ? tracing : undefined
  return {
    profiles: profileKinds,
    health: () => {
      const reason = parts.stuck()
      if (reason !== undefined) return { healthy: false, reason }
      return judgeStages({
        sinceDrainMs: running?.capture.sinceDrainMs ?? 0,
        batchingMs: bySignal(signal => pipeline.state(signal).batchingMs),
        batchTimeoutMs: config().pipeline.export.batch.timeout,
      })
    },
    readiness: () => readiness(parts),
    warnings: () => reloadWarnings(parts.reloads()),
    status: () => status(parts),
    ebpf: () => ebpf(parts, parts.ebpfDebug.measures),
    exporting: () => exporting(parts),
    recentLogs: query => parts.logs.recent.find(query),
    processes: (pid, port) => explain(parts, pid, port),
    pipeline: (): PipelineDocument => {
      running?.sync()
      return {
        signals: bySignal(signal => signalBalance(pipelines, signal)),
        processors: processorsOf(pipelines),
      }
    },
    config: () => {
      const { config: all, origins } = parts.loaded()
      return redacted(all, origins)
    },
    vars: () => profiler.vars(),
    logs: () => parts.logRing.text(),
  }
}

function actionsOf(parts: Subsystems): Pick<AgentView, Actions> {
  const { profiler, tracing, pipelines, self } = parts
  const running = tracing instanceof Tracing ? tracing : undefined
  return {
    reload: parts.reload,
    flush: async () => {
      const operation = self.begin('flush')
      // Once stopping, the intake is closed, and all counts have been emitted.
      await running?.capture.settled(settleMs)
      if (!parts.stopping()) running?.exportMetrics()
      const bound = drainMs(parts.loaded().config)
      const { acknowledged: flushed, left: remaining } = await pipelines.pipeline.flush(bound)
      operation.end()
      return { flushed, remaining }
    },
    profile: async (kind, seconds, debug, signal) => {
      try {
        return await profiler.take(kind, { seconds, debug: debug as 0 | 1 | 2, signal })
      } catch (error) {
        if (error instanceof ProfilerBusy) return error.message
        throw error
      }
    },
    takeProfile: request => parts.profiling.take(request),
    profileFile: (taken, request, format) => profileFile(taken, request, format),
  }
}

function ebpf({ tracing, profiling }: Subsystems, measured: boolean): EbpfDocument {
  const running = tracing instanceof Tracing ? tracing : undefined
  const programs = loadedPrograms()
  const { size, received, lost } = ringEvents(running?.capture)
  return {
    enabled: programs.length > 0,
    programs: programs.map(({ name, object, type, attached, links, id, runTimeNs, runCount }) => ({
      ...{ name, object, type, attached, links, id },
      ...(measured ? { run_time_ns: runTimeNs, run_count: runCount } : {}),
    })),
    maps: countedMaps().map(({ maxEntries, ...map }) => ({ ...map, max_entries: maxEntries })),
    ringbuf: { size, events_received: received, events_lost: lost },
    tls: (running?.tls?.attachments() ?? []).map(({ buildId, symbols, ...rest }) => ({
      ...rest,
      symbols: [...symbols],
      build_id: buildId,
    })),
    profiling: profilingView(profiling),
    backend: running?.capture.backend.name ?? '',
    counters: running?.capture.counters() ?? {},
  }
}

function profilingView({ sampler, profiler, counters }: Profiling): EbpfDocument['profiling'] {
  const state = profiler?.state
  return {
    sample_rate: profiler?.rate ?? 0,
    map_bytes: sampler?.mapBytes ?? 0,
    table_bytes: profiler?.arena.bytes ?? 0,
    files: profiler?.files.size ?? 0,
    files_refused: profiler?.arena.refused ?? 0,
    symbol_bytes: state?.symbolBytes ?? 0,
    stacks: profiler?.stacks ?? 0,
    frames: state?.seen ?? 0,
    frames_named: state?.named ?? 0,
    worker_failures: profiler?.failures ?? 0,
    decoder_fault: state?.decoderFault ?? '',
    counters,
    without_unwind_table: [...(state?.withoutTable ?? [])],
  }
}

function exporting(parts: Subsystems): ExportDocument {
  const { pipeline, faults } = parts.pipelines
  const { config } = parts.loaded()
  const destinations = signals.map(signal => pipeline.state(signal).destination)
  const sent = signals.find(signal => pipeline.state(signal).destination !== undefined)
  const { protocol, compression, endpoint, insecure } = config.otlp[sent ?? 'traces']
  return {
    endpoint: parts.pipelines.endpoint,
    protocol,
    tls: sent !== undefined && parseEndpoint(endpoint || config.otlp.endpoint, insecure).secure,
    compression,
    connected: destinations.some(destination => destination?.connected),
    last_export: lastExport(parts),
    last_error:
      faults[0]?.reason ??
      destinations.find(destination => destination?.lastError != null)?.lastError ??
      null,
    queues: bySignal(signal => queue(pipeline, signal)),
    destinations: signals.flatMap(signal => {
      const { destination } = pipeline.state(signal)
      if (destination === undefined) return []
      const { connected, parked, lastError, lastWarning, nextAttemptMs } = destination
      return {
        signal,
        endpoint: destination.endpoint,
        connected,
        credentials_rejected: parked,
        last_error: lastError,
        last_warning: lastWarning,
        next_attempt: nextAttemptMs === null ? null : new Date(nextAttemptMs).toISOString(),
      }
    }),
    disk_queue: diskQueue(parts.pipelines),
  }
}

function diskQueue({ store }: ExportPipelines): ExportDocument['disk_queue'] {
  if (!(store instanceof DiskStore)) return null
  const { state, reason, bytes, maxBytes } = store.state
  return { state, reason, bytes, max_bytes: maxBytes, free_bytes: store.freeBytes }
}

function processorsOf(pipelines: ExportPipelines): PipelineDocument['processors'] {
  return signals.flatMap(signal =>
    pipelines.stages(signal).map(({ name, stage }) => {
      const counters: { rule: string; outcome: string; total: number }[] = []
      stage.counters((rule, outcome, total) => counters.push({ rule, outcome, total }))
      return { name, signal, warning: stage.warning ?? '', counters }
    }),
  )
}

/** All failed or degraded subsystems, with hints. */
export function degradations(faults: readonly Fault[]): Degradation[] {
  return faults.map(({ subsystem, reason, hint }) => ({ subsystem, reason, hint }))
}

function readiness(parts: Subsystems): ReadinessChecks {
  if (parts.stopping()) {
    const ending = 'failed: the agent is shutting down'
    return { ebpf: ending, otlp: ending, discovery: ending }
  }
  const found = parts.faults()
  const failing = (check: keyof ReadinessChecks) => found.filter(({ fails }) => fails === check)
  const first = (check: keyof ReadinessChecks) => {
    const [fault] = failing(check)
    return fault === undefined ? 'ok' : `failed: ${fault.reason}`
  }
  const missing = failing('ebpf')
  return {
    ebpf: missing.length === 0 ? 'ok' : `failed: ${failureText(missing)}`,
    otlp: first('otlp'),
    discovery: first('discovery'),
  }
}

export function status(parts: Subsystems): StatusDocument {
  const { pipelines, tracing, startedMs } = parts
  const { pipeline } = pipelines
  const { config } = parts.loaded()
  const running = tracing instanceof Tracing ? tracing : undefined
  const { version, commit, built } = build()
  const programs = loadedPrograms()
  const states = parts.states()
  return {
    version,
    commit,
    built,
    uptime: uptimeText(performance.now() - startedMs),
    mode: config.mode,
    host: { name: hostname(), os: platform(), arch: architecture(), kernel: release() },
    ebpf: {
      enabled: programs.length > 0,
      programs_loaded: programs.length,
      maps_created: loadedMaps().length,
      ringbuf_size: running?.capture.ringSize ?? 0,
      parts: [...kernelState(states)],
    },
    profiling: {
      enabled: parts.profiling.sampler !== undefined,
      sample_rate: config.agent.profiling.sample_rate,
      profiles_collected: pipeline.state('profiles').collected,
    },
    export: {
      endpoint: parts.pipelines.endpoint,
      connected: signals.some(signal => pipeline.state(signal).destination?.connected),
      last_export: lastExport(parts),
      spans_exported: pipeline.state('traces').exported,
      metrics_exported: pipeline.state('metrics').exported,
    },
    discovery: {
      kubernetes: parts.discovery.kubernetes !== undefined,
      docker: parts.discovery.runtimes !== undefined,
      pods_discovered: parts.discovery.entities.podCount,
      containers_discovered: parts.discovery.entities.containerCount,
    },
    memory: parts.memory.state,
    cpu: parts.cpu.state,
    last_run: lastRun(parts),
    event_loop: parts.eventLoop()?.state ?? null,
    reload: reloadDocument(parts.reloads()),
    degraded: degradations(faultsOf(states)),
  }
}

function lastRun({ lastRun: { last } }: Subsystems): StatusDocument['last_run'] {
  if (last === undefined) return null
  const { ended, cause, reason, hint, version, atMs, uptimeSeconds } = last
  return {
    ended,
    cause,
    reason,
    hint,
    version,
    ended_at: new Date(atMs).toISOString(),
    uptime_seconds: uptimeSeconds,
  }
}

/** ISO 8601; null before the first. */
function lastExport({ pipelines }: Subsystems): string | null {
  const times = signals.map(signal => pipelines.pipeline.state(signal).destination?.lastExportMs ?? 0)
  const last = Math.max(0, ...times)
  return last === 0 ? null : new Date(last).toISOString()
}

function queue(pipeline: Pipeline, signal: Signal): QueueDocument {
  const { queued, capacity, exported, rejected, droppedTotal, queuedBytes, capacityBytes, durable } =
    pipeline.state(signal)
  return {
    size: queued,
    capacity,
    exported,
    dropped: droppedTotal + rejected,
    bytes: queuedBytes,
    capacity_bytes: capacityBytes,
    on_disk: durable,
  }
}

function signalBalance(pipelines: ExportPipelines, signal: Signal): PipelineDocument['signals']['traces'] {
  const state = pipelines.pipeline.state(signal)
  const queued = pipelines.waiting(signal)
  return {
    received: state.collected + queued - state.queued,
    recovered: state.recovered,
    exported: state.exported,
    rejected: state.rejected,
    dropped: Object.fromEntries(state.dropped),
    queued,
    queued_bytes: state.queuedBytes,
    oldest_ms: Math.round(state.oldestMs),
    requests: state.requests,
    failed: state.failedRequests,
    retries: state.retries,
    requests_in_flight: state.requestsInFlight,
  }
}

/** How long a flush waits for the kernel's records. */
const settleMs = 2_000

/** Time limit for stopping, or a flush, to deliver queued data, in milliseconds. */
export function drainMs({ pipeline }: Config): number {
  const { drain_timeout, timeout } = pipeline.operations.shutdown
  return Math.min(drain_timeout, timeout)
}

/** As in the conventions (`host.arch`). */
function architecture(): string {
  return arch() === 'x64' ? 'amd64' : arch()
}
