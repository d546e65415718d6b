import type { SegmentWriter } from './segment-writer.ts'
import type { SettledRanges } from './settled-ranges.ts'

export interface GroupSyncOptions {
  /** Maximum time until a record is synced, in milliseconds. */
  readonly fsyncMs: () => number
  /** Whether all records waiting for the disk are no longer needed. */
  readonly idle: () => boolean
  /** Called after a failed sync: the writer has left the group and must not be used again. */
  readonly failed: (writer: SegmentWriter, error: Error) => void
  /** Called when more data is synced. */
  readonly synced: () => void
}

/** Unsynced bytes that trigger an immediate sync. */
const groupBytes = 1024 * 1024
/** Minimum wait after a failed sync, in milliseconds. */
const afterFailureMs = 2000
/** Maximum full segments that wait for a slow disk with open files; for one more the caller waits, */
const mostWaiting = 4
/** but not for a hanging disk: one with a sync in progress for so long, in milliseconds. */
const hangingMs = 1000

/** Syncs segments, many records at a time. At most one sync is in progress. */
export class GroupSync {
  readonly #options: GroupSyncOptions
  readonly #waiting = new Set<SegmentWriter>()
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  /** Start of the current sync, by `performance.now()`. */
  #syncingSince = 0
  /** First record of files that were closed before a successful sync. */
  #unknownFrom = Number.POSITIVE_INFINITY
  #unknownTo = 0
  #stopped = false

  constructor(options: GroupSyncOptions) {
    this.#options = options
  }

  /** Lowest number of an unsettled record that may not be on disk; infinite for none. */
  oldestUnsynced(settled: SettledRanges): number {
    let oldest = settled.first(this.#unknownFrom, this.#unknownTo)
    if (oldest > this.#unknownTo) this.#unknownFrom = Number.POSITIVE_INFINITY
    for (const { pending } of this.#waiting) oldest = Math.min(oldest, settled.first(...pending))
    return oldest
  }

  /** Adds a written record, which is synced within `fsyncMs` if the disk is fast enough. */
  wrote(writer: SegmentWriter): void {
    if (!this.#waiting.has(writer)) this.#makeRoom()
    this.#waiting.add(writer)
    if (writer.unsyncedBytes >= groupBytes) this.#start()
    else this.#later(this.#options.fsyncMs())
  }

  /** Seals a full writer. Its file is closed once its content is synced. */
  seal(writer: SegmentWriter): void {
    writer.sealed = true
    if (!this.#waiting.has(writer)) writer.release()
  }

  /** Drops a writer whose file is no longer needed. */
  drop(writer: SegmentWriter): void {
    this.#waiting.delete(writer)
    this.#letGo(writer)
  }

  /** Resolves when all data written before is synced. Rejects with the first error of a system call. */
  async flush(): Promise<void> {
    while (this.#running) await this.#running.catch(() => {}) // the caller that started it handles the error
    this.#running = this.#syncAll()
    let delayMs = this.#options.fsyncMs()
    try {
      await this.#running
    } catch (error) {
      delayMs = afterFailureMs
      throw error
    } finally {
      this.#running = undefined
      this.#options.synced()
      if (this.#waiting.size > 0) this.#later(delayMs)
    }
  }

  /** Stops automatic syncs. */
  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** Closes all files. */
  end(): void {
    for (const writer of this.#waiting) {
      writer.forget()
      this.#letGo(writer)
    }
    this.#waiting.clear()
  }

  #later(delayMs: number): void {
    if (this.#timer || this.#stopped) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#start()
    }, delayMs)
    this.#timer.unref()
  }

  #start(): void {
    if (this.#running || this.#stopped) return
    if (this.#options.idle()) {
      for (const writer of this.#waiting) {
        writer.forget()
        this.#done(writer)
      }
      return
    }
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.flush().catch(() => {}) // `failed` has reported it
  }

  async #syncAll(): Promise<void> {
    let failure: Error | undefined
    for (const writer of [...this.#waiting]) {
      if (!this.#waiting.has(writer)) continue
      this.#syncingSince = performance.now()
      try {
        await writer.sync()
        if (writer.unsynced.length === 0) this.#done(writer)
      } catch (error) {
        failure ??= error as Error
        this.#fail(writer, error as Error)
      }
    }
    if (failure) throw failure
  }

  #done(writer: SegmentWriter): void {
    this.#waiting.delete(writer)
    if (writer.sealed) writer.release()
  }

  #fail(writer: SegmentWriter, error: Error): void {
    // The writer was dropped since.
    if (!this.#waiting.delete(writer)) return
    this.#options.failed(writer, error)
    this.#letGo(writer)
  }

  #letGo(writer: SegmentWriter): void {
    const [from, to] = writer.uncopied
    if (from <= to) {
      this.#unknownFrom = Math.min(this.#unknownFrom, from)
      this.#unknownTo = Math.max(this.#unknownTo, to)
    }
    writer.release()
  }

  #makeRoom(): void {
    if (this.#waiting.size < mostWaiting) return
    const [oldest] = this.#waiting
    if (!oldest) return
    // The kernel still writes the file eventually.
    if (this.#running && performance.now() - this.#syncingSince > hangingMs) {
      oldest.forget()
      this.drop(oldest)
      return
    }
    try {
      oldest.syncNow()
      this.#done(oldest)
    } catch (error) {
      this.#fail(oldest, error as Error)
    }
  }
}
