// One scrape: waits for the collectors that wait, for no longer than it may, then lets all of them read in one turn.

import { errorText, type Logger, limitRepeats } from '../../../foundation/lib/logger.ts'
import { within } from '../../../foundation/lib/within.ts'
import { NoData, type Reader } from '../../../foundation/model/collector.ts'
import type { Page, Source } from './page.ts'

/** How a collector's last run ended. `late`: it was not done in time, and its readings are not on the page. */
export type Outcome = 'success' | 'no_data' | 'failed' | 'late'

/** A collector with what became of it. */
export interface Run extends Source {
  readonly reader: Reader
  outcome: Outcome
  /** Why, where it was no success. */
  reason: string
  /** Of the last run, waiting included. */
  seconds: number
  /** Since the start. */
  timeouts: number
}

export interface GathererOptions {
  readonly collectors: readonly { readonly name: string; readonly reader: Reader }[]
  readonly page: Page
  readonly log: Logger
  /** Collectors that may wait for input at once. */
  readonly maxWaiting: number
}

/** A collector that waits for so long makes room for the next one, so that one that hangs does not keep all waiting. */
const patienceMs = 250

/** Clients choose how long a scrape may take, and so how often one is late. */
const sayMs = 60_000

/** A wait that is under way. */
interface Wait {
  readonly signal: AbortSignal
  /** Tells the other scrapes that want its end. */
  readonly others: Set<() => void>
}

export class Gatherer {
  /** In the order of their names. */
  readonly runs: readonly Run[]
  readonly #page: Page
  readonly #log: ReturnType<typeof limitRepeats>
  readonly #turns: Turns
  readonly #waits = new Map<Run, Wait>()
  /** Why the last wait failed. */
  readonly #failures = new Map<Run, unknown>()

  constructor({ collectors, page, log, maxWaiting }: GathererOptions) {
    this.#page = page
    this.#log = limitRepeats(log, sayMs)
    this.#turns = new Turns(maxWaiting)
    this.runs = [...collectors]
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(({ name, reader }) => ({
        name,
        reader,
        round: 0,
        duplicates: 0,
        outcome: 'success',
        reason: '',
        seconds: 0,
        timeouts: 0,
      }))
  }

  /**
   * Reads these collectors. Resolves in a turn in which all of their readings are on the page; whoever wants them takes
   * them before it waits for anything. `withinMs` bounds the time of waiting.
   */
  async gather(runs: readonly Run[], withinMs: number): Promise<void> {
    const deadline = performance.now() + withinMs
    const { late, seconds } = await this.#waitAll(runs, withinMs)
    for (const run of runs) {
      run.seconds = 0
      if (late.has(run)) this.#end(run, 'late', `timed out after ${(withinMs / 1000).toFixed(1)} s`)
      // Reading takes milliseconds: this is for a host on which it does not.
      else if (performance.now() > deadline + withinMs) this.#end(run, 'late', 'no time left in this scrape')
      else this.#collect(run)
      run.seconds += seconds.get(run) ?? 0
    }
  }

  close(): void {
    for (const { reader } of this.runs) reader.close?.()
  }

  /** Waits for all that wait, no longer than it may. Answers which are late, and how long each was waited for. */
  async #waitAll(runs: readonly Run[], withinMs: number): Promise<Waited> {
    const late = new Set(runs.filter(({ reader }) => reader.wait !== undefined))
    const seconds = new Map<Run, number>()
    if (late.size === 0) return { late, seconds }
    const started = performance.now()
    const controller = new AbortController()
    await within(
      withinMs,
      Promise.all(
        [...late].map(async run => {
          await this.#wait(run, controller.signal)
          if (controller.signal.aborted) return
          late.delete(run)
          seconds.set(run, (performance.now() - started) / 1000)
        }),
      ),
    )
    for (const run of late) seconds.set(run, (performance.now() - started) / 1000)
    if (late.size > 0) controller.abort()
    return { late, seconds }
  }

  /** Waits for a collector, together with whoever does already. Never rejects. */
  async #wait(run: Run, signal: AbortSignal): Promise<void> {
    for (;;) {
      const running = this.#waits.get(run)
      if (running === undefined) break
      await endOf(running, signal)
      // What another scrape gave up is asked anew.
      if (!running.signal.aborted || signal.aborted) return
    }
    const wait: Wait = { signal, others: new Set() }
    this.#waits.set(run, wait)
    this.#failures.delete(run)
    try {
      await this.#turns.take(() => run.reader.wait!(signal))
    } catch (error) {
      this.#failures.set(run, error)
    }
    this.#waits.delete(run)
    for (const go of wait.others) go()
  }

  #collect(run: Run): void {
    const started = performance.now()
    const readings = this.#page.begin(run)
    try {
      if (this.#failures.has(run)) throw this.#failures.get(run)
      run.reader.collect(readings)
      this.#end(run, 'success', '')
    } catch (error) {
      this.#end(run, error instanceof NoData ? 'no_data' : 'failed', errorText(error))
    }
    run.seconds = (performance.now() - started) / 1000
  }

  #end(run: Run, outcome: Outcome, reason: string): void {
    // What it read before is not shown again.
    if (outcome === 'late') {
      this.#page.begin(run)
      run.timeouts++
    }
    const isNew = run.outcome !== outcome || run.reason !== reason
    run.outcome = outcome
    run.reason = reason
    if (!isNew || outcome === 'success') return
    const key = `${outcome} ${run.name}`
    const fields = { collector: run.name, reason }
    if (outcome === 'no_data') this.#log('debug', key, 'collector has no data', fields)
    else this.#log('warn', key, 'collector failed', fields)
  }
}

interface Waited {
  readonly late: ReadonlySet<Run>
  readonly seconds: ReadonlyMap<Run, number>
}

/** Resolves when the wait has ended, or on the signal: one that never ends keeps nothing of those that gave it up. */
function endOf({ others }: Wait, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    others.add(resolve)
    signal.addEventListener('abort', () => {
      others.delete(resolve)
      resolve()
    })
  })
}

/** Lets a number of waits begin at once; one that takes long no longer counts. */
class Turns {
  #free: number
  readonly #next: (() => void)[] = []

  constructor(most: number) {
    this.#free = most
  }

  async take(wait: () => Promise<void>): Promise<void> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>(resolve => this.#next.push(resolve))
    let held = true
    const release = () => {
      if (!held) return
      held = false
      const next = this.#next.shift()
      if (next) next()
      else this.#free++
    }
    const timer = setTimeout(release, patienceMs)
    try {
      await wait()
    } finally {
      clearTimeout(timer)
      release()
    }
  }
}
