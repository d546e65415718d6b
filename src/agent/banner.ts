// What the agent says of itself when it has started.

import type { BannerLine } from '../api/types.ts'
import { notBuiltFeatures } from '../config/index.ts'
import { formatDuration } from '../lib/duration.ts'
import { signals } from '../model/signal.ts'
import type { Parts } from './parts.ts'
import { Tracing } from './tracing.ts'
import { degradations, endpointOf, queueHint } from './view.ts'

/** Where data waits while the receiver is away. */
function queueLine({ outlets, loaded }: Parts): BannerLine | undefined {
  const { store } = outlets
  const { directory, max_size_bytes: most } = loaded().config.pipeline.export.queue
  if (typeof store === 'string')
    return {
      state: 'limited',
      name: 'queue',
      detail: `in memory only, lost at a crash: ${store}`,
      hint: queueHint,
    }
  if (store === undefined)
    return {
      state: 'off',
      name: 'queue',
      detail: 'in memory only, lost at a crash; data left at shutdown is counted as dropped',
    }
  const recovered = signals.reduce((sum, signal) => sum + outlets.pipeline.state(signal).recovered, 0)
  const found = recovered > 0 ? `; ${recovered} items recovered from an earlier run` : ''
  return {
    state: 'ok',
    name: 'queue',
    detail: `on disk in ${directory}, up to ${Math.round(most / 1e6)} MB${found}`,
  }
}

function profilesLine({ profiling, loaded }: Parts): BannerLine {
  const { sampler, profiler } = profiling
  const { config } = loaded()
  if (sampler === undefined || profiler === undefined) {
    const by = config.agent.ebpf.enabled ? 'agent.profiling' : 'agent.ebpf'
    const why = config.mode === 'collector' ? 'mode is collector' : `disabled by ${by}`
    return {
      state: 'off',
      name: 'profiles',
      detail: profiling.faults.length > 0 ? 'not started' : why,
    }
  }
  const settings = config.agent.profiling
  const kinds = [
    ...(settings.cpu ? ['on-CPU'] : []),
    ...(settings.off_cpu ? ['off-CPU'] : []),
    ...(settings.memory ? ['memory'] : []),
  ]
  return {
    state: 'ok',
    name: 'profiles',
    detail: `${kinds.join(', ') || 'on request only'} of every process, at ${settings.sample_rate} Hz`,
  }
}

function logsLine({ logs, loaded }: Parts): BannerLine {
  const { config } = loaded()
  const name = 'logs'
  if (config.mode === 'collector') return { state: 'off', name, detail: 'mode is collector' }
  const { enabled, container_logs, journald, paths } = config.agent.logs
  if (!enabled) return { state: 'off', name, detail: 'disabled by agent.logs' }
  const what = [
    ...(container_logs ? ['of containers'] : []),
    ...(paths.length > 0 ? [`of files (${paths.join(' ')})`] : []),
    ...(journald ? ['of the journal'] : []),
  ]
  if (what.length === 0) return { state: 'off', name, detail: 'no sources in agent.logs' }
  const { enabled: isOn, files } = logs.status
  if (!isOn) return { state: 'off', name, detail: 'not started' }
  return { state: 'ok', name, detail: `${what.join(', ')}; ${files} files so far` }
}

/** What is asked; what answers comes in its time. */
function discoveryLine({ discovery, loaded }: Parts): BannerLine {
  const { config } = loaded()
  const name = 'discovery'
  if (!config.agent.discovery.enabled) return { state: 'off', name, detail: 'disabled by agent.discovery' }
  const asked = [
    ...(discovery.runtimes === undefined ? [] : ['containers']),
    ...(discovery.kubernetes === undefined ? [] : ['Kubernetes']),
    ...(discovery.cloud === undefined ? [] : ['cloud']),
  ]
  if (asked.length === 0) return { state: 'off', name, detail: 'all sources disabled' }
  return { state: 'ok', name, detail: `${asked.join(', ')}; see /status/discovery` }
}

