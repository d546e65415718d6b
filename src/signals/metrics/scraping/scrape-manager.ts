import { errorText, type Logger } from '../../../foundation/lib/logger.ts'
import { Turn } from '../../../foundation/lib/turn.ts'
import { within } from '../../../foundation/lib/within.ts'
import type { PageRoom } from './page-room.ts'
import type { ScrapeJob, TargetGroup } from './scrape-job.ts'
import { type LoopState, type PageSource, type ScrapeCounts, ScrapeLoop } from './scrape-loop.ts'
import type { SeriesSink } from './series-sink.ts'
import type { Shard } from './shard.ts'
import type { TargetSource, TargetSourceState } from './source.ts'
import { openSource } from './sources/index.ts'
import type { DroppedTarget, Target } from './target.ts'
import { type DiscoveredTargets, readTargets, targetsOf } from './targets.ts'

export interface ManagerOptions {
  readonly sink: SeriesSink
  readonly open: (target: Target) => PageSource
  readonly log: Logger
  /** Accounts for the memory kept of pages; no limit if omitted. */
  readonly room?: PageRoom
}

export interface TargetState extends LoopState {
  readonly target: Target
}

/** State of a job: its sources, and its targets. */
export interface JobState {
  readonly name: string
  readonly sources: readonly (TargetSourceState & { readonly kind: string })[]
  readonly targets: readonly TargetState[]
  /** The first dropped targets, for display; `droppedTotal` counts all. */
  readonly dropped: readonly DroppedTarget[]
  readonly droppedTotal: number
}

/**
 * Delay, in intervals, before the series of a removed target are marked as ended: another agent may have taken over the
 * target.
 */
const graceIntervals = 2.1

/** Maximum removed targets of a job that wait; above it, the oldest end immediately. */
const mostLeaving = 10_000
/** Maximum delay of a Node.js timer. */
const longestMs = 2 ** 31 - 1

/** Maximum time for end markers at shutdown, in milliseconds. */
const endMs = 5_000

interface Source {
  /** Settings it was made from, as text. */
  readonly made: string
  readonly kind: string
  readonly source: TargetSource
  groups: readonly TargetGroup[]
}

interface Leaving {
  readonly loop: ScrapeLoop
  readonly timer: NodeJS.Timeout
  readonly end: () => void
}

interface Job {
  job: ScrapeJob
  made: string
  sources: Source[]
  readonly loops: Map<string, ScrapeLoop>
  readonly leaving: Map<string, Leaving>
  dropped: readonly DroppedTarget[]
  droppedTotal: number
  /** Whether something changed since its targets were last read. */
  isStale: boolean
  isUpdating: boolean
  isClosed: boolean
}

/** Scrapes the targets of all jobs. Jobs that a reload does not change continue without a gap. */
export class ScrapeManager {
  /** Totals since the start. */
  readonly counts: ScrapeCounts = { scrapes: 0, failures: 0, missed: 0, samples: 0, wholeReads: 0 }
  readonly #options: ManagerOptions
  readonly #jobs = new Map<string, Job>()
  /** Loops that are stopping. */
  readonly #ends = new Set<Promise<void>>()
  #shard: Shard | undefined
  #stopped = false

  constructor(options: ManagerOptions) {
    this.#options = options
  }

  /** Sets the jobs to scrape; of their targets, those in the shard of this agent. */
  configure(jobs: readonly ScrapeJob[], shard: Shard | undefined): void {
    if (this.#stopped) return
    const isReshared = textOf(shard) !== textOf(this.#shard)
    this.#shard = shard
    const wanted = new Set(jobs.map(job => job.name))
    for (const [name, job] of this.#jobs) if (!wanted.has(name)) this.#close(name, job)
    for (const job of jobs) this.#open(job, isReshared)
  }

  /** Without the targets, so it is cheap for any number of them. */
  get sources(): readonly Pick<JobState, 'name' | 'sources'>[] {
    return [...this.#jobs.values()].map(({ job, sources }) => ({
      name: job.name,
      sources: sources.map(({ kind, source }) => ({ kind, ...source.state })),
    }))
  }

  get targetCount(): number {
    let targets = 0
    for (const { loops } of this.#jobs.values()) targets += loops.size
    return targets
  }

  get state(): readonly JobState[] {
    return [...this.#jobs.values()].map(({ job, sources, loops, dropped, droppedTotal }) => ({
      name: job.name,
      sources: sources.map(({ kind, source }) => ({ kind, ...source.state })),
      targets: [...loops.values()].map(loop => ({ target: loop.target, ...loop.state })),
      dropped,
      droppedTotal,
    }))
  }

