import { syncDirectory } from './cursor.ts'
import type { Files, Stored } from './log.ts'

/** A record that may not be on disk yet, with the data to write it again. */
export interface Unsynced {
  readonly record: Stored
  readonly itemsBefore: number
}

export interface WriterOptions {
  readonly files: Files
  readonly directory: string
  readonly path: string
}

/** Maximum bytes of copies of unsynced records; with a hanging disk, the oldest over it are dropped. */
const mostUnsyncedBytes = 4 * 1024 * 1024
/** Memory of a copy without its body, in bytes. */
const copyBytes = 256

/**
 * Writer of one segment. It keeps unsynced records, because after a failed fdatasync(2) the content on
 * disk is unknown: the kernel marks pages as clean that it could not write, and the next call succeeds
 * (fsyncgate, 2018). So a file whose sync failed is never synced or written again.
 */
export class SegmentWriter {
  readonly path: string
  /** Size of the file, whole records only. */
  size: number
  /** Whether it accepts no more records: it is full, or cannot be written. */
  sealed = false
  readonly #options: WriterOptions
  readonly #fd: number
  #unsynced: Unsynced[] = []
  #unsyncedBytes = 0
  /** Its records up to this one are on disk, */
  #durable = 0
  /** and those up to this one must be synced. */
  #last = 0
  /** Whether the file may be missing in the directory after a loss of power. */
  #isNew = true
  #syncs = 0
  #released = false

  /** Opens a file at its end, after `size` bytes; data after them is cut off. */
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

  /** Numbers of the records that may not be on disk yet; none if the first is above the second. */
  get pending(): readonly [from: number, to: number] {
    return [this.#durable + 1, this.#last]
  }

  /** Those of them without a copy. */
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
   * Writes all parts, or throws the error of the system call with the file unchanged. If even that
   * is impossible, the writer is sealed, and after `size` there is an incomplete record that readers skip.
   */
  write(parts: readonly Uint8Array[], length: number): void {
    const { files } = this.#options
    try {
      let rest = parts
      for (let written = 0; written < length; ) {
        const count = files.write(this.#fd, rest)
        if (count === 0) throw new Error(`cannot write ${this.path}: no bytes were written`)
        written += count
        // A nearly full disk accepts a part; the next call then returns the error.
        if (written < length) rest = [Buffer.concat(parts).subarray(written)]
      }
    } catch (error) {
      this.takeBack()
      throw error
    }
    this.size += length
  }

  /** Cuts off the data after `size`. */
  takeBack(): void {
    try {
      this.#options.files.truncate(this.#fd, this.size)
    } catch {
      this.sealed = true
    }
  }

  /** Keeps a copy of a written record until it is on disk. */
  keep(record: Stored, itemsBefore: number): void {
    if (this.#last <= this.#durable) this.#durable = record.seq - 1
    this.#last = record.seq
    this.#unsynced.push({ record, itemsBefore })
    this.#unsyncedBytes += record.body.length + copyBytes
    // By halves: removing one at a time from the front would move all the others each time.
    if (this.#unsyncedBytes > mostUnsyncedBytes) this.#letGo(this.#unsynced.length >> 1)
  }

  /** Drops the copies: the unsynced records are no longer needed. */
  forget(): void {
    this.#letGo(this.#unsynced.length)
  }

  /** Syncs in the thread pool. Rejects with the error of the system call; the writer must then not be used again. */
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

  /** Syncs synchronously. Throws the error of the system call. */
  syncNow(): void {
    this.#options.files.syncNow(this.#fd)
    if (this.#isNew) this.#options.files.syncDirectory(this.#options.directory)
    this.#synced(Number.POSITIVE_INFINITY)
  }

  /** Closes the file, after a sync in progress: its descriptor must not be reused before. */
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
      // close(2) reports failed writes, which the sync before it has reported.
    }
  }
}
