// The system-metrics endpoint without its server: the collectors that are on, their page, and what a scrape is.

import type { Collector } from '../collectors/collector.ts'
import { type BoundsSettings, boundsOf } from '../exposition/bounds.ts'
import { Gatherer, type Run } from '../exposition/gatherer.ts'
import { Page, type Source } from '../exposition/page.ts'
import { showRuns } from '../exposition/runs.ts'
import { HostFiles, type HostPaths } from '../kernel/host.ts'
import type { Logger } from '../lib/logger.ts'
import type { Keys } from '../schema/tree.ts'

/** A collector with its options, as its `options` describe them. */
export interface Chosen {
  readonly unit: Collector<Keys>
  readonly options: Readonly<Record<string, unknown>>
}

export interface SystemMetricsOptions {
  readonly namespace: string
  readonly path: HostPaths
  /** Collectors that are on. */
  readonly collectors: readonly Chosen[]
  readonly cardinality: BoundsSettings
  /** Collectors that may wait for input at once. */
  readonly maxProcs: number
  /** Shows what the replaced exporter does not have: timeouts, reasons, duplicates. */
  readonly extended: boolean
  readonly log: Logger
}

/** The collectors of a host at work. */
export class SystemMetrics {
  readonly page: Page
  readonly #gatherer: Gatherer
  readonly #host: HostFiles
  readonly #extended: boolean
  readonly #own: Source = { name: '', round: 0, duplicates: 0 }
  #gathers = 0

  /** Starts the collectors. Throws, in words, where options contradict each other. */
  constructor({ namespace, path, collectors, cardinality, maxProcs, extended, log }: SystemMetricsOptions) {
    this.#host = new HostFiles(path)
    this.#extended = extended
    this.page = new Page({ namespace, bounds: boundsOf(cardinality) })
    const env = { host: this.#host, log }
    this.#gatherer = new Gatherer({
      collectors: collectors.map(({ unit, options }) => ({
        name: unit.name,
        reader: unit.start(options as never, env),
      })),
      page: this.page,
      log,
      maxWaiting: maxProcs,
    })
  }

  /** The collectors that are on, in the order of their names. */
  get runs(): readonly Run[] {
    return this.#gatherer.runs
  }

  /** Reads these collectors and answers their page. `withinMs` bounds the time that one may wait. */
  async scrape(runs: readonly Run[], withinMs: number): Promise<string> {
    const sources = await this.gather(runs, withinMs)
    return this.page.write(sources).text
  }

  /** Reads these collectors; their readings are those of the sources that it answers, until the caller waits. */
  async gather(runs: readonly Run[], withinMs: number): Promise<ReadonlySet<Source>> {
    await this.#gatherer.gather(runs, withinMs)
    if (++this.#gathers % sweepEvery === 0) this.#host.sweep()
    showRuns(this.page, this.#own, runs, this.#extended)
    return new Set([...runs, this.#own])
  }

  close(): void {
    this.#gatherer.close()
    this.#host.close()
  }
}

/** Scrapes after which files that none of them read are closed. */
const sweepEvery = 20
