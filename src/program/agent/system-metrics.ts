// The system-metrics endpoint without its server: the enabled collectors, their page, and scrapes.

import { errorText, type Logger } from '../../foundation/lib/logger.ts'
import { counted } from '../../foundation/lib/small-tables.ts'
import type { Keys } from '../../foundation/schema/tree.ts'
import { HostFiles, type HostPaths } from '../../kernel/host.ts'
import type { Collector, Env, Reader } from '../../signals/metrics/collectors/collector.ts'
import { collectors as common, extraCollectors } from '../../signals/metrics/collectors/index.ts'
import { type BoundsSettings, boundsOf } from '../../signals/metrics/exposition/bounds.ts'
import {
  type ExporterBuild,
  type ScrapeCounts,
  showBuild,
  showExporter,
} from '../../signals/metrics/exposition/exporter-metrics.ts'
import { Gatherer, type Run } from '../../signals/metrics/exposition/gatherer.ts'
import { openMetrics } from '../../signals/metrics/exposition/open-metrics.ts'
import { Page, type Source } from '../../signals/metrics/exposition/page.ts'
import { showRuns } from '../../signals/metrics/exposition/runs.ts'
import type { MetricsSource, Scrape } from '../../view/api/metrics-endpoint.ts'

/** A collector with its options, as its `options` describe them. */
export interface Chosen {
  readonly unit: Collector<Keys>
  readonly options: Readonly<Record<string, unknown>>
}

export interface SystemMetricsOptions {
  readonly namespace: string
  readonly path: HostPaths
  /** Enabled collectors. */
  readonly collectors: readonly Chosen[]
  readonly cardinality: BoundsSettings
  /** Collectors that may wait for input concurrently. */
  readonly maxProcs: number
  /** Includes what the replaced exporter lacks: timeouts, reasons, duplicates. */
  readonly extended: boolean
  /** Interval of background readings that answer scrapes; 0: each scrape reads. */
  readonly intervalMs: number
  /** Time limit of a background reading. */
  readonly timeoutMs: number
  readonly build: ExporterBuild
  /** Why nothing may be loaded into the kernel; undefined if allowed. */
  readonly withoutEbpf?: string | undefined
  /** Counts of this process's scrapes; if absent, metrics about this process are omitted. */
  readonly scrapes?: () => ScrapeCounts
  readonly log: Logger
}

/** The running collectors of a host. */
export class SystemMetrics implements MetricsSource {
  readonly page: Page
  readonly namespace: string
  /** Names of the enabled collectors, sorted. */
  readonly enabled: readonly string[]
  readonly #options: SystemMetricsOptions
  readonly #gatherer: Gatherer
  readonly #host: HostFiles
  /** This process's own /proc, even if the host's is elsewhere. */
  readonly #self = new HostFiles({ procfs: '/proc', sysfs: '/sys', rootfs: '/', udev: '/run/udev/data' })
  readonly #own = sourceOf('runs')
  readonly #build = sourceOf('build')
  readonly #exporter = sourceOf('exporter')
  #gathers = 0
  /** Gathers in progress. */
  #underWay = 0
  #timer: NodeJS.Timeout | undefined
  #closed = false
  #read = false

  /** Starts the collectors. Throws a readable error if options contradict each other. */
  constructor(options: SystemMetricsOptions) {
    const { namespace, path, collectors, cardinality, maxProcs, intervalMs, build, log } = options
    this.#options = options
    this.#host = new HostFiles(path)
    this.namespace = namespace
    this.page = counted(new Page({ namespace, bounds: boundsOf(cardinality) }))
    this.#gatherer = new Gatherer({
      collectors: started(collectors, { host: this.#host, log, withoutEbpf: options.withoutEbpf }),
      page: this.page,
      log,
      maxWaiting: maxProcs,
    })
    this.enabled = this.runs.map(({ name }) => name)
    showBuild(this.page, this.#build, build)
    if (intervalMs > 0) void this.#refresh()
  }

  /** The enabled collectors, sorted by name. */
  get runs(): readonly Run[] {
    return this.#gatherer.runs
  }

  knows(name: string): boolean {
    const units: readonly { readonly name: string }[] = this.#options.extended
      ? [...common, ...extraCollectors]
      : common
    return units.some(unit => unit.name === name)
  }

  notReady(): string {
    return this.#options.intervalMs === 0 || this.#read ? '' : 'the collectors have not run yet'
  }

  async scrape({ collectors, openMetrics: open, withinMs }: Scrape): Promise<string> {
    const runs =
      collectors.length === this.runs.length
        ? this.runs
        : this.runs.filter(({ name }) => collectors.includes(name))
    if (this.#options.intervalMs === 0) await this.#gather(runs, withinMs)
    const sources = this.#shown(runs)
    if (!open) return this.page.write(sources).text
    const { enabled, max_metrics } = this.#options.cardinality
    return openMetrics(this.page, sources, enabled ? max_metrics : 0)
  }

  /** Reads these collectors and returns the sources with their readings, valid until the caller awaits. */
  async gather(runs: readonly Run[], withinMs: number): Promise<ReadonlySet<Source>> {
    await this.#gather(runs, withinMs)
    return this.#shown(runs)
  }

  /** Stops the collectors, after the readings in progress. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    clearTimeout(this.#timer)
    if (this.#underWay === 0) this.#end()
  }

  async #gather(runs: readonly Run[], withinMs: number): Promise<void> {
    this.#underWay++
    try {
      await this.#gatherer.gather(runs, withinMs)
    } finally {
      if (--this.#underWay === 0 && this.#closed) this.#end()
    }
  }

  #end(): void {
    this.#gatherer.close()
    this.#host.close()
    this.#self.close()
  }

  /** Adds the metrics about these collectors to the page. */
  #shown(runs: readonly Run[]): ReadonlySet<Source> {
    const { extended, scrapes } = this.#options
    if (++this.#gathers % sweepEvery === 0) this.#host.sweep()
    showRuns(this.page, this.#own, runs, extended)
    if (scrapes !== undefined) showExporter(this.page, this.#exporter, this.#self.proc, scrapes())
    return new Set([...runs, this.#own, this.#build, this.#exporter])
  }

  /** Reads all collectors, and schedules the next reading one interval after the start of this one. */
  async #refresh(): Promise<void> {
    const { intervalMs, timeoutMs, log } = this.#options
    const began = performance.now()
    try {
      await this.#gather(this.runs, timeoutMs)
      this.#read = true
    } catch (error) {
      log.error('cannot read the collectors', { reason: errorText(error) })
    }
    if (this.#closed) return
    const rest = Math.max(0, intervalMs - (performance.now() - began))
    this.#timer = setTimeout(() => void this.#refresh(), rest)
  }
}

/** Starts the collectors. Throws if one fails; then none is running. */
function started(collectors: readonly Chosen[], env: Env): { name: string; reader: Reader }[] {
  const readers: { name: string; reader: Reader }[] = []
  try {
    for (const { unit, options } of collectors)
      readers.push({ name: unit.name, reader: unit.start(options as never, env) })
    return readers
  } catch (error) {
    for (const { reader } of readers) reader.close?.()
    throw error
  }
}

function sourceOf(name: string): Source {
  return { name, round: 0, duplicates: 0 }
}

/** Scrapes after which files that none of them read are closed. */
const sweepEvery = 20
