import { type FileHandle, open } from 'node:fs/promises'

/** A function of an ELF file. */
export interface ElfSymbol {
  /** Of its first instruction in the file. */
  readonly offset: number
  /** Bytes. */
  readonly size: number
  /** Its first bytes, 16 at most. */
  readonly start: Buffer
}

export interface ElfFile {
  /** As `file` and `readelf -n` show it; empty where there is none. */
  readonly buildId: string
  /** As st_dev and st_ino have it: `device:inode`. */
  readonly identity: string
  readonly machine: 'x64' | 'arm64'
  /** Those of the wanted functions that the file defines. */
  readonly functions: ReadonlyMap<string, ElfSymbol>
}

/** Bytes that are read at once. */
const chunkBytes = 256 * 1024
const mostSections = 4096
const mostSegments = 256
const mostNoteBytes = 65_536
/** Of a table of symbols or of their names. Larger ones are those of browsers with all their debug information. */
const mostTableBytes = 128 * 1024 * 1024
/** Places of one name in the table of names: linkers share the ends of longer names. */
const mostPlaces = 64
const symbolBytes = 24
const startBytes = 16

const magic = 0x464c457f
const executable = 2
const sharedObject = 3
const machines = new Map<number, ElfFile['machine']>([
  [62, 'x64'],
  [183, 'arm64'],
])
const sectionSymtab = 2
const sectionDynsym = 11
const segmentLoad = 1
const segmentNote = 4
const flagExecute = 1
const noteBuildId = 3
const symbolFunction = 2

interface Segment {
  readonly offset: number
  readonly address: number
  readonly size: number
}

interface Section {
  readonly type: number
  readonly offset: number
  readonly size: number
  readonly link: number
}

/**
 * Finds functions by name in the symbol tables of a 64-bit ELF file (System V ABI, chapters 4 and 5), the dynamic one
 * first. Reads in pieces, and what the file says is bounded before it is believed. Throws where the file is none.
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
    if (!stat.isFile()) throw new Error('it is no file')
    this.#size = stat.size
    const header = await this.#bytes(0, 64)
    const machine = machines.get(header.readUInt16LE(18))
    const type = header.readUInt16LE(16)
    const is64Little = header.readUInt32LE(0) === magic && header[4] === 2 && header[5] === 1
    if (!is64Little || machine === undefined || (type !== executable && type !== sharedObject))
      throw new Error('it is no 64-bit ELF program or library for x86-64 or arm64')
    const segments = await this.#segments(header)
    const sections = await this.#sections(header)
    const functions = new Map<string, ElfSymbol>()
    for (const wanted of [sectionDynsym, sectionSymtab]) {
      if (functions.size > 0) break
      for (const section of sections)
        if (section.type === wanted) await this.#find(section, sections, segments.code, names, functions)
    }
    const buildId = await this.#buildId(segments.notes)
    return { buildId, identity: `${stat.dev}:${stat.ino}`, machine, functions }
  }

  async #bytes(offset: number, length: number): Promise<Buffer> {
    if (offset + length > this.#size) throw new Error('the file is cut off')
    const bytes = Buffer.allocUnsafe(length)
    const { bytesRead } = await this.#file.read(bytes, 0, length, offset)
    if (bytesRead < length) throw new Error('the file is cut off')
    return bytes
  }

  async #table(
    offset: number,
    entryBytes: number,
    least: number,
    count: number,
    most: number,
  ): Promise<Buffer> {
    if (count === 0) return Buffer.alloc(0)
    if (entryBytes !== least || count > most) throw new Error('its headers are not those of an ELF file')
    return this.#bytes(offset, entryBytes * count)
  }

  async #segments(header: Buffer): Promise<{ code: Segment[]; notes: Segment[] }> {
    const count = header.readUInt16LE(56)
    const table = await this.#table(u64(header, 32), header.readUInt16LE(54), 56, count, mostSegments)
    const code: Segment[] = []
    const notes: Segment[] = []
    for (let at = 0; at < table.length; at += 56) {
      const type = table.readUInt32LE(at)
      const segment = { offset: u64(table, at + 8), address: u64(table, at + 16), size: u64(table, at + 32) }
      if (type === segmentLoad && table.readUInt32LE(at + 4) & flagExecute) code.push(segment)
      if (type === segmentNote) notes.push(segment)
    }
    return { code, notes }
  }

  async #sections(header: Buffer): Promise<Section[]> {
    const count = header.readUInt16LE(60)
    const table = await this.#table(u64(header, 40), header.readUInt16LE(58), 64, count, mostSections)
    const sections: Section[] = []
    for (let at = 0; at < table.length; at += 64) {
      sections.push({
        type: table.readUInt32LE(at + 4),
        offset: u64(table, at + 24),
        size: u64(table, at + 32),
        link: table.readUInt32LE(at + 40),
      })
    }
    return sections
  }

  async #find(
    table: Section,
    sections: readonly Section[],
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
        const offset = offsetOf(u64(bytes, at + 8), code)
        if (!isFunction || !isDefined || offset === undefined) continue
        const start = await this.#bytes(offset, Math.min(startBytes, this.#size - offset))
        found.set(name, { offset, size: u64(bytes, at + 16), start })
      }
    }
  }

  /** Where the names stand in a table of strings. */
  async #places(strings: Section, names: readonly string[]): Promise<Map<number, string>> {
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

  /** The bytes of a section, each piece with the last `overlap` of the one before. The buffer is reused. */
  async *#chunks(section: Section, overlap: number): AsyncGenerator<{ bytes: Buffer; offset: number }> {
    if (section.offset + section.size > this.#size) throw new Error('the file is cut off')
    const whole = chunkBytes - (chunkBytes % symbolBytes)
    const buffer = Buffer.allocUnsafe(Math.min(section.size, overlap + whole))
    let kept = 0
    for (let done = 0; done < section.size; ) {
      const length = Math.min(whole, section.size - done, buffer.length - kept)
      const { bytesRead } = await this.#file.read(buffer, kept, length, section.offset + done)
      if (bytesRead < length) throw new Error('the file is cut off')
      yield { bytes: buffer.subarray(0, kept + length), offset: done - kept }
      done += length
      const keep = Math.min(overlap, kept + length)
      buffer.copyWithin(0, kept + length - keep, kept + length)
      kept = keep
    }
  }

  async #buildId(notes: readonly Segment[]): Promise<string> {
    for (const { offset, size } of notes) {
      if (size > mostNoteBytes || offset + size > this.#size) continue
      const bytes = await this.#bytes(offset, size)
      for (let at = 0; at + 12 <= bytes.length; ) {
        const nameBytes = bytes.readUInt32LE(at)
        const dataBytes = bytes.readUInt32LE(at + 4)
        const data = at + 12 + padded(nameBytes)
        if (data + dataBytes > bytes.length) break
        const isGnu = bytes.toString('latin1', at + 12, at + 12 + nameBytes) === 'GNU\0'
        if (isGnu && bytes.readUInt32LE(at + 8) === noteBuildId && dataBytes <= 64)
          return bytes.toString('hex', data, data + dataBytes)
        at = data + padded(dataBytes)
      }
    }
    return ''
  }
}

/** Where the code at an address stands in the file; undefined where it does not. */
function offsetOf(address: number, code: readonly Segment[]): number | undefined {
  for (const segment of code) {
    const into = address - segment.address
    if (into >= 0 && into < segment.size) return segment.offset + into
  }
  return undefined
}

function padded(length: number): number {
  return Math.ceil(length / 4) * 4
}

/** Beyond 2^53 it is inexact, and beyond any file. */
function u64(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 4294967296
}
