import { type FileHandle, open } from 'node:fs/promises'
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
  sectionType,
  segmentBytes,
  segmentType,
} from './elf/elf-format.ts'
import { u64 } from './u64.ts'

/** A function of an ELF file. */
export interface ElfSymbol {
  /** File offset of its first instruction. */
  readonly offset: number
  /** Bytes. */
  readonly size: number
  /** Its first bytes, at most 16. */
  readonly start: Buffer
}

export interface ElfFile {
  /** As `file` and `readelf -n` print it; empty if there is none. */
  readonly buildId: string
  /** `device:inode`, as in st_dev and st_ino. */
  readonly identity: string
  readonly machine: Machine
  /** The requested functions that the file defines. */
  readonly functions: ReadonlyMap<string, ElfSymbol>
}

/** Bytes per read. */
const chunkBytes = 256 * 1024
const mostNoteBytes = 65_536
/** Maximum size of a symbol or string table. Only browsers with full debug information have larger ones. */
const mostTableBytes = 128 * 1024 * 1024
/** Offsets of one name in the string table: linkers share suffixes of longer names. */
const mostPlaces = 64
const symbolBytes = 24
const startBytes = 16

const symbolFunction = 2

/**
 * Finds functions by name in the symbol tables of a 64-bit ELF file (System V ABI, chapters 4 and 5), the dynamic one
 * first. Reads in pieces, and validates every value of the file before using it. Throws if it is not such a file.
 */
export async function readElfSymbols(path: string, names: readonly string[]): Promise<ElfFile> {
  const file = await open(path)
  try {
    return await new Reader(file).read(names)
  } finally {
    await file.close()
  }
}

class Reader {
  readonly #file: FileHandle
  #size = 0

  constructor(file: FileHandle) {
    this.#file = file
  }

  async read(names: readonly string[]): Promise<ElfFile> {
    const stat = await this.#file.stat()
    if (!stat.isFile()) throw new ElfError('not a regular file')
    this.#size = stat.size
    const header = parseHeader(await this.#bytes(0, headerBytes))
    const { machine } = header
    const segments = parseSegments(
      await this.#bytes(header.segments.offset, header.segments.count * segmentBytes),
    )
    const sections = parseSections(
      await this.#bytes(header.sections.offset, header.sections.count * sectionBytes),
    )
    const code = segments.filter(isCode)
    const functions = new Map<string, ElfSymbol>()
    for (const wanted of [sectionType.dynsym, sectionType.symtab]) {
      if (functions.size > 0) break
      // A file has one of each. One with thousands of identical tables is hostile.
      const table = sections.find(({ type }) => type === wanted)
      if (table) await this.#find(table, sections, code, names, functions)
    }
    const buildId = await this.#buildId(segments)
    return { buildId, identity: `${stat.dev}:${stat.ino}`, machine, functions }
  }

  async #bytes(offset: number, length: number): Promise<Buffer> {
    if (offset + length > this.#size) throw new ElfError('the file is cut off')
    const bytes = Buffer.allocUnsafe(length)
    const { bytesRead } = await this.#file.read(bytes, 0, length, offset)
    if (bytesRead < length) throw new ElfError('the file is cut off')
    return bytes
  }

  async #find(
    table: SectionHeader,
    sections: readonly SectionHeader[],
    code: readonly Segment[],
    names: readonly string[],
    found: Map<string, ElfSymbol>,
  ): Promise<void> {
    const strings = sections[table.link]
    if (strings === undefined || strings.size > mostTableBytes || table.size > mostTableBytes) return
    const places = await this.#places(strings, names)
    if (places.size === 0) return
    for await (const { bytes } of this.#chunks(table, 0)) {
      for (let at = 0; at + symbolBytes <= bytes.length; at += symbolBytes) {
        const name = places.get(bytes.readUInt32LE(at))
        if (name === undefined || found.has(name)) continue
        const isFunction = (bytes[at + 4]! & 15) === symbolFunction
        const isDefined = bytes.readUInt16LE(at + 6) !== 0
        const offset = offsetIn(code, u64(bytes, at + 8))
        if (!isFunction || !isDefined || offset === undefined) continue
        const start = await this.#bytes(offset, Math.max(0, Math.min(startBytes, this.#size - offset)))
        found.set(name, { offset, size: u64(bytes, at + 16), start })
      }
    }
  }

  /** Offsets of the names in a string table. */
  async #places(strings: SectionHeader, names: readonly string[]): Promise<Map<number, string>> {
    const places = new Map<number, string>()
    const wanted = names.map(name => ({ name, bytes: Buffer.from(`${name}\0`, 'latin1'), count: 0 }))
    const longest = Math.max(0, ...wanted.map(({ bytes }) => bytes.length))
    for await (const { bytes, offset } of this.#chunks(strings, longest)) {
      for (const each of wanted) {
        for (let at = bytes.indexOf(each.bytes); at >= 0; at = bytes.indexOf(each.bytes, at + 1)) {
          if (each.count >= mostPlaces) break
          if (!places.has(offset + at)) each.count++
          places.set(offset + at, each.name)
        }
      }
    }
    return places
  }

  /**
   * The bytes of a section in pieces, each starting with the last `overlap` bytes of the previous one. The buffer is
   * reused.
   */
  async *#chunks(section: SectionHeader, overlap: number): AsyncGenerator<{ bytes: Buffer; offset: number }> {
    if (section.offset + section.size > this.#size) throw new ElfError('the file is cut off')
    const whole = chunkBytes - (chunkBytes % symbolBytes)
    const buffer = Buffer.allocUnsafe(Math.min(section.size, overlap + whole))
    let kept = 0
    for (let done = 0; done < section.size; ) {
      const length = Math.min(whole, section.size - done, buffer.length - kept)
      const { bytesRead } = await this.#file.read(buffer, kept, length, section.offset + done)
      if (bytesRead < length) throw new ElfError('the file is cut off')
      yield { bytes: buffer.subarray(0, kept + length), offset: done - kept }
      done += length
      const keep = Math.min(overlap, kept + length)
      buffer.copyWithin(0, kept + length - keep, kept + length)
      kept = keep
    }
  }

  async #buildId(segments: readonly Segment[]): Promise<string> {
    for (const { type, offset, fileSize, align } of segments) {
      if (type !== segmentType.note || fileSize > mostNoteBytes || offset + fileSize > this.#size) continue
      const found = noteBytes(await this.#bytes(offset, fileSize), align, note.gnuBuildId)
      if (found) return found.toString('hex')
    }
    return ''
  }
}
