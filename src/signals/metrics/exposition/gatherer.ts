// One scrape: waits for collectors with asynchronous input, for a limited time, then reads all of them in one turn of
// the event loop.

import { errorText, type Logger, limitRepeats } from '../../../foundation/lib/logger.ts'
import { within } from '../../../foundation/lib/within.ts'
import { NoData, type Reader } from '../../../foundation/model/collector.ts'
import type { Page, Source } from './page.ts'

/** Result of a collector's last run. `late`: it was not ready in time, and its readings are not on the page. */
export type Outcome = 'success' | 'no_data' | 'failed' | 'late'

/** A collector with the result of its last run. */
export interface Run extends Source {
  readonly reader: Reader
  outcome: Outcome
  /** Reason, unless it succeeded. */
  reason: string
  /** Duration of the last run, waiting included. */
  seconds: number
  /** Since the start. */
  timeouts: number
}

export interface GathererOptions {
  readonly collectors: readonly { readonly name: string; readonly reader: Reader }[]
  readonly page: Page
  readonly log: Logger
  /** Maximum collectors that wait at the same time. */
  readonly maxWaiting: number
}

/**
 * Time after which a waiting collector makes room for the next one, in milliseconds, so that a hanging one does not
 * block the others.
 */
const patienceMs = 250

/**
 * Minimum interval of a repeated log message: clients choose the time limit of a scrape, and so how often collectors
 * are late.
 */
const sayMs = 60_000

/** A wait in progress. */
interface Wait {
  readonly signal: AbortSignal
  /** Callbacks of other scrapes that wait for its end. */
  readonly others: Set<() => void>
}

export class Gatherer {
  /** Ordered by name. */
  readonly runs: readonly Run[]
  readonly #page: Page
  readonly #log: ReturnType<typeof limitRepeats>
  readonly #turns: Turns
  readonly #waits = new Map<Run, Wait>()
  /** Error of the last wait. */
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
   * Reads these collectors. Resolves in a turn in which all of their readings are on the page; callers must take them
   * before they await anything. `withinMs` limits the waiting.
   */
  async gather(runs: readonly Run[], withinMs: number): Promise<void> {
    const deadline = performance.now() + withinMs
    const { late, seconds } = await this.#waitAll(runs, withinMs)
    for (const run of runs) {
      run.seconds = 0
      if (late.has(run)) this.#end(run, 'late', `timed out after ${(withinMs / 1000).toFixed(1)} s`)
      // Reading takes milliseconds; this is for a host on which it takes longer.
      else if (performance.now() > deadline + withinMs) this.#end(run, 'late', 'no time left in this scrape')
      else this.#collect(run)
      run.seconds += seconds.get(run) ?? 0
    }
  }

  close(): void {
    for (const { reader } of this.runs) reader.close?.()
  }

  /**
   * Waits for all collectors that need it, within the limit. Returns the late ones, and the time that each was waited
   * for.
   */
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

  /** Waits for a collector; concurrent calls share one wait. Never rejects. */
  async #wait(run: Run, signal: AbortSignal): Promise<void> {
    for (;;) {
      const running = this.#waits.get(run)
      if (running === undefined) break
      await endOf(running, signal)
      // A wait that another scrape has given up is started again.
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
    // Removes its previous readings from the page.
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

/** Resolves when the wait has ended, or at the signal: a hanging wait retains nothing of the callers that gave up. */
function endOf({ others }: Wait, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    others.add(resolve)
    signal.addEventListener('abort', () => {
      others.delete(resolve)
      resolve()
    })
  })
}

/** Limits the number of concurrent waits; one that takes long no longer counts. */
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
