import { createHash } from 'node:crypto'
import { fstatSync, readSync, type Stats } from 'node:fs'
import { closeForeign, type ForeignFile, openForeign, RefusedFile } from '../lib/foreign-file.ts'
import type { LineReader } from './line-reader.ts'
import type { Position } from './log-positions.ts'

/** First bytes by which a file is known, beside its number, which is given again to other files. */
const maxHeadBytes = 256
/** Read at once where lines are short. */
const chunkBytes = 64 * 1024
/** Lines of a chunk that are handed on at once: many of a few bytes would hold up others for long. */
const linesAtOnce = 512
const newline = 0x0a

/** Shared by all files: one is read at a time. */
export interface LineBuffer {
  readonly bytes: Buffer
  readonly head: Buffer
  /** Lines that are longer come in pieces. */
  readonly maxLineBytes: number
  /** Handed on so far, of all files. */
  lines: number
  readBytes: number
  /** As `nextData` of the addon; without it holes are read as zeros. */
  readonly nextData: NextData | undefined
}

/** Where the next byte stands that is in no hole, at an offset or behind it; -1: nowhere. Throws where nobody knows. */
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

/** The first bytes of a file, as they are remembered. */
export interface Fingerprint {
  readonly digest: string
  readonly length: number
}

/** What is remembered of a file, and since when (milliseconds since the Unix epoch). */
export interface Kept {
  readonly offset: number
  readonly fingerprintLength: number
  readonly atMs: number
}

/** What a look at a file brought: bytes; nothing new; it is not the file that it was; it cannot be read. */
export type ReadOutcome = 'read' | 'end' | 'changed' | 'failed'

const none: Fingerprint = { digest: '', length: 0 }

/** One file, wherever its name has gone, and how far it was read. It keeps no bytes of lines. */
export class LogFile {
  readonly device: number
  readonly inode: number
  /** Where it is opened; renamed files get their new name. */
  name: string
  /** Where the first line begins that was not handed on. */
  offset: number
  /** Whose it is. */
  user = 0
  /** As far as it is known. */
  size = 0
  /** Milliseconds since the Unix epoch. */
  modifiedMs = 0
  /** When something was last read. Milliseconds of `performance.now`. */
  grownMs = performance.now()
  /** When its log's path was last known to lead to it. Milliseconds since the Unix epoch. */
  currentMs = 0
  /** It is no longer at its path. */
  isRotated = false
  /** It was changed without growing. */
  isSuspect = false
  /** Why it is not opened although it could be; undefined where it is, or cannot. */
  refusal: RefusedFile | undefined
  reader: LineReader | undefined
  /** What was last made ready to be kept. */
  kept: Kept | undefined
  private fd = -1
  /** Between `offset` and here there is no end of a line. */
  private scanned: number
  private head: Buffer = Buffer.alloc(0)
  private fingerprint_: Fingerprint | undefined = none

  constructor(name: string, stats: Stats) {
    this.name = name
    this.device = stats.dev
    this.inode = stats.ino
    this.offset = 0
    this.scanned = 0
    this.seen(stats)
  }

  get isOpen(): boolean {
    return this.fd >= 0
  }

  /** A line has begun and not ended, as far as was read. */
  get hasPart(): boolean {
    return this.scanned > this.offset
  }

  /** Where a restart has to go on. */
  get position(): number {
    const held = this.reader?.heldFrom ?? -1
    return held >= 0 ? held : this.offset
  }

  /** As far as it was looked at. */
  get readTo(): number {
    return this.scanned
  }

  get behindBytes(): number {
    return Math.max(0, this.size - this.offset)
  }

  /** As it is to be remembered; `offset`: where to go on. */
  positionAt(path: string, offset: number): Position {
    const { device, inode, currentMs } = this
    const { digest: fingerprint, length: fingerprintLength } = this.fingerprint
    const seenMs = Date.now()
    this.kept = { offset, fingerprintLength, atMs: seenMs }
    return { path, device, inode, fingerprint, fingerprintLength, offset, seenMs, currentMs }
  }

