// The journal of systemd, at the pace of the pipeline.

import type { Config } from '../config/index.ts'
import { JournalSource, type JournalState } from '../logs/journal.ts'
import type { EmitRecord } from '../logs/line-reader.ts'
import type { LogPositions } from '../logs/log-positions.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'

export interface FollowedJournalOptions {
  readonly settings: Config['agent']['logs']
  readonly positions: LogPositions
  readonly pipeline: Pick<Pipeline, 'secured' | 'fill'>
  readonly warn: (message: string) => void
  readonly emit: EmitRecord
}

const cursorName = 'journal'
const paceMs = 100
const commitMs = 1_000
/** As full as that the queue may be before nothing is read, and as empty as that again. */
const fullAt = 0.8
const emptyAt = 0.6

/** Reads the journal while there is room for its records, and keeps its place once they are secured. */
export class FollowedJournal {
  private readonly options: FollowedJournalOptions
  private readonly source: JournalSource
  private readonly timers: NodeJS.Timeout[]
  private paused = false
  private committing = false

  constructor(options: FollowedJournalOptions) {
    const { settings, positions, warn, emit } = options
    const { parse, start_at } = settings
    this.options = options
    this.source = new JournalSource({
      parse: { json: parse.json, severity: parse.severity, traceContext: parse.trace_context },
      cursor: positions.cursor(cursorName),
      startAt: start_at,
      ownPid: process.pid,
      warn,
      emit,
    })
    this.timers = [setInterval(() => this.pace(), paceMs), setInterval(() => void this.commit(), commitMs)]
    for (const timer of this.timers) timer.unref()
    this.source.start()
  }

  get state(): JournalState {
    return this.source.state
  }

  /** The place is kept by whoever writes the positions next. */
  async stop(): Promise<void> {
    for (const timer of this.timers) clearInterval(timer)
    await this.source.stop()
    const { cursorSeen } = this.source
    // Not waited for: where the receiver is away, that could take long.
    void this.keep(cursorSeen)
  }

  private pace(): void {
    const fill = this.options.pipeline.fill('logs')
    if (!this.paused && fill > fullAt) this.source.pause()
    else if (this.paused && fill < emptyAt) this.source.resume()
    else return
    this.paused = !this.paused
  }

  private async commit(): Promise<void> {
    if (this.committing) return
    this.committing = true
    await this.keep(this.source.cursorSeen)
    this.committing = false
  }

  private async keep(cursor: string): Promise<void> {
    try {
      await this.options.pipeline.secured('logs')
      if (cursor === '') return
      this.options.positions.setCursor(cursorName, cursor)
      await this.options.positions.save()
    } catch {
      // Records may be lost: they are read once more.
    }
  }
}
