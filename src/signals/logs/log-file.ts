import { createHash } from 'node:crypto'
import { fstatSync, readSync, type Stats } from 'node:fs'
import {
  closeForeign,
  type ForeignFile,
  openForeign,
  RefusedFile,
} from '../../foundation/lib/foreign-file.ts'
import type { LineReader } from './line-reader.ts'
import type { Position } from './log-positions.ts'

/** Number of first bytes that identify a file together with its inode number, which may be reused. */
const maxHeadBytes = 256
/** Bytes of one read if lines are short. */
const chunkBytes = 64 * 1024
/** Maximum lines passed on at once: a chunk of short lines would block other work for long. */
const linesAtOnce = 512
const newline = 0x0a

/** Buffer shared by all files: one is read at a time. */
export interface LineBuffer {
  readonly bytes: Buffer
  readonly head: Buffer
  /** Maximum line length; longer lines come in pieces. */
  readonly maxLineBytes: number
  /** Lines passed on so far, of all files. */
  lines: number
  readBytes: number
  /** `nextData` of the addon; without it holes are read as zeros. */
  readonly nextData: NextData | undefined
}

/** Offset of the next data at or after an offset; -1 for none. Throws if the file system does not report it. */
export type NextData = (fd: number, offset: number) => number

export function lineBuffer(maxLineBytes: number, nextData?: NextData): LineBuffer {
  return {
    bytes: Buffer.allocUnsafe(Math.max(chunkBytes, maxLineBytes + 1)),
    head: Buffer.allocUnsafe(maxHeadBytes),
    maxLineBytes,
    lines: 0,
    readBytes: 0,
    nextData,
  }
}

/** Digest of the first bytes of a file. */
export interface Fingerprint {
  readonly digest: string
  readonly length: number
}

/** Saved position of a file, and since when (milliseconds since the Unix epoch). */
export interface SavedPosition {
  readonly offset: number
  readonly fingerprintLength: number
  readonly atMs: number
}

/** Result of a read: data; no new data; a different file; an error. */
export type ReadOutcome = 'read' | 'end' | 'changed' | 'failed'

const none: Fingerprint = { digest: '', length: 0 }

/** One file, whatever its current name, and its read position. Keeps no line data. */
export class LogFile {
  readonly device: number
  readonly inode: number
  /** Path to open; updated after a rename. */
  name: string
  /** Offset of the first line that was not passed on. */
  offset: number
  /** User ID of the owner. */
  user = 0
  /** Last known size. */
  size = 0
  /** Milliseconds since the Unix epoch. */
  modifiedMs = 0
  /** Time of the last data read, in milliseconds of `performance.now`. */
  grownMs = performance.now()
  /** Last time that the path of its log led to it, in milliseconds since the Unix epoch. */
  currentMs = 0
  /** Whether it is no longer at its path. */
  isRotated = false
  /** Whether it changed without growing. */
  isSuspect = false
  /** Reason why it is not opened although it could be; undefined otherwise. */
  refusal: RefusedFile | undefined
  reader: LineReader | undefined
  /** Position last prepared for saving. */
  kept: SavedPosition | undefined
  #fd = -1
  /** There is no line end between `offset` and here. */
  #scanned: number
  #head: Buffer = Buffer.alloc(0)
  #fingerprint_: Fingerprint | undefined = none

  constructor(name: string, stats: Stats) {
    this.name = name
    this.device = stats.dev
    this.inode = stats.ino
    this.offset = 0
    this.#scanned = 0
    this.seen(stats)
  }

  get isOpen(): boolean {
    return this.#fd >= 0
  }

  /** Whether the data read ends within a line. */
  get hasPart(): boolean {
    return this.#scanned > this.offset
  }

  /** Offset at which a restart must continue. */
  get position(): number {
    const held = this.reader?.heldFrom ?? -1
    return held >= 0 ? held : this.offset
  }

  /** Offset up to which it was read. */
  get readTo(): number {
    return this.#scanned
  }

  get behindBytes(): number {
    return Math.max(0, this.size - this.offset)
  }

