import { join } from 'node:path'
import { within } from '../../foundation/lib/within.ts'
import type { Cursor } from './cursor.ts'
import { CursorCommits } from './cursor-commits.ts'
import { DeadLetters } from './dead-letters.ts'
import { GroupSync } from './group-sync.ts'
import type { Damage, Files, RecordLog, Stored } from './log.ts'
import type { LogBooks, Segment } from './log-books.ts'
import { LogReader } from './log-reader.ts'
import {
  encodeRecordHead,
  encodeSegmentHead,
  mostBodyBytes,
  mostSeq,
  recordHeadBytes,
  segmentHeadBytes,
  segmentName,
} from './record-format.ts'
import { recoverLog } from './recover-log.ts'
import { SegmentWriter, type Unsynced } from './segment-writer.ts'

export interface SegmentLogOptions {
  readonly directory: string
  readonly files: Files
  /** Maximum time until a record is synced, in milliseconds; 0: every append waits for the sync. */
  readonly fsyncMs: () => number
  /** Clock, in milliseconds since the Unix epoch. */
  readonly nowMs?: () => number
  /** Number of the signal, which never changes. */
  readonly kind: number
  /** Limit for the dead letters, in bytes; default 16 MiB. */
  readonly maxDeadBytes?: number
  /** Size at which a segment is full, in bytes; default 8 MiB. */
  readonly segmentBytes?: number
  /** Maximum wait for the disk at shutdown, in milliseconds; default 1000. */
  readonly closeMs?: number | undefined
  /**
   * Called after a failure without a waiting caller: a sync, a cursor, a segment that is left unchanged. Repeated as
   * long as it fails, at most every 2 s.
   */
  readonly fault: (what: string, error: Error) => void
  /** Called when more data is synced. */
  readonly synced?: (() => void) | undefined
}

const defaultSegmentBytes = 8 * 1024 * 1024
const defaultDeadBytes = 16 * 1024 * 1024
/** Default of `closeMs`: data already written is in the kernel, and survives the process. */
const defaultCloseMs = 1000
const noReason = Buffer.alloc(0)
const noSpace: readonly unknown[] = ['ENOSPC', 'EDQUOT']

/**
 * Opens the log in a directory, which is created if missing. Throws the error of the system call if the
 * directory cannot be used; its content never makes this fail.
 */
export function openSegmentLog(options: SegmentLogOptions): RecordLog {
  return new SegmentLog(options)
}

/** Log of records in segment files: see record-format.ts for the format, cursor.ts for the settled records. */
class SegmentLog implements RecordLog {
  readonly #options: SegmentLogOptions
  readonly #files: Files
  readonly #segmentBytes: number
  readonly #nowMs: () => number
  readonly #books: LogBooks
  readonly #dead: DeadLetters
  readonly #sync: GroupSync
  readonly #commits: CursorCommits
  readonly #head = Buffer.alloc(recordHeadBytes)
  readonly #reader: LogReader
  /** Writer of the last segment, if it may grow. */
  #writer: SegmentWriter | undefined
  /** Records of files that could not be synced, until they are in another file. */
  readonly #homeless: (readonly Unsynced[])[] = []
  #appendedItems = 0
  #isClosed = false
  /** Whether it is closed for good: another process may have the files now. */
  #isAbandoned = false

