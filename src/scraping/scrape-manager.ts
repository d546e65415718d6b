import type { Logger } from '../lib/logger.ts'
import type { ScrapeJob, TargetGroup } from './scrape-job.ts'
import { type LoopState, type PageSource, type ScrapeCounts, ScrapeLoop } from './scrape-loop.ts'
import type { SeriesSink } from './series-sink.ts'
import type { Shard } from './shard.ts'
import type { TargetSource, TargetSourceState } from './source.ts'
import { openSource } from './sources/index.ts'
import type { DroppedTarget, Target } from './target.ts'
import { targetsOf } from './targets.ts'

export interface ManagerOptions {
  readonly sink: SeriesSink
  readonly open: (target: Target) => PageSource
  readonly log: Logger
}

export interface TargetState extends LoopState {
  readonly target: Target
}

/** One job with its sources and what became of the targets that they told. */
export interface JobState {
  readonly name: string
  readonly sources: readonly (TargetSourceState & { readonly kind: string })[]
  readonly targets: readonly TargetState[]
  /** Those kept for people; `droppedTotal` counts all. */
  readonly dropped: readonly DroppedTarget[]
  readonly droppedTotal: number
}

/** Targets that are gone are told to have ended so long after, in intervals: another agent may have taken them over. */
const graceIntervals = 2.1

interface Source {
  /** What it was made of. */
  readonly made: string
  readonly kind: string
  readonly source: TargetSource
  groups: readonly TargetGroup[]
}

interface Leaving {
  readonly loop: ScrapeLoop
  readonly timer: NodeJS.Timeout
}

interface Job {
  job: ScrapeJob
  made: string
  sources: Source[]
  readonly loops: Map<string, ScrapeLoop>
  readonly leaving: Map<string, Leaving>
  dropped: readonly DroppedTarget[]
  droppedTotal: number
}

/** Scrapes the targets of all jobs. What a reload leaves as it is goes on without a gap. */
export class ScrapeManager {
  /** Totals since the start. */
  readonly counts: ScrapeCounts = { scrapes: 0, failures: 0, missed: 0, samples: 0, wholeReads: 0 }
  readonly #options: ManagerOptions
  readonly #jobs = new Map<string, Job>()
  #shard: Shard | undefined
  #stopped = false

  constructor(options: ManagerOptions) {
    this.#options = options
  }

  /** From now on these jobs are scraped, of their targets those that belong to this agent. */
  configure(jobs: readonly ScrapeJob[], shard: Shard | undefined): void {
    if (this.#stopped) return
    this.#shard = shard
    const wanted = new Map(jobs.map(job => [job.name, job]))
    for (const [name, job] of this.#jobs) if (!wanted.has(name)) this.#close(name, job)
    for (const job of jobs) this.#open(job)
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

  /** Ends all. Series are told to have ended. */
  async stop(): Promise<void> {
    this.#stopped = true
    const ends: Promise<void>[] = []
    for (const { sources, loops, leaving } of this.#jobs.values()) {
      for (const { source } of sources) source.stop()
      for (const loop of loops.values()) ends.push(loop.stop(true))
      for (const { loop, timer } of leaving.values()) {
        clearTimeout(timer)
        ends.push(loop.stop(true))
      }
    }
    this.#jobs.clear()
    await Promise.all(ends)
  }

  #open(job: ScrapeJob): void {
    const made = textOf(job)
    let entry = this.#jobs.get(job.name)
    if (entry === undefined) {
      entry = { job, made, sources: [], loops: new Map(), leaving: new Map(), dropped: [], droppedTotal: 0 }
      this.#jobs.set(job.name, entry)
    }
    const before = new Map(entry.sources.map(source => [source.made, source]))
    const isNew = entry.made !== made || entry.sources.length === 0
    entry.job = job
    entry.made = made
    entry.sources = job.sources.map(settings => {
      const text = textOf(settings)
      const known = before.get(text)
      before.delete(text)
      return known ?? this.#source(entry, settings, text)
    })
    for (const { source } of before.values()) source.stop()
    if (isNew || before.size > 0 || this.#shard !== undefined) this.#update(entry)
  }

  #source(entry: Job, settings: ScrapeJob['sources'][number], made: string): Source {
    let opened: Source | undefined
    const source = openSource(settings, {
      log: this.#options.log,
      onGroups: groups => {
        if (opened === undefined || this.#stopped) return
        opened.groups = groups
        if (entry.sources.includes(opened)) this.#update(entry)
      },
    })
    opened = { made, kind: settings.kind, source, groups: [] }
    // What it tells at once is told when the job knows it.
    queueMicrotask(() => source.start())
    return opened
  }

  #update(entry: Job): void {
    const { job, loops, leaving } = entry
    const groups = entry.sources.flatMap(source => source.groups)
    const { targets, dropped, droppedTotal } = targetsOf(job, groups, this.#shard)
    entry.dropped = dropped
    entry.droppedTotal = droppedTotal
    const wanted = new Set<string>()
    for (const target of targets) {
      wanted.add(target.id)
      const back = leaving.get(target.id)
      if (back !== undefined) {
        clearTimeout(back.timer)
        leaving.delete(target.id)
        loops.set(target.id, back.loop)
        back.loop.start()
      }
      const loop = loops.get(target.id)
      if (loop === undefined) this.#start(loops, target)
      else if (loop.target.job !== job && textOf(settingsOf(loop.target)) !== textOf(settingsOf(target)))
        loop.change(target)
    }
    for (const [id, loop] of loops) if (!wanted.has(id)) this.#leave(entry, id, loop)
  }

  #start(loops: Map<string, ScrapeLoop>, target: Target): void {
    const { open, sink } = this.#options
    const loop = new ScrapeLoop({ target, open, sink, counts: this.counts })
    loops.set(target.id, loop)
    loop.start()
  }

  #leave({ loops, leaving }: Pick<Job, 'loops' | 'leaving'>, id: string, loop: ScrapeLoop): void {
    loops.delete(id)
    loop.pause()
    const timer = setTimeout(() => {
      leaving.delete(id)
      void loop.stop(true)
    }, graceIntervals * loop.target.intervalMs)
    timer.unref()
    leaving.set(id, { loop, timer })
  }

  #close(name: string, job: Job): void {
    for (const { source } of job.sources) source.stop()
    for (const { loop, timer } of job.leaving.values()) {
      clearTimeout(timer)
      void loop.stop(true)
    }
    for (const loop of job.loops.values()) void loop.stop(true)
    this.#jobs.delete(name)
  }
}

/** What of a job concerns those who scrape: where its targets come from does not. */
function settingsOf({ job, intervalMs, timeoutMs }: Target) {
  return { ...job, sources: [], relabel: [], intervalMs, timeoutMs }
}

/** Equal for equal settings. It holds secrets, so it goes nowhere. */
function textOf(settings: unknown): string {
  return JSON.stringify(settings, (_key, value: unknown) => {
    if (value instanceof RegExp) return String(value)
    return value instanceof Map ? [...value] : value
  })
}
