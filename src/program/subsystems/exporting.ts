import { formatDuration } from '../../foundation/lib/duration.ts'
import { type Signal, signals } from '../../foundation/model/signal.ts'
import { loadNative, Unsupported } from '../../kernel/native.ts'
import { DiskStore } from '../../pipeline/disk/disk-store.ts'
import { ExportPipelines } from '../agent/export-pipelines.ts'
import { type MetricsOf, type SelfMetrics, values } from '../agent/self-metrics.ts'
import type { Events, Fault, Subsystem } from '../agent/subsystem.ts'
import { memory } from './memory.ts'

/** Metric name and display name of each signal's items. */
const itemNames = [
  ['traces', 'spans', 'Spans'],
  ['metrics', 'metrics', 'Metric points'],
  ['logs', 'logs', 'Log records'],
  ['profiles', 'profiles', 'Profiles'],
] as const satisfies readonly (readonly [Signal, string, string])[]

const latencyBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const batchBounds = [1, 10, 100, 500, 1000, 2000, 4000, 8192, 16384, 32768]

/** Profiles are the newest signal of OTLP: many receivers lack or disable them. */
const profilesUnknownHint =
  'enable profiles at the receiver (OpenTelemetry Collector: --feature-gates=service.profilesSupport), set ' +
  'otlp.profiles.endpoint to one that accepts them, or set agent.profiling.enabled: false; svc profile needs no receiver'

export const exporting: Subsystem<ExportPipelines> = {
  name: 'export',
  keys: ['otlp', 'queues', 'backoff', 'pipeline'],
  banner: 'always',
  create: agent => {
    const { config, options, events } = agent
    const pipelines = new ExportPipelines(config, {
      log: options.log,
      observe: request => events.exported.report(request),
      lock: takeLock,
    })
    const { pipeline, store } = pipelines
    agent.of(memory).governor.register({
      name: 'queued batches',
      ...(store instanceof DiskStore
        ? ({ kind: 'cache' } as const)
        : ({ kind: 'intake', apart: true } as const)),
      bytes: () => pipeline.queuedMemory,
      shed: bytes => pipeline.shed(bytes),
    })
    return pipelines
  },
  prepare: (own, config, changed) => own.prepare(config, changed),
  state: (own, config) => {
    const faults = faultsOf(own)
    const { endpoint } = own
    if (endpoint !== '')
      return { state: 'ok', detail: `OTLP over ${config.otlp.protocol} to ${endpoint}`, faults }
    if (own.faults.length > 0) return { state: 'failed', faults }
    const { enabled, ui } = config.self_telemetry
    return {
      state: 'none',
      detail:
        enabled && ui.enabled
          ? `no exporter configured; telemetry stays in memory for ${formatDuration(ui.window)}`
          : 'no exporter configured; telemetry is only counted',
      hint: 'set otlp.endpoint, or OTEL_EXPORTER_OTLP_ENDPOINT',
      faults,
    }
  },
  metrics: {
    ...Object.fromEntries(itemNames.flatMap(each => Object.entries(itemMetrics(each)))),
    processor_outcomes_total: {
      help: 'Outcomes of processors, by rule and outcome.',
      labels: ['processor', 'signal_type', 'rule', 'outcome'],
      collect: (own, emit) => {
        for (const signal of signals)
          for (const { name, stage } of own.stages(signal))
            stage.counters((rule, outcome, total) => emit(total, name, signal, rule, outcome))
      },
    },
  },
  declare: declareRequests,
}

function faultsOf(pipelines: ExportPipelines): Fault[] {
  const fails = 'otlp' as const
  const faults = pipelines.faults.map(
    ({ signal, reason, hint }): Fault => ({ subsystem: `export of ${signal}`, reason, hint, fails }),
  )
  for (const signal of signals) {
    const { lastError, unknown } = pipelines.pipeline.state(signal).destination ?? {}
    if (!lastError) continue
    // Receivers without profiles are common, and accept everything else.
    const isCommon = unknown === true && signal === 'profiles'
    faults.push({
      subsystem: `export of ${signal}`,
      reason: lastError,
      hint: isCommon
        ? profilesUnknownHint
        : 'svc doctor checks the endpoint; queued data is sent when it answers',
      fails: isCommon ? undefined : fails,
    })
  }
  for (const signal of signals)
    for (const { name, stage } of pipelines.stages(signal))
      if (stage.warning) faults.push({ subsystem: name, reason: stage.warning, hint: 'see docs/limits.md' })
  return faults
}

function itemMetrics([signal, name, words]: (typeof itemNames)[number]): MetricsOf<ExportPipelines> {
  return {
    [`${name}_collected_total`]: {
      help: `${words} collected, by type.`,
      labels: ['signal_type'],
      collect: ({ pipeline }, emit) => {
        // Spans are counted where they are made.
        if (signal !== 'traces') pipeline.ledger[signal].eachType((type, items) => emit(items, type))
      },
    },
    [`${name}_exported_total`]: values(
      'endpoint',
      `${words} acknowledged by the endpoint.`,
      ({ pipeline }) => pipeline.state(signal).exportedBy,
    ),
    [`${name}_dropped_total`]: values('reason', `${words} lost, by reason.`, ({ pipeline }) => {
      const { dropped, rejected } = pipeline.state(signal)
      return rejected > 0 ? [...dropped, ['rejected', rejected] as const] : dropped
    }),
  }
}

function declareRequests(metrics: SelfMetrics, events: Events): void {
  const { registry } = metrics
  const named = (name: string) => metrics.named(`export_${name}`)
  const of = ['endpoint', 'signal_type']
  const requests = registry.counter(named('requests_total'), 'Completed export requests.', [...of, 'status'])
  const errors = registry.counter(named('errors_total'), 'Failed export requests.', [...of, 'error_type'])
  const took = 'Time from sending an export request to its end.'
  const latency = registry.histogram(named('latency_seconds'), took, latencyBounds, of)
  const batch = registry.histogram(
    named('batch_size'),
    'Items in an export request.',
    batchBounds,
    of.slice(1),
  )
  events.exported.listen(({ endpoint, signal, errorType, latencySeconds, items }) => {
    requests.labels(endpoint, signal, errorType === '' ? 'success' : 'error').inc()
    if (errorType !== '') errors.labels(endpoint, signal, errorType).inc()
    latency.labels(endpoint, signal).observe(latencySeconds)
    batch.labels(signal).observe(items)
  })
}

/** Without the addon there is no lock; every supported platform has it. */
function takeLock(fd: number): boolean {
  const native = loadNative()
  return native instanceof Unsupported || native.flock(fd)
}