/** What is scraped; how it goes is told when it was. */
function scrapingLine({ scraping, loaded }: Parts): BannerLine {
  const name = 'scraping'
  const { enabled } = loaded().config.collectors.prometheus
  if (!enabled) return { state: 'off', name, detail: 'disabled by collectors.prometheus' }
  if (!scraping.isOn) return { state: 'off', name, detail: 'no targets in collectors.prometheus' }
  const { jobs, faults } = scraping
  const [fault] = faults
  if (jobs.length === 0 && fault !== undefined)
    return { state: 'failed', name, detail: fault.reason, hint: fault.hint }
  const targets = jobs.reduce((sum, job) => sum + job.targets.length, 0)
  const what = `${jobs.length} ${jobs.length === 1 ? 'job' : 'jobs'}, ${targets} targets so far`
  return { state: 'ok', name, detail: `${what}; see /status/targets` }
}

/** One line for each subsystem: what works, what does not and why. */
export function banner(parts: Parts): BannerLine[] {
  const { tracing } = parts
  const { config, origins } = parts.loaded()
  const lines: BannerLine[] = []
  if (tracing instanceof Tracing) {
    const { backend, socketsFound } = tracing.capture
    lines.push({
      state: 'ok',
      name: 'traces',
      detail: `${tracing.protocols} protocols of every process, by ${backend.name}; ${socketsFound} sockets were already open`,
    })
    for (const { subsystem: name, reason, hint } of tracing.limits)
      lines.push({ state: 'limited', name, detail: reason, hint })
  } else if (tracing !== undefined) {
    lines.push({ state: 'failed', name: 'traces', detail: tracing.reason, hint: tracing.hint })
  } else {
    const why = config.mode === 'collector' ? 'mode is collector' : 'disabled by agent.ebpf'
    lines.push({ state: 'off', name: 'traces', detail: why })
  }
  lines.push(profilesLine(parts))
  lines.push(logsLine(parts), discoveryLine(parts))
  const gpu = parts.gpu.source?.state
  if (gpu?.on) {
    const models = gpu.devices.map(({ name }) => name).join(', ')
    lines.push({ state: 'ok', name: 'GPUs', detail: `${gpu.devices.length} measured: ${models}` })
  }
  lines.push(scrapingLine(parts))
  const metrics = parts.hostMetrics()
  if (metrics?.server !== undefined)
    lines.push({
      state: 'ok',
      name: 'host metrics',
      detail: `${metrics.collectors} collectors, at ${metrics.server.url('/metrics')}`,
    })
  else if (metrics === undefined)
    lines.push({ state: 'off', name: 'host metrics', detail: 'disabled by agent.nodeexporter' })
  const endpoint = endpointOf(parts)
  const faults = degradations(parts).filter(({ subsystem }) => subsystem.startsWith('export'))
  if (endpoint !== '')
    lines.push({ state: 'ok', name: 'export', detail: `OTLP over ${config.otlp.protocol} to ${endpoint}` })
  const queue = queueLine(parts)
  if (endpoint !== '' && queue !== undefined) lines.push(queue)
  for (const { subsystem, reason, hint } of faults)
    lines.push({ state: 'failed', name: subsystem, detail: reason, hint })
  if (endpoint === '' && faults.length === 0) {
    lines.push({
      state: 'none',
      name: 'export',
      detail:
        config.self_telemetry.enabled && config.self_telemetry.ui.enabled
          ? `no exporter configured; telemetry stays in memory for ${formatDuration(config.self_telemetry.ui.window)}`
          : 'no exporter configured; telemetry is only counted',
      hint: 'set otlp.endpoint, or OTEL_EXPORTER_OTLP_ENDPOINT',
    })
  }
  for (const { subsystem, reason, hint } of parts.faults())
    lines.push({ state: 'limited', name: subsystem, detail: reason, hint })
  const missing = notBuiltFeatures(config, origins).filter(({ explicit }) => explicit)
  for (const { key } of missing) lines.push({ state: 'limited', name: 'not built', detail: `${key} is set` })
  return lines
}
