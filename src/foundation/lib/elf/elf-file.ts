import { createHash } from 'node:crypto'
import { fstatSync, readSync } from 'node:fs'
import { errnoText } from '../errno-text.ts'
import {
  ElfError,
  headerBytes,
  isCode,
  type Machine,
  note,
  noteBytes,
  offsetIn,
  parseHeader,
  parseSections,
  parseSegments,
  type SectionHeader,
  type Segment,
  sectionBytes,
  sectionCompressed,
  sectionType,
  segmentBytes,
  segmentType,
} from './elf-format.ts'

export interface Section extends SectionHeader {
  readonly name: string
}

/** Maximum size of a section that is read whole. */
const mostSectionBytes = 128 * 1024 * 1024
const mostNamesBytes = 1024 * 1024
/** Names are kept; known ones are shorter. */
const mostNameBytes = 64
const mostNoteBytes = 65_536
const hashedBytes = 4096

/**
 * A 64-bit little-endian ELF program, library or debug file for x86-64 or arm64, read in pieces from an open file.
 * Every value in the file is validated before use. Reads are synchronous. All methods throw only `ElfError`.
 */
export class ElfFile {
  readonly machine: Machine
  /** Bytes. */
  readonly size: number
  readonly segments: readonly Segment[]
  readonly sections: readonly Section[]
  readonly #fd: number
  readonly #start: number
  readonly #code: readonly Segment[]
  #buildId: string | undefined
  #goBuildId: string | undefined

  /**
   * The caller owns `fd` and keeps it open. `size` and `start` locate an image inside another file, such as the vDSO in
   * `/proc/self/mem`.
   */
  static of(fd: number, size?: number, start = 0): ElfFile {
    return new ElfFile(fd, size ?? sizeOf(fd), start)
  }

  private constructor(fd: number, size: number, start: number) {
    this.#fd = fd
    this.#start = start
    this.size = size
    const header = parseHeader(this.read(0, headerBytes))
    this.machine = header.machine
    this.segments = parseSegments(this.read(header.segments.offset, header.segments.count * segmentBytes))
    this.#code = this.segments.filter(isCode)
    const sections = parseSections(this.read(header.sections.offset, header.sections.count * sectionBytes))
    this.sections = this.#named(sections, header.namesIndex)
  }

  /** Hexadecimal, as `readelf -n` prints it; '' if there is none. */
  get buildId(): string {
    this.#buildId ??= this.#note(note.gnuBuildId)?.toString('hex') ?? ''
    return this.#buildId
  }

  /** As `go tool buildid` prints it; '' if there is none. */
  get goBuildId(): string {
    this.#goBuildId ??= this.#note(note.goBuildId)?.toString('latin1') ?? ''
    return this.#goBuildId
  }

  section(name: string): Section | undefined {
    return this.sections.find(section => section.name === name)
  }

  /**
   * The contents of a section; empty if it has none in the file (`SHT_NOBITS`). Compressed sections (`SHF_COMPRESSED`)
   * are rejected, to keep zlib away from bytes of any user's file.
   */
  bytes(section: Section, most = mostSectionBytes): Buffer {
    if (section.type === sectionType.nobits) return Buffer.alloc(0)
    if (section.size > most) throw new ElfError(`its section ${section.name} has more than ${most} bytes`)
    if (section.flags & sectionCompressed) throw new ElfError(`its section ${section.name} is compressed`)
    return this.read(section.offset, section.size)
  }

  read(offset: number, length: number): Buffer {
    this.#check(offset, length)
    const bytes = Buffer.allocUnsafeSlow(length)
    this.readInto(bytes, offset)
    return bytes
  }

  /** Fills all of `target`. */
  readInto(target: Uint8Array, offset: number): void {
    this.#check(offset, target.length)
    for (let done = 0; done < target.length; ) {
      const count = this.#pread(target, done, offset + done)
      if (count === 0) throw cutOff()
      done += count
    }
  }