  /**
   * Stops everything. Marks series as ended for at most `withinMs`: sending what is queued needs the rest of the
   * shutdown time.
   */
  async stop(withinMs = endMs): Promise<void> {
    this.#stopped = true
    for (const [name, job] of this.#jobs) this.#close(name, job)
    await within(withinMs, Promise.all(this.#ends))
  }

  #open(job: ScrapeJob, isReshared: boolean): void {
    const made = textOf(job)
    let entry = this.#jobs.get(job.name)
    const isNew = entry?.made !== made
    if (entry === undefined) {
      entry = entryOf(job, made)
      this.#jobs.set(job.name, entry)
    } else if (isNew) {
      // An unchanged job stays the same object, as caches depend on it.
      entry.job = job
      entry.made = made
    }
    const before = new Map(entry.sources.map(source => [source.made, source]))
    const sources = new Map<string, Source>()
    const fresh: Source[] = []
    for (const settings of job.sources) {
      const text = textOf(settings)
      if (sources.has(text)) continue
      let source = before.get(text)
      before.delete(text)
      if (source === undefined) {
        source = this.#source(entry, settings, text)
        fresh.push(source)
      }
      sources.set(text, source)
    }
    entry.sources = [...sources.values()]
    for (const { source } of before.values()) source.stop()
    // Only now: sources may report immediately, and the job must know them.
    for (const { source } of fresh) source.start()
    if (isNew || isReshared) this.#update(entry)
  }

  #source(entry: Job, settings: ScrapeJob['sources'][number], made: string): Source {
    const onGroups = (groups: readonly TargetGroup[]) => {
      opened.groups = groups
      if (entry.sources.includes(opened)) this.#update(entry)
    }
    const source = openSource(settings, { log: this.#options.log, onGroups })
    const opened: Source = { made, kind: settings.kind, source, groups: [] }
    return opened
  }

  /** Reads the targets of a job again; changes during the reading are read afterwards. */
  #update(entry: Job): void {
    entry.isStale = true
    if (entry.isUpdating || entry.isClosed) return
    entry.isUpdating = true
    this.#updated(entry).catch(error => {
      this.#options.log.error('cannot update the targets of a job; keeping the previous ones', {
        job: entry.job.name,
        error: errorText(error),
      })
    })
  }

  async #updated(entry: Job): Promise<void> {
    try {
      while (entry.isStale && !entry.isClosed) {
        entry.isStale = false
        const { job } = entry
        const groups = entry.sources.flatMap(source => source.groups)
        await readTargets(job, groups)
        // Newer groups are read in the next round; under newer settings these targets would be obsolete.
        if (entry.job === job) await this.#apply(entry, targetsOf(job, groups, this.#shard))
      }
    } finally {
      entry.isUpdating = false
    }
  }

  async #apply(entry: Job, { targets, dropped, droppedTotal }: DiscoveredTargets): Promise<void> {
    const { job } = entry
    if (entry.isClosed) return
    entry.dropped = dropped
    entry.droppedTotal = droppedTotal
    const wanted = new Set<string>()
    for (const { id } of targets) wanted.add(id)
    const turn = new Turn()
    for (const [id, loop] of entry.loops) if (!wanted.has(id)) this.#leave(entry, id, loop)
    for (const target of targets) {
      this.#follow(entry, target)
      if (!turn.isOver) continue
      await turn.next()
      if (entry.isClosed || entry.job !== job) return
    }
  }

  /** Starts scraping a target, or updates its loop. */
  #follow({ loops, leaving }: Job, target: Target): void {
    const back = leaving.get(target.id)
    if (back !== undefined) {
      clearTimeout(back.timer)
      leaving.delete(target.id)
      loops.set(target.id, back.loop)
      back.loop.start()
    }
    const loop = loops.get(target.id)
    if (loop === undefined) this.#start(loops, target)
    else if (loop.target !== target) {
      if (isScrapedAlike(loop.target, target)) loop.describe(target)
      else loop.change(target)
    }
  }

  #start(loops: Map<string, ScrapeLoop>, target: Target): void {
    const { open, sink, room } = this.#options
    const loop = new ScrapeLoop({ target, open, sink, room, counts: this.counts })
    loops.set(target.id, loop)
    loop.start()
  }

  #leave({ loops, leaving }: Job, id: string, loop: ScrapeLoop): void {
    loops.delete(id)
    loop.pause()
    if (!loop.hasBegun) {
      this.#end(loop)
      return
    }
    const end = () => {
      leaving.delete(id)
      this.#end(loop)
    }
    const timer = setTimeout(end, Math.min(longestMs, graceIntervals * loop.target.intervalMs))
    timer.unref()
    leaving.set(id, { loop, timer, end })
    if (leaving.size <= mostLeaving) return
    const [first] = leaving.values()
    clearTimeout(first!.timer)
    first!.end()
  }

  #close(name: string, entry: Job): void {
    entry.isClosed = true
    for (const { source } of entry.sources) source.stop()
    for (const { loop, timer } of entry.leaving.values()) {
      clearTimeout(timer)
      this.#end(loop)
    }
    for (const loop of entry.loops.values()) this.#end(loop)
    this.#jobs.delete(name)
  }

  #end(loop: ScrapeLoop): void {
    const end = loop.stop(true).finally(() => this.#ends.delete(end))
    this.#ends.add(end)
  }
}

function entryOf(job: ScrapeJob, made: string): Job {
  return {
    job,
    made,
    sources: [],
    loops: new Map(),
    leaving: new Map(),
    dropped: [],
    droppedTotal: 0,
    isStale: false,
    isUpdating: false,
    isClosed: false,
  }
}

/** Settings of jobs without their sources, which do not affect scraping. */
const settingsOf = new WeakMap<ScrapeJob, string>()

function isScrapedAlike(one: Target, other: Target): boolean {
  if (one.intervalMs !== other.intervalMs || one.timeoutMs !== other.timeoutMs) return false
  return one.job === other.job || scrapeText(one.job) === scrapeText(other.job)
}

function scrapeText(job: ScrapeJob): string {
  let text = settingsOf.get(job)
  if (text === undefined) {
    text = textOf({ ...job, sources: [], relabel: [] })
    settingsOf.set(job, text)
  }
  return text
}

/** Text that is equal for equal settings. It contains secrets, so it must not leave this file. */
function textOf(settings: unknown): string {
  return JSON.stringify(settings, (_key, value: unknown) => {
    if (value instanceof RegExp) return String(value)
    return value instanceof Map ? [...value] : value
  })
}
