import { createHash } from 'node:crypto'
import type { ElfFile } from '../../foundation/lib/elf/elf-file.ts'
import {
  ElfError,
  headerBytes,
  isCode,
  type Segment,
  sectionType,
  segmentType,
} from '../../foundation/lib/elf/elf-format.ts'
import type { UnwindTable } from '../../foundation/model/unwind-table.ts'
import { type CommonEntry, FrameProgram, stateFields } from './frame-program.ts'
import { FrameReader, pointerEncoding } from './frame-reader.ts'
import { UnwindRows } from './unwind-rows.ts'

/** Limits for one file. */
export interface UnwindLimits {
  /** At most 2^20. */
  readonly maxRows: number
  /** Maximum size of .eh_frame. */
  readonly maxBytes: number
}

const defaultLimits: UnwindLimits = { maxRows: 2 ** 20, maxBytes: 64 * 1024 * 1024 }
/** Linkers merge equal entries: the largest programs have a few dozen. */
const mostCommonEntries = 4096
/** Precedes a 64-bit length. */
const longLength = 0xffffffff
const lengthBytes = 4
const longLengthBytes = 8
/** Sizes of addresses and segment selectors. */
const sizesBytes = 2
/** Minimum size of .eh_frame_hdr: version, encodings, and address of .eh_frame. */
const frameHeaderBytes = 12
/** Tables have 32-bit file offsets, and programs 47-bit addresses. */
const mostPlace = 2 ** 32 - 1
const mostAddress = 2 ** 47
const digestBytes = 256 * 1024

/** Location of .eh_frame. */
interface Extent {
  readonly offset: number
  readonly size: number
  readonly address: number
}

/**
 * Unwind rules of a file's functions from its .eh_frame (Linux Standard Base, core 5.0, 10.6). Undefined if it is
 * missing or empty, and for machines other than x86-64. Throws `ElfError`, also for a file over the limits.
 */
export function buildUnwindTable(elf: ElfFile, limits = defaultLimits): UnwindTable | undefined {
  const extent = elf.machine === 'x64' ? extentOf(elf) : undefined
  if (extent === undefined) return undefined
  const { offset, size, address } = extent
  if (size > limits.maxBytes) throw new ElfError(`its .eh_frame has more than ${limits.maxBytes} bytes`)
  if (offset + size > elf.size) throw new ElfError('the file is cut off')
  const rows = new UnwindRows(Math.min(limits.maxRows, defaultLimits.maxRows))
  new Entries(elf, new FrameReader(elf, offset, size, address), rows).read()
  return rows.isEmpty ? undefined : rows.table()
}

/**
 * Hexadecimal digest of all input of `buildUnwindTable`: equal digests mean equal tables, whatever the files claim.
 * Throws as that does.
 */
export function unwindDigest(elf: ElfFile, limits = defaultLimits): string {
  const extent = extentOf(elf)
  const hash = createHash('sha256').update(JSON.stringify([elf.machine, elf.segments, limits]))
  if (extent !== undefined) {
    const { offset, size, address } = extent
    if (size > limits.maxBytes) throw new ElfError(`its .eh_frame has more than ${limits.maxBytes} bytes`)
    hash.update(JSON.stringify([offset, size, address]))
    for (let at = 0; at < size; at += digestBytes)
      hash.update(elf.read(offset + at, Math.min(digestBytes, size - at)))
  }
  return hash.digest('hex').slice(0, 32)
}

/** Programs without section headers have it in `.eh_frame_hdr`, which has its own segment. */
function extentOf(elf: ElfFile): Extent | undefined {
  const section = elf.section('.eh_frame')
  if (section) return section.type === sectionType.nobits ? undefined : section
  const header = elf.segments.find(({ type }) => type === segmentType.ehFrameHeader)
  if (header === undefined || header.offset + header.fileSize > elf.size) return undefined
  const reader = new FrameReader(elf, header.offset, header.fileSize, header.address)
  if (!reader.enter(0, frameHeaderBytes) || reader.u8() !== 1) return undefined
  const encoding = reader.u8()
  reader.skip(2)
  const address = reader.pointer(encoding)
  const holder = elf.segments.find(
    each =>
      each.type === segmentType.load && address >= each.address && address < each.address + each.fileSize,
  )
  if (reader.failed || holder === undefined) return undefined
  const into = address - holder.address
  return { offset: holder.offset + into, size: holder.fileSize - into, address }
}

