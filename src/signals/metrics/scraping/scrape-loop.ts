import { errorText } from '../../../foundation/lib/logger.ts'
import { within } from '../../../foundation/lib/within.ts'
import { FetchError, type Fetched } from './fetch/target-client.ts'
import { PageError } from './page-error.ts'
import type { PageRoom } from './page-room.ts'
import type { SeriesSink } from './series-sink.ts'
import type { Target } from './target.ts'
import { TargetReport } from './target-report.ts'
import { type Taken, TargetSeries } from './target-series.ts'
import { Ticks } from './ticks.ts'

/** Fetches the page of one target. */
export interface PageSource {
  ask(options: { timeoutMs: number; stop: AbortSignal }): Promise<Fetched>
  close(): void
}

/** State of a target. Times are milliseconds since the Unix epoch, 0 for never. */
export interface LoopState {
  readonly health: 'unknown' | 'up' | 'down'
  /** Reason why the last scrape failed; '' after a success. */
  readonly error: string
  /** Type of the fault: `timeout`, `http_status`, `page`, … */
  readonly errorType: string
  /** Warning about a successful scrape, such as skipped lines. */
  readonly warning: string
  readonly lastScrapeMs: number
  readonly durationMs: number
  readonly samples: number
  readonly series: number
  readonly wireBytes: number
  readonly scrapes: number
  readonly failures: number
  /** Ticks skipped because the previous scrape was still running. */
  readonly missed: number
  /** Pages that were parsed in full because their series changed. */
  readonly wholeReads: number
}

/** Totals of all loops, including ended ones. */
export interface ScrapeCounts {
  scrapes: number
  failures: number
  missed: number
  samples: number
  wholeReads: number
}

export interface LoopOptions {
  readonly target: Target
  readonly counts: ScrapeCounts
  readonly open: (target: Target) => PageSource
  readonly sink: SeriesSink
  readonly room?: PageRoom | undefined
}

/** Maximum wait for a running scrape at the end, in milliseconds. */
const endMs = 2_000

/** Scrapes one target at its ticks, one scrape at a time. */
export class ScrapeLoop {
  readonly #options: LoopOptions
  readonly #series: TargetSeries
  readonly #report: TargetReport
  /** Latest target, as discovered. */
  #target: Target
  /** Target as used for scraping: it only changes between scrapes. */
  #used: Target
  #client: PageSource
  #ticks: Ticks
  #timer: NodeJS.Timeout | undefined
  #stop = new AbortController()
  #underWay: Promise<void> = Promise.resolve()
  #busy = false
  /** Whether a change of settings waits for the end of a scrape. */
  #changed = false
  #health: LoopState['health'] = 'unknown'
  #error = ''
  #errorType = ''
  #warning = ''
  #lastMs = 0
  #durationMs = 0
  #taken: Taken | undefined
  #wireBytes = 0
  #scrapes = 0
  #failures = 0
  #missed = 0

  constructor(options: LoopOptions) {
    this.#options = options
    this.#target = options.target
    this.#used = options.target
    this.#client = options.open(options.target)
    this.#series = new TargetSeries(options.sink, options.target, options.room)
    this.#report = new TargetReport(options.sink)
    this.#ticks = new Ticks(options.target.id, options.target.intervalMs)
  }

  get target(): Target {
    return this.#target
  }

  get state(): LoopState {
    const taken = this.#taken
    return {
      health: this.#health,
      error: this.#error,
      errorType: this.#errorType,
      warning: this.#warning,
      lastScrapeMs: this.#lastMs,
      durationMs: this.#durationMs,
      samples: taken?.samples ?? 0,
      series: taken?.kept ?? 0,
      wireBytes: this.#wireBytes,
      scrapes: this.#scrapes,
      failures: this.#failures,
      missed: this.#missed,
      wholeReads: this.#series.wholeReads,
    }
  }

  /** Whether there was a scrape, or one is running: its series must then be marked as ended. */
  get hasBegun(): boolean {
    return this.#scrapes > 0 || this.#busy
  }