  constructor(options: SegmentLogOptions) {
    const { directory, files, kind } = options
    this.#options = options
    this.#files = files
    this.#segmentBytes = options.segmentBytes ?? defaultSegmentBytes
    this.#nowMs = options.nowMs ?? Date.now
    const { books, isTailSound } = recoverLog(options)
    this.#books = books
    const maxBytes = options.maxDeadBytes ?? defaultDeadBytes
    this.#reader = new LogReader({ books, files, kind, gone: segment => this.#loseFile(segment) })
    this.#dead = new DeadLetters({ directory, files, kind, maxBytes, nowMs: this.#nowMs })
    this.#sync = new GroupSync({
      fsyncMs: options.fsyncMs,
      idle: () => books.records === 0,
      failed: (writer, error) => this.#syncFailed(writer, error),
      synced: options.synced ?? (() => {}),
    })
    this.#commits = new CursorCommits({
      directory,
      files,
      cursor: () => this.#cursor(),
      isAwaited: () =>
        books.segments.some((_, index) => this.#isClosedSegment(index) && books.isSettled(index)),
      committed: cursor => this.#isAbandoned || this.#removeSettled(cursor),
      failed: error => this.#isAbandoned || this.#commitFailed(error),
    })
    if (isTailSound) this.#reopenTail()
    books.lost = () => this.#commits.settled()
    // Findings about the numbers are also written to the cursor.
    if (books.segments.length > 0) this.#commits.settled()
  }

  get items(): number {
    return this.#books.items
  }

  get records(): number {
    return this.#books.records
  }

  get bytes(): number {
    let bytes = this.#dead.bytes + this.#commits.bytes
    for (const segment of this.#books.segments) bytes += segment.size
    for (const reserved of this.#books.reserved) bytes += reserved.bytes
    return bytes
  }

  get lastSeq(): number {
    return this.#books.lastSeq
  }

  get oldestSeq(): number {
    return this.#books.oldestSeq
  }

  get oldestUnsynced(): number {
    const { settled } = this.#books
    let oldest = this.#sync.oldestUnsynced(settled)
    for (const group of this.#homeless)
      oldest = Math.min(oldest, settled.first(group[0]?.record.seq ?? 0, group.at(-1)?.record.seq ?? 0))
    return oldest
  }

  get oldestTimeMs(): number {
    return this.#reader.oldestTimeMs
  }

  get appendedItems(): number {
    return this.#appendedItems
  }

  get damage(): Damage {
    return this.#books.damage
  }

  takeDamagedItems(): number {
    return this.#books.takeDamagedItems()
  }

  append(record: Stored): void {
    const { directory } = this.#options
    const books = this.#books
    if (this.#isClosed) throw new Error(`cannot append to the log in ${directory}: it is closed`)
    if (record.seq <= books.lastSeq || record.seq > mostSeq)
      throw new RangeError(
        `cannot append record ${record.seq} to the log in ${directory}: the last record is ${books.lastSeq}`,
      )
    if (record.body.length > mostBodyBytes)
      throw new RangeError(
        `cannot append ${record.body.length} bytes to the log in ${directory}: the limit is 64 MiB`,
      )
    this.#house()
    encodeRecordHead(this.#head, record, this.#options.kind, books.total, noReason, record.body)
    const bytes = recordHeadBytes + record.body.length
    const writer = this.#openWriter(bytes)
    if (writer) this.#extend(writer, record, bytes)
    else this.#begin(record, bytes)
    // Skipped numbers are also written to the cursor, so that no restart waits for their records.
    if (record.seq > books.lastSeq + 1) this.#commits.settled()
    books.settled.add(books.lastSeq + 1, record.seq - 1)
    books.lastSeq = record.seq
    books.total += record.items
    books.items += record.items
    this.#appendedItems += record.items
    this.#reader.noteTime(record.seq, record.timeMs)
  }

  readFrom(seq: number): Stored | undefined {
    return this.#reader.readFrom(seq)
  }

  has(seq: number): boolean {
    return seq <= this.#books.lastSeq && !this.#books.settled.has(seq)
  }

  settle(seq: number, items: number): void {
    if (this.#books.settle(seq, items)) this.#commits.settled()
  }

  dropOldest(): { readonly items: number; readonly lastSeq: number } | undefined {
    const books = this.#books
    const oldest = books.segments[0]
    if (!oldest || !this.#remove(oldest)) return undefined
    const lastSeq = books.endOf(0)
    if (books.segments.length === 1) this.#abandonWriter()
    const items = books.drop(0)
    this.#commits.settled()
    return { items, lastSeq }
  }

  bury(record: Stored, why: string): void {
    try {
      this.#dead.bury(record, why)
    } catch (error) {
      this.#options.fault('cannot store a dead letter', error as Error)
    }
  }

  async sync(): Promise<void> {
    this.#house()
    const ends = await Promise.allSettled([this.#sync.flush(), this.#commits.flush()])
    for (const end of ends) if (end.status === 'rejected') throw end.reason
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#sync.stop()
    this.#commits.stop()
    try {
      await within(this.#options.closeMs ?? defaultCloseMs, this.sync())
    } catch {
      // `fault` has reported it.
    }
    this.#isAbandoned = true
    this.#abandonWriter()
    this.#sync.end()
    this.#reader.rest()
  }

  /** Writer of the last segment, if it has room for the record. */
  #openWriter(bytes: number): SegmentWriter | undefined {
    const writer = this.#writer
    if (!writer) return undefined
    const hasRoom = writer.size + bytes <= this.#segmentBytes || writer.size === segmentHeadBytes
    if (hasRoom && !writer.sealed) return writer
    this.#abandonWriter()
    return undefined
  }

  /** Stops writing to the last segment. */
  #abandonWriter(): void {
    if (this.#writer) this.#sync.seal(this.#writer)
    this.#writer = undefined
  }

  #reopenTail(): void {
    const last = this.#books.segments.at(-1)
    if (!last) return
    try {
      const { directory } = this.#options
      this.#writer = new SegmentWriter({ files: this.#files, directory, path: last.path }, last.size)
      this.#sync.wrote(this.#writer) // a killed process may have left it unsynced in the kernel
    } catch (error) {
      this.#options.fault('cannot continue a segment; the next record starts a new one', error as Error)
    }
  }

  #extend(writer: SegmentWriter, record: Stored, bytes: number): void {
    writer.write([this.#head, record.body], bytes)
    this.#makeDurable(writer, record, bytes)
    const segment = this.#books.segments.at(-1)
    if (!segment) return
    segment.size = writer.size
    segment.items += record.items
  }

  #begin(record: Stored, bytes: number): void {
    const { directory, kind } = this.#options
    const { seq: first, items } = record
    const path = join(directory, segmentName(first))
    const createdMs = this.#nowMs()
    const itemsBefore = this.#books.total
    const head = encodeSegmentHead({ createdMs, firstSeq: first, itemsBefore }, kind)
    const writer = this.#createWriter(path)
    try {
      writer.write([head, this.#head, record.body], head.length + bytes)
      this.#makeDurable(writer, record, bytes)
    } catch (error) {
      this.#sync.drop(writer)
      this.#removeFile(path)
      throw error
    }
    this.#books.insert({ first, path, createdMs, itemsBefore, size: writer.size, items })
    this.#writer = writer
  }

  /** Creates the directory again, once, if it was removed. */
  #createWriter(path: string): SegmentWriter {
    const { directory, files } = this.#options
    try {
      return new SegmentWriter({ files, directory, path }, 0)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      files.makeDirectory(directory)
      return new SegmentWriter({ files, directory, path }, 0)
    }
  }

  /** Schedules the sync of a written record, or syncs now; removes the record if that fails. */
  #makeDurable(writer: SegmentWriter, record: Stored, bytes: number): void {
    if (this.#options.fsyncMs() > 0) {
      writer.keep(record, this.#books.total)
      this.#sync.wrote(writer)
      return
    }
    try {
      writer.syncNow()
    } catch (error) {
      writer.size -= bytes
      writer.takeBack()
      this.#sync.drop(writer)
      this.#syncFailed(writer, error as Error)
      throw error
    }
  }

  #syncFailed(writer: SegmentWriter, error: Error): void {
    if (writer === this.#writer) this.#writer = undefined
    this.#options.fault('cannot sync a segment; its last records are written again', error)
    if (writer.unsynced.length > 0) this.#homeless.push([...writer.unsynced])
    try {
      this.#house()
    } catch (failure) {
      this.#options.fault('cannot rewrite records that may not be on the disk', failure as Error)
    }
  }

  /**
   * Writes records of failed files again. Throws the error of the system call; the rest is retried at the next append.
   */
  #house(): void {
    for (let group = this.#homeless.shift(); group; group = this.#homeless.shift()) {
      try {
        this.#writeAgain(group)
      } catch (error) {
        this.#homeless.unshift(group)
        throw error
      }
    }
  }

  /** Writes the last records of a segment to a new segment, whose range replaces theirs in the old one. */
  #writeAgain(group: readonly Unsynced[]): void {
    const { directory, kind } = this.#options
    const books = this.#books
    const first = group[0]?.record.seq ?? 0
    const last = group.at(-1)?.record.seq ?? 0
    const old = books.segments[books.indexOf(first)]
    if (!old || books.settled.covers(first, last)) return
    const path = join(directory, segmentName(first))
    const createdMs = this.#nowMs()
    const itemsBefore = group[0]?.itemsBefore ?? 0
    const parts: Uint8Array[] = [encodeSegmentHead({ createdMs, firstSeq: first, itemsBefore }, kind)]
    let items = 0
    for (const { record, itemsBefore } of group) {
      const head = Buffer.alloc(recordHeadBytes)
      encodeRecordHead(head, record, kind, itemsBefore, noReason, record.body)
      parts.push(head, record.body)
      if (!books.settled.has(record.seq)) items += record.items
    }
    // Temporary file first: if nothing of the old segment is on disk, both have the same name.
    const writer = this.#createWriter(`${path}.tmp`)
    try {
      const whole = Buffer.concat(parts)
      writer.write([whole], whole.length)
      this.#files.rename(writer.path, path)
    } catch (error) {
      writer.release()
      this.#removeFile(writer.path)
      throw error
    }
    if (old.first !== first) old.items -= items
    books.insert({ first, path, createdMs, itemsBefore, size: writer.size, items })
    for (const { record, itemsBefore } of group) writer.keep(record, itemsBefore)
    this.#reader.rest()
    this.#sync.wrote(writer)
    this.#sync.seal(writer)
  }

  /** The file was removed. */
  #loseFile(segment: Segment): void {
    const index = this.#books.indexOf(segment.first)
    if (index === this.#books.segments.length - 1) this.#abandonWriter()
    this.#books.lose(segment, segment.first, this.#books.endOf(index), segment.items, 0)
    this.#commits.settled()
  }

  /** Current cursor. A settled last segment that is not small is sealed here, so that its space is freed. */
  #cursor(): Cursor {
    const books = this.#books
    const isLarge = (this.#writer?.size ?? 0) >= this.#segmentBytes / 8
    if (isLarge && books.isSettled(books.segments.length - 1)) this.#abandonWriter()
    return books.cursor()
  }

  #removeSettled(cursor: Cursor): void {
    const books = this.#books
    for (let index = books.segments.length - 1; index >= 0; index--) {
      const segment = books.segments[index]
      if (segment && this.#isClosedSegment(index) && isIn(cursor, segment.first, books.endOf(index)))
        if (this.#remove(segment)) books.retire(index)
    }
  }

  /**
   * On a full disk a settled segment makes room for the cursor. That is safe for the first one: records before the
   * first segment count as settled.
   */
  #commitFailed(error: Error): void {
    const { code } = error as NodeJS.ErrnoException
    const books = this.#books
    if (code === 'ENOENT') this.#abandonWriter() // data written to a file in a removed directory is unreachable
    while (noSpace.includes(code) && this.#isClosedSegment(0) && books.isSettled(0)) {
      const first = books.segments[0]
      if (!first || !this.#remove(first)) break
      books.retire(0)
    }
    this.#options.fault('cannot write the cursor; a restart may send records twice', error)
  }

  #isClosedSegment(index: number): boolean {
    const { length } = this.#books.segments
    return index < length - 1 || (index === length - 1 && !this.#writer)
  }

  /** Removes a file; false if it remains. */
  #remove(segment: Segment): boolean {
    this.#reader.rest(segment)
    try {
      this.#files.remove(segment.path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true
      this.#options.fault('cannot remove a segment', error as Error)
      return false
    }
    return true
  }

  #removeFile(path: string): void {
    try {
      this.#files.remove(path)
    } catch {
      // It is truncated when it is created again.
    }
  }
}

function isIn(cursor: Cursor, from: number, to: number): boolean {
  return to <= cursor.acked || cursor.holes.some(([low, high]) => low <= from && to <= high)
}