  /** File offset of the byte loaded at an address; undefined if none is. */
  offsetOf(address: number): number | undefined {
    return offsetIn(this.#code, address) ?? offsetIn(this.segments, address)
  }

  /**
   * Address, in the file's own address space, at which an offset is loaded, code first; undefined if it is not loaded.
   */
  addressOf(offset: number): number | undefined {
    return addressIn(this.#code, offset) ?? addressIn(this.segments, offset)
  }

  /** True if the offset is loaded as executable code. */
  isExecutableOffset(offset: number): boolean {
    return addressIn(this.#code, offset) !== undefined
  }

  /** The largest executable segment: addresses, and its file offset. All 0 if there is none. */
  codeMapping(): { start: number; limit: number; offset: number } {
    let largest: Segment | undefined
    for (const segment of this.#code)
      if (largest === undefined || segment.fileSize > largest.fileSize) largest = segment
    if (largest === undefined) return { start: 0, limit: 0, offset: 0 }
    return { start: largest.address, limit: largest.address + largest.fileSize, offset: largest.offset }
  }

  /**
   * Hash of the first and last 4 KiB and the length, hexadecimal (semantic conventions 1.44,
   * `process.executable.build_id.htlhash`).
   */
  htlHash(): string {
    const length = Math.min(hashedBytes, this.size)
    const size = Buffer.alloc(8)
    size.writeBigUInt64BE(BigInt(this.size))
    const hash = createHash('sha256')
      .update(this.read(0, length))
      .update(this.read(this.size - length, length))
    return hash.update(size).digest('hex').slice(0, 32)
  }

  #check(offset: number, length: number): void {
    if (offset < 0 || length < 0 || offset + length > this.size) throw cutOff()
  }

  #pread(target: Uint8Array, at: number, offset: number): number {
    try {
      return readSync(this.#fd, target, at, target.length - at, this.#start + offset)
    } catch (cause) {
      throw unreadable(cause)
    }
  }

  #named(headers: readonly SectionHeader[], namesIndex: number): Section[] {
    const table = headers[namesIndex]
    const names =
      table && table.size <= mostNamesBytes && table.type !== sectionType.nobits
        ? this.read(table.offset, table.size)
        : Buffer.alloc(0)
    return headers.map(header => ({ ...header, name: nameAt(names, header.nameOffset) }))
  }

  /** Searches sections first: the segments of a debug file are those of its program. */
  #note(kind: readonly [string, number]): Buffer | undefined {
    for (const { type, offset, size, align } of this.sections) {
      const found = type === sectionType.note ? this.#noteIn(offset, size, align, kind) : undefined
      if (found) return found
    }
    for (const { type, offset, fileSize, align } of this.segments) {
      const found = type === segmentType.note ? this.#noteIn(offset, fileSize, align, kind) : undefined
      if (found) return found
    }
    return undefined
  }

  #noteIn(offset: number, size: number, align: number, kind: readonly [string, number]): Buffer | undefined {
    if (size > mostNoteBytes || offset + size > this.size) return undefined
    return noteBytes(this.read(offset, size), align, kind)
  }
}

function sizeOf(fd: number): number {
  try {
    const stat = fstatSync(fd)
    if (stat.isFile()) return stat.size
  } catch (cause) {
    throw unreadable(cause)
  }
  throw new ElfError('not a regular file')
}

function addressIn(segments: readonly Segment[], offset: number): number | undefined {
  for (const segment of segments) {
    const into = offset - segment.offset
    if (segment.type === segmentType.load && into >= 0 && into < segment.fileSize)
      return segment.address + into
  }
  return undefined
}

function nameAt(names: Buffer, start: number): string {
  const most = Math.min(names.length, start + mostNameBytes)
  const end = names.subarray(0, most).indexOf(0, start)
  return names.toString('latin1', Math.min(start, most), end < 0 ? most : end)
}

function unreadable(cause: unknown): ElfError {
  const { errno } = cause as NodeJS.ErrnoException
  return new ElfError(`it cannot be read: ${errno ? errnoText(Math.abs(errno)) : String(cause)}`, { cause })
}

function cutOff(): ElfError {
  return new ElfError('the file is cut off')
}
