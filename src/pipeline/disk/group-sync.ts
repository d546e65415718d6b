import type { SegmentWriter } from './segment-writer.ts'
import type { SettledRanges } from './settled-ranges.ts'

export interface GroupSyncOptions {
  /** How long a record may wait for the disk, in milliseconds. */
  readonly fsyncMs: () => number
  /** Whether nothing that waits for the disk is needed any longer. */
  readonly idle: () => boolean
  /** A file could not be synced: its writer is out of the group and must not be used again. */
  readonly failed: (writer: SegmentWriter, error: Error) => void
  /** More is on the disk than before. */
  readonly synced: () => void
}

/** Bytes that wait for the disk before it is asked at once. */
const groupBytes = 1024 * 1024
/** After a failure the disk is asked less often, in milliseconds. */
const afterFailureMs = 2000
/** Full segments that wait for a slow disk with their files open; for one more the caller waits, */
const mostWaiting = 4
/** but not for a disk that hangs: one that has been forcing a file out for so long, in milliseconds. */
const hangingMs = 1000

/** Forces segments to the disk, many records at a time. One sync is under way at most. */
export class GroupSync {
  readonly #options: GroupSyncOptions
  readonly #waiting = new Set<SegmentWriter>()
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  /** When the sync under way began, by `performance.now()`. */
  #syncingSince = 0
  /** Records of files that were let go before they were known to be on the disk. */
  #unknownFrom = Number.POSITIVE_INFINITY
  #unknownTo = 0
  #stopped = false

  constructor(options: GroupSyncOptions) {
    this.#options = options
  }

  /** The least number of a record that is not settled and may not be on the disk; infinite: there is none. */
  oldestUnsynced(settled: SettledRanges): number {
    let oldest = settled.first(this.#unknownFrom, this.#unknownTo)
    if (oldest > this.#unknownTo) this.#unknownFrom = Number.POSITIVE_INFINITY
    for (const { pending } of this.#waiting) oldest = Math.min(oldest, settled.first(...pending))
    return oldest
  }

  /** A record was written: it is on the disk within `fsyncMs`, as far as the disk can. */
  wrote(writer: SegmentWriter): void {
    if (!this.#waiting.has(writer)) this.#makeRoom()
    this.#waiting.add(writer)
    if (writer.unsyncedBytes >= groupBytes) this.#start()
    else this.#later(this.#options.fsyncMs())
  }

  /** A writer is full or gone. Its file is closed when what is in it is on the disk. */
  seal(writer: SegmentWriter): void {
    writer.sealed = true
    if (!this.#waiting.has(writer)) writer.release()
  }

  /** A writer whose file is not needed any longer. */
  drop(writer: SegmentWriter): void {
    this.#waiting.delete(writer)
    this.#letGo(writer)
  }

  /** Resolves when all that was written before is on the disk. Rejects with the first error of a system call. */
  async flush(): Promise<void> {
    while (this.#running) await this.#running.catch(() => {}) // whoever started it hears of it
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

  /** No sync starts by itself any longer. */
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
    this.flush().catch(() => {}) // `failed` has told it
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
    // A writer that was dropped meanwhile is nobody's concern any longer.
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
    // The kernel still writes the file, at its own time.
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
