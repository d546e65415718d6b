import { type Cursor, encodeCursor, writeCursor } from './cursor.ts'
import type { Files } from './log.ts'

export interface CursorCommitsOptions {
  readonly directory: string
  readonly files: Files
  /** Current cursor of the log. */
  readonly cursor: () => Cursor
  /** Called when this cursor is on disk. */
  readonly committed: (cursor: Cursor) => void
  /** Called after a failed write: the cursor on disk is still the previous one. */
  readonly failed: (error: Error) => void
}

/** The cursor is written after this many settled records, or this time after the first of them, in milliseconds. */
const mostSettles = 1000
const withinMs = 100
const afterFailureMs = 2000

/** Writes the cursor, for many settled records at a time. At most one write is in progress. */
export class CursorCommits {
  /** Size of the cursor and the previous one, in bytes. */
  bytes = 0
  readonly #options: CursorCommitsOptions
  #settles = 0
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #hasFailed = false
  #stopped = false

  constructor(options: CursorCommitsOptions) {
    this.#options = options
  }

  /** Counts a settled record. */
  settled(): void {
    this.#settles++
    if (this.#settles >= mostSettles && !this.#hasFailed) this.#start()
    else this.#later()
  }

  /** Resolves when all records settled before are on disk. Rejects with the error of the system call. */
  async flush(): Promise<void> {
    while (this.#running) await this.#running.catch(() => {}) // the caller that started it handles the error
    if (this.#settles === 0) return
    this.#running = this.#commit()
    try {
      await this.#running
    } finally {
      this.#running = undefined
      if (this.#settles > 0) this.#later()
    }
  }

  /** Stops automatic writes. */
  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #later(): void {
    if (this.#timer || this.#running || this.#stopped) return
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined
        this.#start()
      },
      this.#hasFailed ? afterFailureMs : withinMs,
    )
    this.#timer.unref()
  }

  #start(): void {
    if (this.#running || this.#stopped) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.flush().catch(() => {}) // `failed` has reported it
  }

  async #commit(): Promise<void> {
    const { directory, files, cursor, committed, failed } = this.#options
    const settles = this.#settles
    const now = cursor()
    const bytes = encodeCursor(now)
    try {
      await writeCursor(directory, files, bytes)
    } catch (error) {
      this.#hasFailed = true
      failed(error as Error)
      throw error
    }
    this.#hasFailed = false
    this.#settles -= settles
    this.bytes = 2 * bytes.length
    committed(now)
  }
}
