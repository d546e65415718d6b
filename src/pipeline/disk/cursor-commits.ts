import { type Cursor, CursorFiles, encodeCursor } from './cursor.ts'
import type { Files } from './log.ts'

export interface CursorCommitsOptions {
  readonly directory: string
  readonly files: Files
  /** Current cursor of the log. */
  readonly cursor: () => Cursor
  /** Whether files wait for a durable cursor to be removed. */
  readonly isAwaited: () => boolean
  /** Called when this cursor is durable. */
  readonly committed: (cursor: Cursor) => void
  /** Called after a failed write: the cursor on disk is still the previous one. */
  readonly failed: (error: Error) => void
}

/** The cursor is written after this many settled records, or this time after the first of them, in milliseconds; */
const mostSettles = 1000
const withinMs = 100
/** and synced within this time: after a loss of power, what was settled since is sent again. */
const syncedWithinMs = 1000
const afterFailureMs = 2000

/** Writes the cursor, for many settled records at a time. At most one write is in progress. */
export class CursorCommits {
  /** Size of the cursor and the previous one, in bytes. */
  bytes = 0
  readonly #options: CursorCommitsOptions
  readonly #cursors: CursorFiles
  #settles = 0
  #isSynced = true
  #syncedMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #dueMs = 0
  #running: Promise<void> | undefined
  #hasFailed = false
  #stopped = false

  constructor(options: CursorCommitsOptions) {
    this.#options = options
    this.#cursors = new CursorFiles(options.directory, options.files)
  }

  /** Counts a settled record. */
  settled(): void {
    this.#settles++
    if (this.#settles >= mostSettles && !this.#hasFailed) this.#start()
    else this.#later()
  }

  /** Resolves when all records settled before are durable. Rejects with the error of the system call. */
  async flush(): Promise<void> {
    while (this.#running) await this.#running.catch(() => {}) // the caller that started it handles the error
    await this.#run(true)
  }

  /** Stops automatic writes. */
  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  async #run(durably: boolean): Promise<void> {
    if (this.#settles === 0 && this.#isSynced) return
    this.#running = this.#commit(durably)
    try {
      await this.#running
    } finally {
      this.#running = undefined
      if (this.#settles > 0 || !this.#isSynced) this.#later()
    }
  }

  #later(): void {
    if (this.#running || this.#stopped) return
    const now = performance.now()
    const delayMs = this.#settles > 0 ? withinMs : Math.max(0, this.#syncedMs + syncedWithinMs - now)
    const dueMs = now + (this.#hasFailed ? afterFailureMs : delayMs)
    if (this.#timer && this.#dueMs <= dueMs) return
    clearTimeout(this.#timer)
    this.#dueMs = dueMs
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#start()
    }, dueMs - now)
    this.#timer.unref()
  }

  #start(): void {
    if (this.#running || this.#stopped) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#run(false).catch(() => {}) // `failed` has reported it
  }

  async #commit(durably: boolean): Promise<void> {
    const { cursor, isAwaited, committed, failed } = this.#options
    const settles = this.#settles
    const now = cursor()
    const bytes = encodeCursor(now)
    const isDue = settles === 0 || performance.now() - this.#syncedMs >= syncedWithinMs
    try {
      this.#isSynced = await this.#cursors.write(bytes, durably || isDue || isAwaited())
    } catch (error) {
      this.#hasFailed = true
      failed(error as Error)
      throw error
    }
    this.#hasFailed = false
    this.#settles -= settles
    this.bytes = 2 * bytes.length
    if (!this.#isSynced) return
    this.#syncedMs = performance.now()
    committed(now)
  }
}
