// The agent's host metrics: the collectors, the endpoint that serves them, and the export of the same readings.

import { type Config, collectorOptions, type LoadedConfig } from '../../config/index.ts'
import { build } from '../../foundation/lib/build.ts'
import type { Change } from '../../foundation/lib/change.ts'
import { errorCode } from '../../foundation/lib/error-code.ts'
import { errorText, type Logger } from '../../foundation/lib/logger.ts'
import { ExitCode, StartError } from '../../foundation/lib/start-error.ts'
import type { Keys } from '../../foundation/schema/tree.ts'
import { duplicate } from '../../kernel/duplicate.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import type { Collector } from '../../signals/metrics/collectors/collector.ts'
import { collectors, extraCollectors } from '../../signals/metrics/collectors/index.ts'
import { boundsOf } from '../../signals/metrics/exposition/bounds.ts'
import { type Description, describe } from '../../signals/metrics/exposition/description.ts'
import type { ScrapeCounts } from '../../signals/metrics/exposition/exporter-metrics.ts'
import { ownNames } from '../../view/api/host-names.ts'
import { MetricsEndpoint } from '../../view/api/metrics-endpoint.ts'
import { type MetricsServer, startMetricsServer } from '../../view/api/metrics-server.ts'
import type { Degradation } from '../../view/api/types.ts'
import { HostMetricsPush, type HostReadings } from './host-metrics-push.ts'
import { bootTimeUs, type HostEntity } from './host-resource.ts'
import { ebpfOff, failureOf, hostCounts } from './kernel-parts.ts'
import { type Chosen, SystemMetrics } from './system-metrics.ts'

/** Version of the semantic conventions whose names the collectors declare. */
const conventions = '1.44.0'
const enabledKey = 'agent.nodeexporter.enabled'

export interface HostMetricsOptions {
  readonly loaded: LoadedConfig
  readonly pipeline: Pick<Pipeline, 'intake' | 'state'>
  readonly host: HostEntity
  readonly log: Logger
}

/** A reading of all collectors. The page is of this reading or a later one. */
export interface Reading {
  readonly source: HostReadings
  /** Milliseconds of `performance.now()`. */
  readonly atMs: number
}

/** Longest time that collectors may wait for their input on an interactive request. */
const lookMs = 2000

/** The running host metrics. */
export class HostMetrics {
  /** Undefined if the port was in use. */
  readonly server: MetricsServer | undefined
  readonly #options: HostMetricsOptions
  readonly #endpoint: MetricsEndpoint
  readonly #current: Current
  readonly #faults: readonly Degradation[]
  #push: HostMetricsPush | undefined
  #read: Reading | undefined
  #reading: Promise<Reading> | undefined
  #closed = false

  /** Starts what the configuration enables; undefined if that is nothing. Rejects with a `StartError`. */
  static async start(options: HostMetricsOptions): Promise<HostMetrics | undefined> {
    const { loaded, log } = options
    const settings = loaded.config.agent.nodeexporter
    if (!settings.enabled) return undefined
    let endpoint: MetricsEndpoint | undefined
    let metrics: SystemMetrics
    try {
      metrics = systemMetrics(loaded.config, log, () => endpoint!.stats())
    } catch (error) {
      throw new StartError(`cannot start the host metrics: ${errorText(error)}`, ExitCode.usage)
    }
    const current: Current = { config: loaded.config, metrics }
    endpoint = endpointOf(() => current, log)
    let server: MetricsServer | undefined
    const faults: Degradation[] = []
    try {
      server = await startMetricsServer({ settings, endpoint, log, duplicate })
    } catch (error) {
      const taken = errorCode(error) === 'EADDRINUSE'
      // A user who explicitly enabled the endpoint means this port.
      if (!taken || loaded.origins.has(enabledKey)) {
        metrics.close()
        throw error
      }
      const reason = errorText(error)
      const hint = `stop the program that listens there, or set agent.nodeexporter.listen_address, or ${enabledKey}: false`
      log.warn('the host metrics are not served', { reason, hint })
      faults.push({ subsystem: 'host metrics', reason, hint })
    }
    return new HostMetrics(options, current, endpoint, server, faults)
  }

  private constructor(
    options: HostMetricsOptions,
    current: Current,
    endpoint: MetricsEndpoint,
    server: MetricsServer | undefined,
    faults: readonly Degradation[],
  ) {
    this.#options = options
    this.#current = current
    this.#endpoint = endpoint
    this.server = server
    this.#faults = faults
    this.#follow(current.config)
  }

