// The scraping of Prometheus targets, wired to the pipeline.

import type { Config } from '../../config/index.ts'
import { type Change, change } from '../../foundation/lib/change.ts'
import type { Logger } from '../../foundation/lib/logger.ts'
import type { MemoryGovernor } from '../../foundation/lib/memory-governor.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import { pageBuffers } from '../../signals/metrics/scraping/fetch/page-buffers.ts'
import { TargetClient } from '../../signals/metrics/scraping/fetch/target-client.ts'
import { jobsOf } from '../../signals/metrics/scraping/jobs/jobs.ts'
import { PageRoom } from '../../signals/metrics/scraping/page-room.ts'
import type { ScrapeJob } from '../../signals/metrics/scraping/scrape-job.ts'
import type { ScrapeCounts } from '../../signals/metrics/scraping/scrape-loop.ts'
import { type JobState, ScrapeManager } from '../../signals/metrics/scraping/scrape-manager.ts'
import { shardIndex } from '../../signals/metrics/scraping/shard.ts'
import type { Target } from '../../signals/metrics/scraping/target.ts'
import type { Degradation } from '../../view/api/types.ts'
import type { Memory } from './memory.ts'
import { shownUrl } from './shown-target.ts'

export interface ScrapingOptions {
  readonly config: Config
  /** Base of relative paths in `scrape_configs`. */
  readonly baseDir: string
  readonly pipeline: Pick<Pipeline, 'intake' | 'prepared' | 'ledger'>
  readonly log: Logger
  readonly memory?: Pick<Memory, 'governor' | 'limitBytes'>
}

/** Parts of `limits.memory`: for state kept between scrapes, and for pages being read. */
const keptPart = 1 / 4
const readPart = 1 / 5

/** Totals since the start. */
export interface ScrapingTotals extends Readonly<ScrapeCounts> {
  /** Fast reads that contradicted a full one: bugs of svc. */
  readonly contradictions: number
}

/** Scrapes targets while the configuration has some. */
export class Scraping {
  readonly #baseDir: string
  readonly #log: Logger
  readonly #manager: ScrapeManager
  #config: Config
  #jobsWanted: readonly ScrapeJob[]
  /** Why nothing is scraped though jobs are configured. */
  #shardFault: Degradation | undefined
  #contradictions = 0
  #started = false

  constructor({ config, baseDir, pipeline, log, memory }: ScrapingOptions) {
    const metrics = pipeline.intake('metrics', 'scraped')
    this.#baseDir = baseDir
    this.#log = log
    this.#config = config
    this.#jobsWanted = this.#wanted
    const room = new PageRoom(memory && memory.limitBytes * keptPart)
    if (memory !== undefined) {
      pageBuffers.limit(memory.limitBytes * readPart)
      governScraping(memory.governor, room)
    }
    this.#manager = new ScrapeManager({
      log,
      room,
      open: openTarget,
      sink: {
        prepared: pipeline.prepared('scraped'),
        add: (resource, scope, metric) => metrics.add(resource, scope, metric),
        drop: (reason, points) => pipeline.ledger.metrics.dropAtIntake(reason, points, 'scraped'),
        contradicts: target => {
          this.#contradictions++
          log.error('a page was parsed incorrectly; svc now parses it in full each time', {
            target: shownUrl(target),
            hint: 'this is a bug in svc; please report it with the page',
          })
        },
      },
    })
  }

  /** Starts querying sources for targets. */
  start(): void {
    this.#started = true
    this.#apply()
  }

  /** Whether there is anything to scrape or discover. */
  get isOn(): boolean {
    return this.#jobsWanted.length > 0
  }

  get jobs(): readonly JobState[] {
    return this.#manager.state
  }

  /** Number of jobs and targets. */
  get size(): { readonly jobs: number; readonly targets: number } {
    return { jobs: this.#manager.sources.length, targets: this.#manager.targetCount }
  }

  get totals(): ScrapingTotals {
    return { ...this.#manager.counts, contradictions: this.#contradictions }
  }

  /**
   * An agent that does not know its share, and sources of targets that do not answer. A target that is down is not a
   * fault of the agent.
   */
  get faults(): readonly Degradation[] {
    if (this.#shardFault !== undefined) return [this.#shardFault]
    return this.#manager.sources.flatMap(({ name, sources }) =>
      sources
        .filter(({ reason, hint }) => reason !== '' && hint !== '')
        .map(({ kind, reason, hint }) => ({ subsystem: `targets of ${name} (${kind})`, reason, hint })),
    )
  }

  prepare(config: Config): Change {
    return change(() => {
      this.#config = config
      this.#jobsWanted = this.#wanted
      if (this.#started) this.#apply()
    })
  }

  /** Stops everything, and marks all series as ended. */
  stop(): Promise<void> {
    this.#started = false
    return this.#manager.stop()
  }

  get #wanted(): readonly ScrapeJob[] {
    const { prometheus } = this.#config.collectors
    // Their errors were reported when the configuration was checked.
    return prometheus.enabled ? jobsOf(prometheus, { baseDir: this.#baseDir }).jobs : []
  }

  #apply(): void {
    const { index, count, replicas } = this.#config.collectors.prometheus.shard
    this.#shardFault = undefined
    if (count === 1 || !this.isOn) {
      this.#manager.configure(this.#jobsWanted, undefined)
      return
    }
    const own = shardIndex(index)
    if (own !== undefined && own < count) {
      this.#manager.configure(this.#jobsWanted, { index: own, count, replicas })
      return
    }
    // Scraping all of them would send each series once per agent.
    this.#manager.configure([], undefined)
    this.#shardFault = {
      subsystem: 'scraping',
      reason:
        own === undefined
          ? 'collectors.prometheus.shard.index is -1, but neither POD_NAME nor the host name ends in a number'
          : `the shard index is ${own}, but collectors.prometheus.shard.count is ${count}`,
      hint: 'set POD_NAME from metadata.name of a StatefulSet, or collectors.prometheus.shard.index',
    }
    const { reason, hint } = this.#shardFault
    this.#log.error('scraping stopped: unknown or invalid shard index', { reason, hint })
  }
}

/** A client for the page of a target, with the settings of its job. */
export function openTarget({ job, url }: Target): TargetClient {
  return new TargetClient({
    url,
    access: job.access,
    compression: job.compression ? 'remote' : 'never',
    bodyBytes: job.limits.bodyBytes,
    owner: `job ${job.name}`,
  })
}

/**
 * Both are outside the budget of the tables, because large scrapes are a user's choice; each has its own part of the
 * total. Under memory pressure, prepared metrics are not kept between scrapes.
 */
function governScraping(governor: MemoryGovernor, room: PageRoom): void {
  governor.register({
    name: 'series of targets',
    kind: 'cache',
    apart: true,
    bytes: () => room.bytes,
    shed: bytes => room.shed(bytes),
  })
  governor.register({
    name: 'pages of targets',
    kind: 'cache',
    apart: true,
    bytes: () => pageBuffers.bytes,
    shed: bytes => pageBuffers.shed(bytes),
  })
}
