import { syncDirectory } from './cursor.ts'
import type { Files, Stored } from './log.ts'

/** A record that may not be on the disk yet, with what is needed to write it again. */
export interface Unsynced {
  readonly record: Stored
  readonly itemsBefore: number
}

export interface WriterOptions {
  readonly files: Files
  readonly directory: string
  readonly path: string
}

/** Copies of records that are kept until they are on the disk; of a disk that hangs the oldest are let go above it. */
const mostUnsyncedBytes = 4 * 1024 * 1024
/** What a copy costs in memory beside its body. */
const copyBytes = 256

/**
 * One segment that is written. It keeps what is not on the disk yet, because after a failed fdatasync(2) nobody can
 * tell what of the file is there: the kernel marks pages as clean that it could not write, and the next call succeeds
 * (fsyncgate, 2018). So a file whose sync failed is never synced or written again.
 */
export class SegmentWriter {
  readonly path: string
  /** Of the file, whole records only. */
  size: number
  /** No more records: it is full, or it cannot be written any longer. */
  sealed = false
  readonly #options: WriterOptions
  readonly #fd: number
  #unsynced: Unsynced[] = []
  #unsyncedBytes = 0
  /** Its records up to this one are on the disk, */
  #durable = 0
  /** and those up to this one are to get there. */
  #last = 0
  /** Whether the directory may not hold the file yet after a loss of power. */
  #isNew = true
  #syncs = 0
  #released = false

  /** Opens a file at its end, after `size` bytes: what may stand behind them is cut off. */
  constructor(options: WriterOptions, size: number) {
    this.#options = options
    this.path = options.path
    this.size = size
    this.#fd = options.files.open(options.path, 'append')
    try {
      if (options.files.size(this.#fd) !== size) options.files.truncate(this.#fd, size)
    } catch (error) {
      options.files.close(this.#fd)
      throw error
    }
  }

  /** Numbers of the records that may not be on the disk yet; none where the first is above the second. */
  get pending(): readonly [from: number, to: number] {
    return [this.#durable + 1, this.#last]
  }

  /** Those of them of which there is no copy. */
  get uncopied(): readonly [from: number, to: number] {
    return [this.#durable + 1, (this.#unsynced[0]?.record.seq ?? this.#last + 1) - 1]
  }

  get unsynced(): readonly Unsynced[] {
    return this.#unsynced
  }

  get unsyncedBytes(): number {
    return this.#unsyncedBytes
  }

  /**
   * Writes all of the parts, or throws the error of the system call with the file as it was before. Where even that
   * cannot be had the writer is sealed, and behind `size` stands half a record that readers skip.
   */
  write(parts: readonly Uint8Array[], length: number): void {
    const { files } = this.#options
    try {
      let rest = parts
      for (let written = 0; written < length; ) {
        const count = files.write(this.#fd, rest)
        if (count === 0) throw new Error(`cannot write ${this.path}: no bytes were written`)
        written += count
        // A disk that fills takes a part; the next call then tells the reason.
        if (written < length) rest = [Buffer.concat(parts).subarray(written)]
      }
    } catch (error) {
      this.takeBack()
      throw error
    }
    this.size += length
  }

  /** Cuts off what stands behind `size`. */
  takeBack(): void {
    try {
      this.#options.files.truncate(this.#fd, this.size)
    } catch {
      this.sealed = true
    }
  }

  /** Keeps a record that was written until it is on the disk. */
  keep(record: Stored, itemsBefore: number): void {
    if (this.#last <= this.#durable) this.#durable = record.seq - 1
    this.#last = record.seq
    this.#unsynced.push({ record, itemsBefore })
    this.#unsyncedBytes += record.body.length + copyBytes
    // By halves: from the front of a long list one at a time would move all the others each time.
    if (this.#unsyncedBytes > mostUnsyncedBytes) this.#letGo(this.#unsynced.length >> 1)
  }

  /** Nobody needs the records any longer that are not on the disk. */
  forget(): void {
    this.#letGo(this.#unsynced.length)
  }

  /** In the thread pool. Rejects with the error of the system call: then the writer must not be used any longer. */
  async sync(): Promise<void> {
    const last = this.#last
    this.#syncs++
    try {
      await this.#options.files.sync(this.#fd)
      if (this.#isNew) await syncDirectory(this.#options.directory, this.#options.files)
      this.#synced(last)
    } finally {
      this.#syncs--
      if (this.#released) this.#closeIdle()
    }
  }

  /** The same at once. Throws the error of the system call. */
  syncNow(): void {
    this.#options.files.syncNow(this.#fd)
    if (this.#isNew) this.#options.files.syncDirectory(this.#options.directory)
    this.#synced(Number.POSITIVE_INFINITY)
  }

  /** Closes the file, after a sync that is under way: its descriptor must not become another file's meanwhile. */
  release(): void {
    this.sealed = true
    if (this.#released) return
    this.#released = true
    this.#closeIdle()
  }

  #synced(last: number): void {
    this.#isNew = false
    this.#durable = Math.max(this.#durable, Math.min(last, this.#last))
    const rest = this.#unsynced.findIndex(({ record }) => record.seq > last)
    this.#letGo(rest < 0 ? this.#unsynced.length : rest)
  }

  #letGo(count: number): void {
    for (const { record } of this.#unsynced.splice(0, count))
      this.#unsyncedBytes -= record.body.length + copyBytes
  }

  #closeIdle(): void {
    if (this.#syncs > 0) return
    try {
      this.#options.files.close(this.#fd)
    } catch {
      // close(2) tells of writes that failed, which the sync before it has told.
    }
  }
}