/** Reads the entries: common ones (CIE), and one per function (FDE). */
class Entries {
  readonly #reader: FrameReader
  readonly #program: FrameProgram
  readonly #code: readonly Segment[]
  /** By start offset. */
  readonly #common = new Map<number, CommonEntry>()

  constructor(elf: ElfFile, reader: FrameReader, rows: UnwindRows) {
    this.#reader = reader
    this.#program = new FrameProgram(reader, rows)
    this.#code = elf.segments.filter(each => isCode(each) && each.address + each.fileSize < mostAddress)
  }

  read(): void {
    const reader = this.#reader
    for (let start = 0; reader.enter(start, lengthBytes); ) {
      let position = start + lengthBytes
      let length = reader.u32()
      if (length === longLength) {
        if (!reader.enter(position, longLengthBytes)) return
        length = reader.i64()
        position += longLengthBytes
      }
      if (length < 0) return
      // A length of 0 ends the part of one object file; a linker may have appended more.
      if (length > 0 && reader.enter(position, length)) this.#readEntry(start, position)
      start = position + length
    }
  }

  /** The reader is after the entry's length; the entry's references are relative to there, backwards. */
  #readEntry(start: number, position: number): void {
    const back = this.#reader.u32()
    const common = this.#common.get(position - back)
    if (back === 0) this.#readCommon(start)
    else if (common) this.#readFunction(common)
  }

  #readCommon(start: number): void {
    const reader = this.#reader
    if (this.#common.size === mostCommonEntries) return
    const version = reader.u8()
    if (version !== 1 && version !== 3 && version !== 4) return
    const augmentation = reader.text()
    if (version === 4) reader.skip(sizesBytes)
    const codeFactor = reader.uleb()
    const dataFactor = reader.sleb()
    if (version === 1) reader.skip(1)
    else reader.uleb()
    const hasData = augmentation.startsWith('z')
    const encoding = this.#pointerEncoding(augmentation)
    if (encoding === undefined || reader.failed) return
    const isSignal = augmentation.includes('S')
    const state = new Int32Array(stateFields)
    const common = { codeFactor, dataFactor, pointerEncoding: encoding, hasData, isSignal, state }
    this.#program.runCommon(common)
    if (!reader.failed) this.#common.set(start, common)
  }

  /** Encoding of function addresses; undefined if unknown, or if it needs more than the file. */
  #pointerEncoding(augmentation: string): number | undefined {
    const reader = this.#reader
    let encoding = 0
    if (augmentation === '') return encoding
    const length = reader.uleb()
    const end = reader.at + length
    if (!augmentation.startsWith('z') || end > reader.end) return undefined
    for (const letter of augmentation.slice(1)) {
      if (letter === 'R') encoding = reader.u8()
      else if (letter === 'L') reader.skip(1)
      else if (letter === 'P') reader.pointer(reader.u8())
      else if (letter !== 'S') return undefined
    }
    reader.at = end
    const way = encoding & ~15
    return way === 0 || way === pointerEncoding.relativeToPlace || encoding === pointerEncoding.aligned
      ? encoding
      : undefined
  }

  #readFunction(common: CommonEntry): void {
    const reader = this.#reader
    const start = reader.pointer(common.pointerEncoding)
    const length = reader.pointer(common.pointerEncoding & 15)
    if (common.hasData) reader.skip(reader.uleb())
    const segment = this.#segmentOf(start)
    if (reader.failed || length <= 0 || segment === undefined) return
    const end = Math.min(start + length, segment.address + segment.fileSize)
    const bias = segment.address - segment.offset
    // Functions that the linker dropped are at address 0.
    if (start - bias < headerBytes || end - bias > mostPlace) return
    this.#program.runFunction(common, start, end, bias)
  }

  #segmentOf(address: number): Segment | undefined {
    for (const segment of this.#code)
      if (address >= segment.address && address < segment.address + segment.fileSize) return segment
    return undefined
  }
}