  /** Starts, or continues after a pause. */
  start(): void {
    // Nothing is skipped in the first interval, and ticks during a pause are not missed.
    if (performance.now() > this.#ticks.nextMs) this.#ticks.advance()
    this.#schedule()
  }

  /** Starts no further scrapes. */
  pause(): void {
    clearTimeout(this.#timer)
  }

  /** Replaces the target by one with the same scrape settings, but possibly other discovered labels. */
  describe(target: Target): void {
    this.#target = target
  }

  /** Changes the settings after the running scrape. Series continue if the new settings do not change them. */
  change(target: Target): void {
    const before = this.#target
    this.#target = target
    this.#changed = true
    if (!this.#busy) this.#use()
    if (target.intervalMs === before.intervalMs) return
    this.#ticks = new Ticks(target.id, target.intervalMs)
    this.#schedule()
  }

  /** Stops immediately; with `ended`, marks its series as ended. Never rejects. */
  async stop(ended: boolean): Promise<void> {
    clearTimeout(this.#timer)
    this.#stop.abort()
    await within(endMs, this.#underWay)
    this.#client.close()
    if (ended) await this.#end()
    this.#series.close()
  }

  async #end(): Promise<void> {
    const timeUs = Date.now() * 1000
    try {
      this.#report.end(this.#used, this.#series.resource, timeUs)
      await this.#series.end(timeUs)
    } catch (error) {
      this.#failed(error)
    }
  }

  #use(): void {
    this.#changed = false
    this.#used = this.#target
    this.#client.close()
    this.#client = this.#options.open(this.#used)
    this.#series.change(this.#used)
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    if (this.#stop.signal.aborted) return
    this.#timer = setTimeout(() => this.#tick(), Math.max(0, this.#ticks.nextMs - performance.now()))
    this.#timer.unref()
  }

  #tick(): void {
    const tickMs = this.#ticks.nextMs
    // A timer may fire early by a part of a millisecond.
    const passed = this.#ticks.advance(Math.max(tickMs, performance.now()))
    this.#schedule()
    const missed = passed + (this.#busy ? 1 : 0)
    this.#missed += missed
    this.#options.counts.missed += missed
    if (this.#busy) return
    this.#busy = true
    this.#underWay = this.#scrape(this.#ticks.timeOf(tickMs))
      .catch(error => this.#failed(error))
      .finally(() => this.#rest())
  }

  #rest(): void {
    this.#busy = false
    if (this.#changed && !this.#stop.signal.aborted) this.#use()
  }

  /** A bug in svc fails this scrape only. */
  #failed(error: unknown): void {
    this.#failures++
    this.#options.counts.failures++
    this.#setHealth(errorText(error), 'internal')
  }

  async #scrape(timeMs: number): Promise<void> {
    const target = this.#used
    const { timeoutMs } = target
    const { signal: stop } = this.#stop
    const beganMs = performance.now()
    const { counts } = this.#options
    const series = this.#series
    const { wholeReads } = series
    const timeUs = timeMs * 1000
    let taken: Taken | undefined
    let fetched: Fetched | undefined
    try {
      fetched = await this.#client.ask({ timeoutMs, stop })
      taken = await series.take(fetched, timeUs, stop)
      this.#taken = taken
      this.#wireBytes = fetched.wireBytes
      counts.samples += taken.samples
      this.#warning = taken.warning
      this.#setHealth('', '')
    } catch (error) {
      if (stop.aborted) return
      this.#failures++
      counts.failures++
      this.#setHealth(errorText(error), typeOf(error))
      await series.end(timeUs)
    } finally {
      fetched?.release()
      counts.wholeReads += series.wholeReads - wholeReads
    }
    this.#scrapes++
    counts.scrapes++
    this.#lastMs = timeMs
    this.#durationMs = performance.now() - beganMs
    this.#report.send(target, series.resource, timeUs, {
      up: taken === undefined ? 0 : 1,
      durationSeconds: this.#durationMs / 1000,
      samples: taken?.samples ?? 0,
      kept: taken?.kept ?? 0,
      added: taken?.added ?? 0,
    })
  }

  #setHealth(error: string, type: string): void {
    this.#health = error === '' ? 'up' : 'down'
    this.#error = error
    this.#errorType = type
  }
}

function typeOf(error: unknown): string {
  if (error instanceof FetchError) return error.type
  return error instanceof PageError ? 'page' : 'internal'
}
