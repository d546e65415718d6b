// The parts that a reload of the configuration changes while they run.

import type { Api } from '../api/server.ts'
import type { Config } from '../config/index.ts'
import type { ProcessTable } from '../entities/process-table.ts'
import type { Change } from '../lib/change.ts'
import type { Logger } from '../lib/logger.ts'
import type { RuntimeProfiler } from '../runtime/runtime-profiler.ts'
import type { Discovery } from './discovery.ts'
import type { EbpfDebug } from './ebpf-debug.ts'
import type { Gpu } from './gpu.ts'
import type { HostMetrics } from './host-metrics.ts'
import type { Logs } from './logs.ts'
import type { Outlets } from './outlets.ts'
import type { Profiling } from './profiling.ts'
import type { Reloadable } from './reload.ts'
import type { Scraping } from './scraping.ts'
import type { SelfTracer } from './self-tracing.ts'
import { selectionOf, type Tracing } from './tracing.ts'

export interface ReloadableParts {
  readonly log: Logger
  readonly outlets: Outlets
  readonly processes: ProcessTable
  readonly tracing: Tracing | undefined
  readonly profiling: Profiling
  readonly discovery: Discovery
  readonly gpu: Gpu
  readonly logs: Logs
  readonly scraping: Scraping
  readonly self: SelfTracer
  readonly profiler: RuntimeProfiler
  readonly ebpfDebug: EbpfDebug
  readonly api: () => Api | undefined
  readonly hostMetrics: () => HostMetrics | undefined
}

/** In the order of preparation: what can refuse comes first. */
export function reloadables(parts: ReloadableParts): readonly Reloadable[] {
  const { log, outlets, processes, tracing, profiling, discovery, gpu, logs, scraping, self, profiler } =
    parts
  return [
    {
      name: 'management API',
      prepare: (config, changed) => {
        const api = touches(changed, 'self_telemetry', 'log_level') ? parts.api() : undefined
        const change = api?.prepare(apiSettings(config))
        if (!api || !change) return undefined
        return {
          commit: () => {
            const before = api.exposed
            change.commit()
            if (!before) warnOfExposure(api, log)
          },
          abort: () => change.abort(),
        }
      },
    },
    {
      name: 'export',
      prepare: (config, changed) =>
        touches(changed, 'otlp', 'queues', 'backoff', 'pipeline')
          ? outlets.prepare(config, changed)
          : undefined,
    },
    {
      name: 'host metrics',
      // Whether they are exported follows from where metrics go.
      prepare: (config, changed) =>
        touches(
          changed,
          'agent.nodeexporter',
          'self_telemetry.allowed_hosts',
          'otlp',
          'pipeline.export',
          'resource',
        )
          ? parts.hostMetrics()?.prepare(config, changed)
          : undefined,
    },
    {
      name: 'tracing',
      prepare: (config, changed) =>
        touches(changed, 'agent.ebpf', 'discovery') ? tracing?.prepare(config) : undefined,
    },
    {
      // System calls and connections are told of whom it means, also without tracing.
      name: 'selection',
      prepare: ({ discovery: rules }, changed) =>
        tracing === undefined && touches(changed, 'discovery')
          ? change(() => processes.select(selectionOf(rules)))
          : undefined,
    },
    {
      name: 'profiles',
      prepare: (config, changed) =>
        touches(changed, 'agent.profiling', 'agent.ebpf.enabled', 'discovery')
          ? profiling.prepare(config)
          : undefined,
    },
    {
      name: 'discovery',
      prepare: (config, changed) =>
        touches(changed, 'agent.discovery', 'discovery', 'cloud') ? discovery.prepare(config) : undefined,
    },
    {
      name: 'logs',
      prepare: (config, changed) => (touches(changed, 'agent.logs') ? logs.prepare(config) : undefined),
    },
    {
      name: 'scraping',
      prepare: (config, changed) =>
        touches(changed, 'collectors.prometheus') ? scraping.prepare(config) : undefined,
    },
    {
      name: 'gpu',
      prepare: (config, changed) => (touches(changed, 'agent.gpu') ? gpu.prepare(config) : undefined),
    },
    {
      name: 'self-tracing',
      prepare: config => change(() => self.configure(selfTracing(config))),
    },
    {
      name: 'debug mode',
      prepare: config =>
        change(() => {
          if (debugMode(config)) profiler.start()
          else profiler.stop()
        }),
    },
    {
      name: 'eBPF debug',
      prepare: (config, changed) =>
        touches(changed, 'agent.ebpf.debug') ? parts.ebpfDebug.prepare(config) : undefined,
    },
    {
      name: 'log',
      prepare: ({ log_level: level, log_format: format }, changed) =>
        change(() => {
          // A terminal's form stays, unless somebody asks for another.
          log.configure(changed.has('log_format') ? { level, format } : { level })
        }),
    },
  ]
}

/** `/debug/*` is served, and what it shows is watched. */
export function debugMode({ self_telemetry, log_level }: Config): boolean {
  return self_telemetry.debug || log_level === 'debug'
}

/** The API's settings, with what follows from keys elsewhere. */
export function apiSettings(config: Config): Config['self_telemetry'] {
  return { ...config.self_telemetry, debug: debugMode(config) }
}

export function selfTracing({ self_telemetry: { tracing } }: Config) {
  return { enabled: tracing.enabled, sampleRate: tracing.sample_rate }
}

/** Says that whoever reaches this host may read metrics, health and the configuration, or, where remote peers may, all. */
export function warnOfExposure(api: Api, log: Logger): void {
  if (!api.exposed) return
  log.warn('the management API is reachable from other hosts without a token or client certificates', {
    url: api.url('/'),
    hint: 'set self_telemetry.auth.enabled and a bearer_token, or self_telemetry.listen: "127.0.0.1:19090"',
  })
}

function change(commit: () => void): Change {
  return { commit, abort: () => undefined }
}

function touches(changed: ReadonlySet<string>, ...branches: readonly string[]): boolean {
  for (const key of changed)
    if (branches.some(branch => key === branch || key.startsWith(`${branch}.`))) return true
  return false
}
