// Values of the agent's own metrics, read from the running parts.

import type { SelfMetricsSource } from '../api/self-metrics.ts'
import type { SurroundingsStats } from '../api/surroundings-metrics.ts'
import type { ProcessTable } from '../entities/process-table.ts'
import type { ToldLosses } from '../entities/told-attributes.ts'
import { countedMaps, loadedPrograms } from '../kernel/loaded.ts'
import { signals } from '../model/signal.ts'
import { DiskStore } from '../pipeline/disk/disk-store.ts'
import { type Backlog, ringEvents } from '../probes/capture.ts'
import type { Parts } from './parts.ts'
import { scrapingStats } from './scraping-view.ts'
import { Tracing } from './tracing.ts'
import { degradations } from './view.ts'

const noBacklog: Backlog = { heldBytes: 0, peakBytes: 0, absorbedBytes: 0 }

export function metricsSource(parts: Parts): SelfMetricsSource {
  const { outlets, tracing, self, profiling } = parts
  const { pipeline } = outlets
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
      if (self.made > 0) emit('traces', 'internal', self.made)
      for (const signal of signals)
        if (signal !== 'traces') pipeline.ledger[signal].eachType((type, items) => emit(signal, type, items))
    },
    exported: emit => {
      for (const signal of signals)
        for (const [endpoint, items] of pipeline.state(signal).exportedBy) emit(signal, endpoint, items)
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
    queuedBytes: emit => {
      for (const signal of signals) emit(signal, pipeline.state(signal).queuedBytes)
    },
    recovered: emit => {
      for (const signal of signals) emit(signal, pipeline.state(signal).recovered)
    },
    memory: () => parts.memory.state,
    cpu: () => parts.cpu.state,
    previousRuns: emit => {
      for (const [cause, runs] of Object.entries(parts.lastRun.ends)) emit(cause, runs)
    },
    shares: emit => {
      emit('processes', parts.processes.losses)
      if (running !== undefined) emit('request_metrics', running.red.losses)
      if (running?.tls !== undefined) emit('tls_libraries', running.tls.losses)
      const { enabled, losses, forgottenPositions } = parts.logs.status
      if (enabled) {
        emit('logs', losses)
        emit('log_positions', { refused: 0, taken: forgottenPositions })
      }
      if (running !== undefined) emit('routes', running.routes.losses)
      for (const [table, losses] of Object.entries(parts.kernel?.losses ?? {})) emit(table, losses)
      const { profiler } = parts.profiling
      if (profiler === undefined) return
      emit('unwind_tables', profiler.arena.losses)
      if (profiler.state === undefined) return
      for (const [table, losses] of Object.entries(profiler.state.shares)) emit(table, losses)
      emit('names', { refused: profiler.state.namesRefused, taken: 0 })
    },
    eventLoop: parts.eventLoop,
    disk: () => {
      if (!(outlets.store instanceof DiskStore)) return undefined
      const { bytes, maxBytes, state } = outlets.store.state
      return { bytes, maxBytes, degraded: state !== 'ok' }
    },
    processed: emit => {
      for (const signal of signals)
        for (const { name, stage } of outlets.stages(signal))
          stage.counters((rule, outcome, total) => emit(name, signal, rule, outcome, total))
    },
    degraded: emit => {
      const reasons = new Map<string, number>()
      for (const { subsystem } of degradations(parts))
        reasons.set(subsystem, (reasons.get(subsystem) ?? 0) + 1)
      for (const [subsystem, count] of reasons) emit(subsystem, count)
    },
    programs: emit => {
      const byType = new Map<string, number>()
      for (const { type } of loadedPrograms()) byType.set(type, (byType.get(type) ?? 0) + 1)
      for (const [type, count] of byType) emit(type, count)
    },
    mapEntries: emit => {
      // Objects may have maps of one name.
      const byName = new Map<string, number>()
      for (const { name, entries } of countedMaps()) byName.set(name, (byName.get(name) ?? 0) + entries)
      for (const [name, entries] of byName) emit(name, entries)
    },
    ringbuf: () => ({ ...ringEvents(running?.capture), ...(running?.capture.backlog ?? noBacklog) }),
    perf: emit => {
      for (const { cpu, received, lost } of running?.capture.perfBuffers ?? []) emit(cpu, received, lost)
    },
    capture: emit => {
      for (const [event, total] of Object.entries(running?.capture.counters() ?? {})) emit(event, total)
    },
    profiling: () => {
      const { sampler, profiler, counters } = profiling
      if (sampler === undefined || profiler === undefined) return undefined
      return {
        counters,
        mapBytes: sampler.mapBytes,
        tableBytes: profiler.arena.bytes,
        symbolBytes: profiler.state?.symbolBytes ?? 0,
        frames: profiler.state?.met ?? 0,
        framesNamed: profiler.state?.named ?? 0,
      }
    },
    surroundings: () => surroundings(parts, running?.tls?.unread ?? {}),
    scraping: () => scrapingStats(parts.scraping),
    requestMetrics: () => running?.red ?? { overflowed: 0 },
    joins: () => running?.tracer.joins ?? { joined: 0, expired: 0 },
    telemetry: () => running?.tracer.telemetry ?? 0,
    selfSpansLost: () => self.lost,
    reloads: () => parts.reloads(),
    exposed: () => parts.api()?.exposed ?? false,
    api: () => parts.api()?.stats(),
  }
}

/** What processes named, and what their pods were annotated with. */
function lostAttributes(
  named: ProcessTable['lostAttributes'],
  annotated: ToldLosses,
): Readonly<Record<string, number>> {
  const { not_allowed, too_many, too_long } = annotated
  return {
    ...named,
    not_allowed: named.not_allowed + not_allowed,
    too_many: named.too_many + too_many,
    too_long: named.too_long + too_long,
  }
}

function surroundings(
  { discovery, gpu, logs, processes, profiling }: Parts,
  unreadForTls: Readonly<Record<string, number>>,
): SurroundingsStats {
  const { entities, runtimes, kubernetes, cloud } = discovery
  const { status } = logs
  const sources = Object.entries({
    docker: runtimes?.docker,
    containerd: runtimes?.containerd,
    kubernetes,
    cloud,
  })
  return {
    containers: entities.containerCount,
    pods: entities.podCount,
    lostAttributes: lostAttributes(processes.lostAttributes, entities.lost),
    unreadProcesses: {
      strings: processes.unreadStrings,
      tls: unreadForTls,
      profiles: profiling.profiler?.state?.unread ?? {},
    },
    gpus: gpu.source?.state.on ? gpu.source.state.devices.filter(({ reason }) => reason === '').length : 0,
    sources: sources.flatMap(([name, source]) =>
      // Where there is nothing to ask, nothing is disconnected.
      source === undefined || (!source.state.connected && source.state.hint === '')
        ? []
        : [[name, source.state.connected] as const],
    ),
    records: status.records,
    logFiles: status.files,
    logBehindBytes: status.behindBytes,
    logReadBytes: status.readBytes,
    logTruncations: status.truncations,
    logLostRotations: status.lostRotations,
    logLeftOut: status.leftOut.files + status.leftOut.directories,
    logCutTexts: status.cutTexts,
    logPaused: status.paused,
  }
}
