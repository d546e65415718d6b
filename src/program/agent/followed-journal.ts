// The journal of systemd, read at the pace of the pipeline.

import type { Config } from '../../config/index.ts'
import { within } from '../../foundation/lib/within.ts'
import { JournalSource, type JournalState } from '../../signals/logs/journal.ts'
import type { EmitRecord } from '../../signals/logs/line-reader.ts'
import type { LogPositions } from '../../signals/logs/log-positions.ts'

export interface FollowedJournalOptions {
  readonly settings: Config['agent']['logs']
  readonly positions: LogPositions
  /** As in `LogFollower`. */
  readonly pressure: () => number
  readonly secured: () => Promise<void>
  readonly warn: (message: string) => void
  readonly emit: EmitRecord
  /** Undefined: `journalctl` of the host. */
  readonly program?: string
}

const cursorName = 'journal'
const paceMs = 100
const commitMs = 1_000
/** Time limit of stop(): with an unreachable receiver it could take long. */
const stopMs = 5_000
/** Fill levels of the queue at which reading pauses, and resumes. */
const fullAt = 0.8
const emptyAt = 0.6

/** Reads the journal while there is room for its records, and stores its position once they are secured. */
export class FollowedJournal {
  readonly #options: FollowedJournalOptions
  readonly #source: JournalSource
  readonly #timers: NodeJS.Timeout[]
  #paused = false
  #committing = false

  constructor(options: FollowedJournalOptions) {
    const { settings, positions, warn, emit } = options
    const { parse, start_at } = settings
    this.#options = options
    this.#source = new JournalSource({
      parse: { json: parse.json, severity: parse.severity, traceContext: parse.trace_context },
      cursor: positions.cursor(cursorName),
      startAt: start_at,
      ownPid: process.pid,
      program: options.program,
      warn,
      emit,
    })
    this.#timers = [setInterval(() => this.#pace(), paceMs), setInterval(() => void this.#commit(), commitMs)]
    for (const timer of this.#timers) timer.unref()
    this.#source.start()
  }

  get state(): JournalState {
    return this.#source.state
  }

  /** Stores the position if the records are secured in time. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    await this.#source.stop()
    const { cursorSeen } = this.#source
    await within(stopMs, this.#keep(cursorSeen))
  }

  #pace(): void {
    const fill = this.#options.pressure()
    if (!this.#paused && fill > fullAt) this.#source.pause()
    else if (this.#paused && fill < emptyAt) this.#source.resume()
    else return
    this.#paused = !this.#paused
  }

  async #commit(): Promise<void> {
    if (this.#committing) return
    this.#committing = true
    await this.#keep(this.#source.cursorSeen)
    this.#committing = false
  }

  async #keep(cursor: string): Promise<void> {
    try {
      await this.#options.secured()
      if (cursor === '') return
      this.#options.positions.setCursor(cursorName, cursor)
      await this.#options.positions.save()
    } catch {
      // Records are read again rather than lost.
    }
  }
}