  /** Why requested metrics that only the kernel counts are missing. */
  get failures(): readonly Degradation[] {
    return failuresOf(this.#current.metrics)
  }

  /** Other degradations. */
  get faults(): readonly Degradation[] {
    return this.#faults
  }

  /** Number of enabled collectors. */
  get collectors(): number {
    return this.#current.metrics.runs.length
  }

  /** The running collectors, replaced by a reload, with their last reading. */
  get readings(): HostReadings {
    const { metrics } = this.#current
    const source: HostReadings = {
      page: metrics.page,
      runs: metrics.runs,
      gather: async (runs, withinMs) => {
        const sources = await metrics.gather(runs, withinMs)
        if (runs === metrics.runs) this.#read = { source, atMs: performance.now() }
        return sources
      },
    }
    return source
  }

  /**
   * Reads all collectors, unless they were read within `maxAgeMs` for this or for the export. Reads at most once per
   * `collector_interval`. Rejects after the end.
   */
  async read(maxAgeMs: number): Promise<Reading> {
    if (this.#closed) throw new Error('the agent is shutting down')
    const { config, metrics } = this.#current
    const mostAgeMs = Math.max(maxAgeMs, config.agent.nodeexporter.collector_interval)
    const read = this.#read
    if (read?.source.page === metrics.page && performance.now() - read.atMs <= mostAgeMs) return read
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  /**
   * Prepares the differences of `config`. Collectors restart if any of their keys differs. Throws a readable error if
   * they or the TLS files cannot be used.
   */
  prepare(config: Config, changed: ReadonlySet<string>): Change {
    const settings = config.agent.nodeexporter
    const others = [...changed].some(key => key.startsWith('agent.nodeexporter.') && !isEndpoint(key))
    const tls = this.server?.prepare(settings)
    let next: SystemMetrics | undefined
    try {
      next = others ? systemMetrics(config, this.#options.log, () => this.#endpoint.stats()) : undefined
    } catch (error) {
      tls?.abort()
      throw error
    }
    return {
      commit: () => {
        tls?.commit()
        const { metrics: before } = this.#current
        this.#current.config = config
        if (next !== undefined) {
          this.#current.metrics = next
          before.close()
          for (const { subsystem, reason, hint } of failuresOf(next))
            this.#options.log.warn(`${subsystem}: not available`, { reason, hint })
        }
        this.#endpoint.use(this.#current.metrics, limits(config), config.self_telemetry.allowed_hosts)
        this.#follow(config)
      },
      abort: () => {
        tls?.abort()
        next?.close()
      },
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#push?.close()
    await this.server?.close()
    this.#current.metrics.close()
  }

  async #readAll(): Promise<Reading> {
    const { readings } = this
    await readings.gather(readings.runs, lookMs)
    return { source: readings, atMs: performance.now() }
  }

  /** Exports as configured; nothing if there is no receiver. */
  #follow(config: Config): void {
    const { otlp, path } = config.agent.nodeexporter
    const { pipeline, log } = this.#options
    const wanted = otlp.enabled && pipeline.state('metrics').destination !== undefined
    if (!wanted) {
      this.#push?.close()
      this.#push = undefined
    } else if (this.#push !== undefined) this.#push.configure(otlp.interval)
    else
      this.#push = new HostMetricsPush({
        metrics: () => this.readings,
        intake: pipeline.intake('metrics', 'host'),
        host: this.#options.host,
        bootUs: bootTimeUs(path.procfs),
        intervalMs: otlp.interval,
        log,
      })
  }
}

function failuresOf({ runs }: SystemMetrics): Degradation[] {
  return runs.flatMap(({ reader: { failure } }) =>
    failure === undefined ? [] : [failureOf(hostCounts, failure)],
  )
}

/** Keys that the server and the export apply without new collectors. */
function isEndpoint(key: string): boolean {
  return /^agent\.nodeexporter\.(tls|otlp|timeout|max_requests|listen_address|enabled)\b/.test(key)
}

function limits({ agent: { nodeexporter } }: Config) {
  return { maxRequests: nodeexporter.max_requests, timeoutMs: nodeexporter.timeout }
}

/** The part that a reload replaces. */
interface Current {
  config: Config
  metrics: SystemMetrics
}

function endpointOf(current: () => Current, log: Logger): MetricsEndpoint {
  const { config, metrics } = current()
  return new MetricsEndpoint({
    source: metrics,
    path: '/metrics',
    ...limits(config),
    title: 'svc: metrics of this host',
    version: build().version,
    extended: { description: () => description(current()) },
    names: { own: ownNames, allowed: config.self_telemetry.allowed_hosts },
    log,
  })
}

function description({ config, metrics }: Current): Description {
  const { namespace, cardinality } = config.agent.nodeexporter
  return describe({
    namespace,
    collectors: chosen(config).map(({ unit }) => unit),
    page: metrics.page,
    sources: metrics.runs,
    bounds: boundsOf(cardinality),
    version: conventions,
  })
}

/** The enabled collectors, including those that the replaced exporter lacks if configured. */
function chosen(config: Config): readonly Chosen[] {
  const { collectors: switches, ebpf_enhanced } = config.agent.nodeexporter
  const isOn: Readonly<Record<string, boolean>> = switches
  const units: readonly Collector<Keys>[] = collectors
  const more: readonly Collector<Keys>[] = ebpf_enhanced ? extraCollectors : []
  return [
    ...units
      .filter(({ name }) => isOn[name])
      .map(unit => ({ unit, options: collectorOptions(config, unit.name) })),
    ...more.map(unit => ({ unit, options: {} })),
  ]
}

/** Starts the collectors of a configuration. Throws a readable error if options contradict each other. */
export function systemMetrics(config: Config, log: Logger, scrapes: () => ScrapeCounts): SystemMetrics {
  const { namespace, path, cardinality, max_procs, collector_interval, timeout } = config.agent.nodeexporter
  const { version, commit } = build()
  return new SystemMetrics({
    namespace,
    path,
    collectors: chosen(config),
    cardinality,
    maxProcs: max_procs,
    extended: true,
    intervalMs: collector_interval,
    timeoutMs: timeout,
    build: { version, revision: commit },
    withoutEbpf: ebpfOff(config)?.detail,
    scrapes,
    log,
  })
}