  /** Of the first bytes that were seen. */
  get fingerprint(): Fingerprint {
    this.fingerprint_ ??= { digest: digest(this.head), length: this.head.length }
    return this.fingerprint_
  }

  get fingerprintLength(): number {
    return this.head.length
  }

  isAt(stats: Stats): boolean {
    return stats.ino === this.inode && stats.dev === this.device
  }

  seen(stats: Stats): void {
    this.user = stats.uid
    this.size = stats.size
    this.modifiedMs = stats.mtimeMs
  }

  /** Asks the file itself; nothing happens where it is closed. */
  look(): void {
    if (this.fd < 0) return
    try {
      this.seen(fstatSync(this.fd))
    } catch {
      // A file system that fails: the next read tells.
    }
  }

  /** Where to go on. */
  goTo(offset: number): void {
    this.offset = offset
    this.scanned = offset
  }

  /** From its beginning, as another file. */
  startAnew(): void {
    this.goTo(0)
    this.head = Buffer.alloc(0)
    this.fingerprint_ = undefined
    this.reader = undefined
    this.kept = undefined
  }

  /**
   * Opens it by its name. False where another file is there now, or none. What it begins with is taken as its own where
   * nothing is known of it yet.
   */
  open(buffer: LineBuffer): boolean {
    if (this.fd >= 0) return true
    const opened = this.opened()
    if (opened === undefined) return false
    this.fd = opened.fd
    if (!this.isAt(opened.stats)) {
      this.close()
      return false
    }
    this.seen(opened.stats)
    if (this.head.length === 0) this.checkHead(buffer)
    return true
  }

  private opened(): ForeignFile | undefined {
    this.refusal = undefined
    try {
      return openForeign(this.name)
    } catch (error) {
      // Else it is gone, or may not be read; whoever asked finds out at the next look.
      if (error instanceof RefusedFile) this.refusal = error
      return undefined
    }
  }

  close(): void {
    if (this.fd < 0) return
    closeForeign(this.fd)
    this.fd = -1
  }

  /** Whether it begins as one that was remembered. */
  beginsAs({ digest: wanted, length }: Fingerprint): boolean {
    return this.head.length >= length && (length === 0 || digest(this.head.subarray(0, length)) === wanted)
  }

  /** Hands on what there is, a chunk at most. The file must be open, and have a reader. */
  read(buffer: LineBuffer): ReadOutcome {
    const { bytes } = buffer
    const isPart = this.hasPart
    let read = readAt(this.fd, bytes, chunkBytes, this.scanned)
    if (read <= 0) return read < 0 ? 'failed' : this.atEnd(buffer)
    // Afterwards: it may have been emptied and filled again while it was read.
    if (!this.checkHead(buffer)) return 'changed'
    this.grownMs = performance.now()
    if (read === chunkBytes && this.skipHole(buffer)) return 'read'
    const end = this.scanned + read
    this.size = Math.max(this.size, end)
    const isLong = end - this.offset > buffer.maxLineBytes
    if (isPart && !isLong && bytes.subarray(0, read).indexOf(newline) < 0) {
      this.scanned = end
      return 'read'
    }
    if (isPart) {
      read = readAt(this.fd, bytes, Math.min(end - this.offset, bytes.length), this.offset)
      if (read <= 0) return read < 0 ? 'failed' : 'changed'
    }
    const used = this.handOn(bytes.subarray(0, read), buffer)
    buffer.readBytes += used
    this.offset += used
    // At the end of a full chunk the next one begins with the line that it cuts.
    const isAnew = used > 0 && (read >= chunkBytes || bytes.subarray(used, read).includes(newline))
    this.scanned = isAnew ? this.offset : this.offset + read - used
    return 'read'
  }