  /** Position to save; `offset`: where to continue. */
  positionAt(path: string, offset: number): Position {
    const { device, inode, currentMs } = this
    const { digest: fingerprint, length: fingerprintLength } = this.fingerprint
    const seenMs = Date.now()
    this.kept = { offset, fingerprintLength, atMs: seenMs }
    return { path, device, inode, fingerprint, fingerprintLength, offset, seenMs, currentMs }
  }

  /** Fingerprint of the first bytes. */
  get fingerprint(): Fingerprint {
    this.#fingerprint_ ??= { digest: digest(this.#head), length: this.#head.length }
    return this.#fingerprint_
  }

  get fingerprintLength(): number {
    return this.#head.length
  }

  isAt(stats: Stats): boolean {
    return stats.ino === this.inode && stats.dev === this.device
  }

  seen(stats: Stats): void {
    this.user = stats.uid
    this.size = stats.size
    this.modifiedMs = stats.mtimeMs
  }

  /** Updates size and times from an open file; no effect on a closed one. */
  look(): void {
    if (this.#fd < 0) return
    try {
      this.seen(fstatSync(this.#fd))
    } catch {
      // The file system failed: the next read reports it.
    }
  }

  /** Sets the read position. */
  goTo(offset: number): void {
    this.offset = offset
    this.#scanned = offset
  }

  /** Starts again from the beginning, as a different file. */
  restart(): void {
    this.goTo(0)
    this.#head = Buffer.alloc(0)
    this.#fingerprint_ = undefined
    this.reader = undefined
    this.kept = undefined
  }

  /**
   * Opens it by its name. False if a different file is there now, or none. Its first bytes become its fingerprint if
   * it has none yet.
   */
  open(buffer: LineBuffer): boolean {
    if (this.#fd >= 0) return true
    const opened = this.#opened()
    if (opened === undefined) return false
    this.#fd = opened.fd
    if (!this.isAt(opened.stats)) {
      this.close()
      return false
    }
    this.seen(opened.stats)
    if (this.#head.length === 0) this.#checkHead(buffer)
    return true
  }

  #opened(): ForeignFile | undefined {
    this.refusal = undefined
    try {
      return openForeign(this.name)
    } catch (error) {
      // Otherwise it is gone or unreadable; the next scan finds out.
      if (error instanceof RefusedFile) this.refusal = error
      return undefined
    }
  }

  close(): void {
    if (this.#fd < 0) return
    closeForeign(this.#fd)
    this.#fd = -1
  }

  /** Whether it has this fingerprint. */
  beginsAs({ digest: wanted, length }: Fingerprint): boolean {
    return this.#head.length >= length && (length === 0 || digest(this.#head.subarray(0, length)) === wanted)
  }

  /** Reads and passes on at most a chunk. The file must be open and have a reader. */
  read(buffer: LineBuffer): ReadOutcome {
    const { bytes } = buffer
    const isPart = this.hasPart
    let read = readAt(this.#fd, bytes, chunkBytes, this.#scanned)
    if (read <= 0) return read < 0 ? 'failed' : this.#atEnd(buffer)
    // Afterwards: it may have been truncated and rewritten during the read.
    if (!this.#checkHead(buffer)) return 'changed'
    this.grownMs = performance.now()
    if (read === chunkBytes && this.#skipHole(buffer)) return 'read'
    const end = this.#scanned + read
    this.size = Math.max(this.size, end)
    const isLong = end - this.offset > buffer.maxLineBytes
    if (isPart && !isLong && bytes.subarray(0, read).indexOf(newline) < 0) {
      this.#scanned = end
      return 'read'
    }
    if (isPart) {
      read = readAt(this.#fd, bytes, Math.min(end - this.offset, bytes.length), this.offset)
      if (read <= 0) return read < 0 ? 'failed' : 'changed'
    }
    const used = this.#handOn(bytes.subarray(0, read), buffer)
    buffer.readBytes += used
    this.offset += used
    // After a full chunk, the next one starts with the line that was cut.
    const rescans = used > 0 && (read >= chunkBytes || bytes.subarray(used, read).includes(newline))
    this.#scanned = rescans ? this.offset : this.offset + read - used
    return 'read'
  }

  /** Passes on an unterminated line. */
  readPart(buffer: LineBuffer): void {
    if (!this.hasPart) return
    const read = readAt(
      this.#fd,
      buffer.bytes,
      Math.min(this.#scanned - this.offset, buffer.bytes.length),
      this.offset,
    )
    if (read > 0) this.#line(buffer, buffer.bytes, 0, read, this.offset)
    buffer.readBytes += this.#scanned - this.offset
    this.goTo(this.#scanned)
  }

  /**
   * If the last chunk was in a hole, continues after the hole: a sparse file of
   * terabytes costs its writer nothing. A line that runs into the hole ends there. False if there is no hole.
   */
  #skipHole(buffer: LineBuffer): boolean {
    const { bytes, nextData } = buffer
    if (nextData === undefined || bytes[0] !== 0 || bytes[chunkBytes - 1] !== 0) return false
    let next: number
    try {
      next = nextData(this.#fd, this.#scanned)
      if (next >= 0 && next < this.#scanned + chunkBytes) return false
      if (next < 0) next = fstatSync(this.#fd).size
    } catch {
      return false // a file system that does not say
    }
    this.readPart(buffer)
    // It may have been truncated since: the next read finds out.
    this.goTo(Math.max(next, this.#scanned))
    this.size = Math.max(this.size, this.#scanned)
    return true
  }

  /** A rotated file may have been truncated and rewritten before, and its path is no longer checked. */
  #atEnd(buffer: LineBuffer): ReadOutcome {
    if (!this.isRotated && !this.isSuspect) return 'end'
    this.isSuspect = false
    this.look()
    return this.size < this.#scanned || !this.#checkHead(buffer) ? 'changed' : 'end'
  }

  /** Passes on a limited number of lines of these bytes, which start at `offset`. Returns the number of bytes used. */
  #handOn(bytes: Buffer, buffer: LineBuffer): number {
    const { maxLineBytes } = buffer
    let from = 0
    for (let lines = 0; lines < linesAtOnce; lines++) {
      let end = bytes.indexOf(newline, from)
      const hasEnd = end >= 0
      if (!hasEnd) end = bytes.length
      while (end - from > maxLineBytes) {
        const cut = characterStart(bytes, from, from + maxLineBytes)
        this.#line(buffer, bytes, from, cut, this.offset + from)
        from = cut
      }
      if (!hasEnd) return from
      this.#line(buffer, bytes, from, end, this.offset + from)
      from = end + 1
    }
    return from
  }

  #line(buffer: LineBuffer, bytes: Buffer, from: number, to: number, begin: number): void {
    let start = from
    // A writer without O_APPEND continues at its old offset after a truncation: the bytes before read as zeros.
    while (start < to && bytes[start] === 0) start++
    if (start === to && start > from) return
    let end = to
    // The line ran into a hole.
    while (end > start && bytes[end - 1] === 0) end--
    buffer.lines++
    this.reader!.line(bytes, start, end, begin)
  }

  /** Whether its first bytes are unchanged; extends the fingerprint. */
  #checkHead(buffer: LineBuffer): boolean {
    const read = readAt(this.#fd, buffer.head, maxHeadBytes, 0)
    const known = this.#head.length
    if (read < known || buffer.head.compare(this.#head, 0, known, 0, known) !== 0) return false
    if (read > known) {
      this.#head = Buffer.from(buffer.head.subarray(0, read))
      this.#fingerprint_ = undefined
    }
    return true
  }
}

/** Reads bytes at a position; -1 on an error. */
function readAt(fd: number, into: Buffer, length: number, position: number): number {
  try {
    return readSync(fd, into, 0, length, position)
  } catch {
    return -1
  }
}

/** Last offset up to `at` at which a UTF-8 character may start; `at` if none is near. */
function characterStart(bytes: Uint8Array, from: number, at: number): number {
  for (let start = at; start > at - 4 && start > from; start--)
    if ((bytes[start]! & 0xc0) !== 0x80) return start
  return at
}

function digest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 32)
}
