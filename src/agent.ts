import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { openPipeline } from './agent/outlets.ts'
import { startTracing, Tracing, type TracingFault } from './agent/tracing.ts'
import { agentView, degradations, endpointOf, metricsSource, type Parts } from './agent/view.ts'
import { type SelfMetrics, selfMetrics } from './api/self-metrics.ts'
import { type Api, startApi } from './api/server.ts'
import type { BannerLine, RunningAgent } from './api/types.ts'
import { type LoadedConfig, notBuiltFeatures } from './config/index.ts'
import { build } from './lib/build.ts'
import type { Logger } from './lib/logger.ts'
import { ExitCode, StartError } from './lib/start-error.ts'
import { Attributes } from './model/attributes.ts'
import { ProcessTable } from './tracing/services.ts'

/** Starts all that the configuration asks for. What cannot start is told in the banner and in `/ready`; it stops nothing else. */
export async function startAgent({
  loaded,
  log,
}: {
  loaded: LoadedConfig
  log: Logger
}): Promise<RunningAgent> {
  const { config } = loaded
  const startedMs = performance.now()
  let self: SelfMetrics | undefined
  const { pipeline, faults } = openPipeline(config, log, request => self?.exportRequest(request))
  const processes = new ProcessTable({
    hostName: hostname(),
    bootId: bootId(),
    version: build().version,
    attributes: Attributes.of(config.resource.attributes),
  })
  const { ebpf } = config.agent
  let tracing: Tracing | TracingFault | undefined
  // Recognised is HTTP/1 alone: without it there is nothing to look for.
  if (config.mode === 'agent' && ebpf.enabled && ebpf.network.enabled && ebpf.network.http) {
    tracing = startTracing({ config, pipeline, processes, log })
    if (!(tracing instanceof Tracing) && ebpf.required) {
      await pipeline.close()
      throw new StartError(
        `cannot start: agent.ebpf.required is true and eBPF is not available: ${tracing.reason}; ${tracing.mend}`,
        ExitCode.ebpf,
      )
    }
  }
  const running = tracing instanceof Tracing ? tracing : undefined
  const parts: Parts = { loaded, pipeline, outletFaults: faults, tracing, startedMs }
  self = selfMetrics(config.self_telemetry.prometheus_namespace, metricsSource(parts))
  const view = agentView(parts, self.registry)
  let api: Api | undefined
  if (config.self_telemetry.enabled) {
    try {
      api = await startApi({ settings: config.self_telemetry, view, log })
    } catch (error) {
      running?.stop()
      running?.close()
      await pipeline.close()
      throw error
    }
  }

  async function stop(): Promise<void> {
    running?.stop()
    const { drain_timeout } = config.pipeline.operations.shutdown
    const { exported, dropped } = await pipeline.drain(drain_timeout)
    log.info('drained', { exported, dropped })
    await api?.close()
    running?.close()
  }
  let stopping: Promise<void> | undefined
  return {
    view,
    banner: () => banner(parts),
    links: () =>
      api === undefined
        ? []
        : [
            { what: 'status', url: api.url('/status') },
            { what: 'ready', url: api.url('/ready') },
            { what: 'metrics', url: api.url(config.self_telemetry.path) },
          ],
    stop: () => {
      stopping ??= stop()
      return stopping
    },
  }
}

function banner(parts: Parts): BannerLine[] {
  const { loaded, tracing } = parts
  const { config, origins } = loaded
  const lines: BannerLine[] = []
  if (tracing instanceof Tracing) {
    const { backend, socketsFound } = tracing.capture
    lines.push({
      state: 'ok',
      name: 'traces',
      detail: `HTTP/1 of every process, by ${backend.name}; ${socketsFound} sockets were open already`,
    })
    for (const { reason, mend } of tracing.limits)
      lines.push({ state: 'limited', name: 'processes', detail: reason, mend })
  } else if (tracing !== undefined) {
    lines.push({ state: 'failed', name: 'traces', detail: tracing.reason, mend: tracing.mend })
  } else {
    const why = config.mode === 'collector' ? 'mode is collector' : 'switched off by agent.ebpf'
    lines.push({ state: 'off', name: 'traces', detail: why })
  }
  const endpoint = endpointOf(parts)
  const faults = degradations(parts).filter(({ subsystem }) => subsystem.startsWith('export'))
  if (endpoint !== '') lines.push({ state: 'ok', name: 'export', detail: `OTLP over gRPC to ${endpoint}` })
  for (const { subsystem, reason, mend } of faults)
    lines.push({ state: 'failed', name: subsystem, detail: reason, mend })
  if (endpoint === '' && faults.length === 0) {
    lines.push({
      state: 'none',
      name: 'export',
      detail: 'nothing leaves this host, and spans are only counted',
      mend: 'set otlp.endpoint, or OTEL_EXPORTER_OTLP_ENDPOINT',
    })
  }
  const missing = notBuiltFeatures(config, origins).filter(({ explicit }) => explicit)
  for (const { key } of missing) lines.push({ state: 'limited', name: 'not built', detail: `${key} is set` })
  lines.push({
    state: 'off',
    name: 'later',
    detail: 'host metrics, profiles, logs: not built in this version',
  })
  return lines
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
  } catch {
    return '' // no /proc: instance ids then only tell processes of one boot apart
  }
}