  /** Hands on a line that has no end, as it is. */
  readPart(buffer: LineBuffer): void {
    if (!this.hasPart) return
    const read = readAt(
      this.fd,
      buffer.bytes,
      Math.min(this.scanned - this.offset, buffer.bytes.length),
      this.offset,
    )
    if (read > 0) this.line(buffer, buffer.bytes, 0, read, this.offset)
    buffer.readBytes += this.scanned - this.offset
    this.goTo(this.scanned)
  }

  /**
   * Where the chunk that was just read is in a hole, the next one is what stands behind it: who makes a file of
   * terabytes writes none of them. A line that ran into the hole ends there. False: there is none.
   */
  private skipHole(buffer: LineBuffer): boolean {
    const { bytes, nextData } = buffer
    if (nextData === undefined || bytes[0] !== 0 || bytes[chunkBytes - 1] !== 0) return false
    let next: number
    try {
      next = nextData(this.fd, this.scanned)
      if (next >= 0 && next < this.scanned + chunkBytes) return false
      if (next < 0) next = fstatSync(this.fd).size
    } catch {
      return false // a file system that does not say
    }
    this.readPart(buffer)
    // It may have been emptied meanwhile: then the next read finds that out.
    this.goTo(Math.max(next, this.scanned))
    this.size = Math.max(this.size, this.scanned)
    return true
  }

  /** One that was rotated may have been emptied and written again before, and nobody looks at its path any longer. */
  private atEnd(buffer: LineBuffer): ReadOutcome {
    if (!this.isRotated && !this.isSuspect) return 'end'
    this.isSuspect = false
    this.look()
    return this.size < this.scanned || !this.checkHead(buffer) ? 'changed' : 'end'
  }

  /** What was handed on of these bytes, which begin at `offset`: so many lines at most. */
  private handOn(bytes: Buffer, buffer: LineBuffer): number {
    const { maxLineBytes } = buffer
    let from = 0
    for (let lines = 0; lines < linesAtOnce; lines++) {
      let end = bytes.indexOf(newline, from)
      const hasEnd = end >= 0
      if (!hasEnd) end = bytes.length
      while (end - from > maxLineBytes) {
        const cut = characterStart(bytes, from, from + maxLineBytes)
        this.line(buffer, bytes, from, cut, this.offset + from)
        from = cut
      }
      if (!hasEnd) return from
      this.line(buffer, bytes, from, end, this.offset + from)
      from = end + 1
    }
    return from
  }

  private line(buffer: LineBuffer, bytes: Buffer, from: number, to: number, begin: number): void {
    let start = from
    // A writer that does not append goes on at its old place after the file was emptied: what lies before reads as zeros.
    while (start < to && bytes[start] === 0) start++
    if (start === to && start > from) return
    let end = to
    // It ran into a hole.
    while (end > start && bytes[end - 1] === 0) end--
    buffer.lines++
    this.reader!.line(bytes, start, end, begin)
  }

  /** Whether it still begins as it did; learns more of its beginning. */
  private checkHead(buffer: LineBuffer): boolean {
    const read = readAt(this.fd, buffer.head, maxHeadBytes, 0)
    const known = this.head.length
    if (read < known || buffer.head.compare(this.head, 0, known, 0, known) !== 0) return false
    if (read > known) {
      this.head = Buffer.from(buffer.head.subarray(0, read))
      this.fingerprint_ = undefined
    }
    return true
  }
}

/** -1 where it cannot be read. */
function readAt(fd: number, into: Buffer, length: number, position: number): number {
  try {
    return readSync(fd, into, 0, length, position)
  } catch {
    return -1
  }
}

/** The last place up to `at` where a UTF-8 character may begin; `at` where none does nearby. */
function characterStart(bytes: Uint8Array, from: number, at: number): number {
  for (let start = at; start > at - 4 && start > from; start--)
    if ((bytes[start]! & 0xc0) !== 0x80) return start
  return at
}

function digest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 32)
}
