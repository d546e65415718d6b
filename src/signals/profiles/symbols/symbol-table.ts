import type { ElfFile, Section } from '../../../foundation/lib/elf/elf-file.ts'
import { ElfError, isCode, type Segment } from '../../../foundation/lib/elf/elf-format.ts'

/** `Elf64_Sym`: u32 name, u8 info, u8 other, u16 section, u64 value, u64 size. */
const entryBytes = 24
const chunkBytes = 2048 * entryBytes
/** Their numbers take 20 of the 53 bits of a double, next to 32 of an offset. */
const mostSymbols = 2 ** 20
const mostOffset = 2 ** 32
/**
 * Maximum bytes of a symbol table: five times the need of its functions. A sparse file may claim more than it has on
 * disk.
 */
const mostTableBytes = 128 * 1024 * 1024
/** Longer names are cut. C++ template names have some hundred characters. */
const longestName = 4096
const usualName = 256
/** Bytes of names read at once while tables are read: names are usually in the order of their symbols. */
const windowBytes = 16 * 1024
/** Maximum full windows; later ones are short, as unordered names need one each. */
const mostWindows = 4096
const shortWindowBytes = 64
/** Maximum nested functions and labels searched for the one that covers an offset. */
const mostNested = 64
/** Maximum names for one offset: libc has up to 6. */
const mostAliases = 8

const symbolType = { none: 0, function: 2, indirect: 10 } as const
const binding = { local: 0, global: 1, weak: 2 } as const
const undefinedSection = 0
const absoluteSection = 0xfff1

/** Two bits of a name's position select its table. */
const tableBits = 2
const mostTables = 2 ** tableBits
const mostNamesBytes = 2 ** (32 - tableBits)

/** A symbol table with its file, whose functions are loaded like those of the program. */
export interface SymbolSource {
  readonly elf: ElfFile
  readonly section: Section
}

export interface FoundSymbol {
  readonly symbol: string
  /** Offset in the program's file. */
  readonly start: number
}

interface NameTable {
  readonly elf: ElfFile
  readonly offset: number
  readonly size: number
}

/**
 * Functions of a file by offset, 12 bytes each. Names are read on demand from the files, which the owner keeps open.
 */
export class SymbolTable {
  /** Memory of the table. */
  readonly bytes: number
  readonly #names: readonly NameTable[]
  readonly #starts: Uint32Array
  readonly #sizes: Uint32Array
  readonly #places: Uint32Array
  readonly #buffer = Buffer.allocUnsafe(usualName)

  /**
   * `sources` in order of priority. `labels`: includes symbols without a size, which are useful only if no other
   * symbols were stripped. Throws `ElfError`.
   */
  constructor(program: ElfFile, sources: readonly SymbolSource[], labels: boolean) {
    const reader = new SymbolReader(program, labels)
    for (const source of sources.slice(0, mostTables)) reader.read(source)
    this.#names = reader.names
    const { starts, sizes, places } = reader.sorted()
    this.#starts = starts
    this.#sizes = sizes
    this.#places = places
    this.bytes = starts.byteLength + sizes.byteLength + places.byteLength + usualName
  }

  get count(): number {
    return this.#starts.length
  }

  /** Function that covers a file offset; undefined if there is none. Throws `ElfError`. */
  at(offset: number): FoundSymbol | undefined {
    const index = this.#covering(offset)
    if (index < 0) return undefined
    const symbol = this.#bestName(index, offset)
    return symbol === '' ? undefined : { symbol, start: this.#starts[index] as number }
  }

  /** Labels without a size extend to the next symbol, unless an enclosing function covers the offset. */
  #covering(offset: number): number {
    const last = lastAtMost(this.#starts, offset)
    for (let i = last; i >= 0 && i > last - mostNested; i--)
      if (offset - (this.#starts[i] as number) < (this.#sizes[i] as number)) return i
    return this.#sizes[last] === 0 ? last : -1
  }

  /** Among adjacent names for one offset, the one that developers would use. */
  #bestName(index: number, offset: number): string {
    const start = this.#starts[index] as number
    const isLabel = this.#sizes[index] === 0
    let best = this.#name(this.#places[index] as number)
    for (let i = index - 1; i > index - mostAliases && this.#starts[i] === start; i--) {
      if (!isLabel && offset - start >= (this.#sizes[i] as number)) continue
      const other = this.#name(this.#places[i] as number)
      if (underscores(other) <= underscores(best)) best = other
    }
    return best
  }

  #name(place: number): string {
    const table = this.#names[place % mostTables]
    if (table === undefined) return ''
    const at = Math.floor(place / mostTables)
    return nameAt(table, at, this.#buffer) ?? nameAt(table, at, Buffer.allocUnsafe(longestName)) ?? ''
  }
}

/** Undefined: the buffer is too short. */
function nameAt(table: NameTable, at: number, buffer: Buffer): string | undefined {
  const room = buffer.subarray(0, Math.min(buffer.length, table.size - at))
  table.elf.readInto(room, table.offset + at)
  const end = room.indexOf(0)
  if (end < 0 && room.length === usualName && buffer.length === usualName) return undefined
  return room.toString('utf8', 0, end < 0 ? room.length : end)
}

function underscores(name: string): number {
  let count = 0
  while (name[count] === '_') count++
  // Mangled names start with a reserved underscore.
  return name.startsWith('_Z') || name.startsWith('_R') ? 0 : count
}

/** Index of the last element of an ascending array that is at most `value`; -1 if there is none. */
function lastAtMost(array: Uint32Array, value: number): number {
  let low = 0
  let high = array.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((array[middle] as number) <= value) low = middle + 1
    else high = middle
  }
  return low - 1
}

/** Collects and sorts the functions of tables. */
class SymbolReader {
  readonly names: NameTable[] = []
  readonly #code: readonly Segment[]
  #starts = new Uint32Array(1024)
  #sizes = new Uint32Array(1024)
  #places = new Uint32Array(1024)
  #ranks = new Uint8Array(1024)
  #count = 0
  readonly #labels: boolean
  #window: Buffer = Buffer.alloc(0)
  #windowStart = 0
  #windows = 0

  constructor(program: ElfFile, labels: boolean) {
    this.#code = program.segments.filter(isCode)
    this.#labels = labels
  }

  read({ elf, section }: SymbolSource): void {
    const names = elf.sections[section.link]
    if (names === undefined || names.size > mostNamesBytes) throw new ElfError('its symbols have no names')
    if (names.offset + names.size > elf.size) throw new ElfError('the file is cut off')
    if (section.size > mostTableBytes)
      throw new ElfError(`its table of symbols has more than ${mostTableBytes} bytes`)
    const table = this.names.length
    this.#window = Buffer.alloc(0)
    this.names.push({ elf, offset: names.offset, size: names.size })
    const end = section.size - (section.size % entryBytes)
    const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, end))
    for (let at = 0; at < end; at += chunk.length) {
      const bytes = chunk.subarray(0, Math.min(chunk.length, end - at))
      elf.readInto(bytes, section.offset + at)
      this.#take(bytes, table, names.size)
    }
  }

  #take(bytes: Buffer, table: number, namesSize: number): void {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    for (let at = 0; at + entryBytes <= bytes.length; at += entryBytes) {
      const info = view.getUint8(at + 4)
      const type = info & 15
      if (type !== symbolType.function && type !== symbolType.indirect && type !== symbolType.none) continue
      const section = view.getUint16(at + 6, true)
      const name = view.getUint32(at, true)
      if (section === undefinedSection || section === absoluteSection || name === 0 || name >= namesSize)
        continue
      const address = view.getUint32(at + 8, true) + view.getUint32(at + 12, true) * 2 ** 32
      const offset = this.#offsetOf(address)
      if (offset < 0 || offset >= mostOffset) continue
      const size = view.getUint32(at + 20, true) === 0 ? view.getUint32(at + 16, true) : 0xffff_ffff
      if (size === 0 && !this.#labels) continue
      if (type === symbolType.none && this.#isMark(table, name)) continue
      this.#add(offset, size, name * mostTables + table, rankOf(type, info >> 4, size, table))
    }
  }

  /** File offset of program code; -1 if it is not code. */
  #offsetOf(address: number): number {
    for (let i = 0; i < this.#code.length; i++) {
      const segment = this.#code[i] as Segment
      const into = address - segment.address
      if (into >= 0 && into < segment.fileSize) return segment.offset + into
    }
    return -1
  }

  /** Mapping symbols of the assembler are not names (ELF for the Arm architecture: `$x`, `$d`). */
  #isMark(table: number, name: number): boolean {
    const names = this.names[table] as NameTable
    if (name + 2 > names.size) return true
    const into = name - this.#windowStart
    if (into < 0 || into + 2 > this.#window.length) {
      this.#windowStart = name
      const length = this.#windows++ < mostWindows ? windowBytes : shortWindowBytes
      this.#window = names.elf.read(names.offset + name, Math.min(length, names.size - name))
      return this.#isMark(table, name)
    }
    return this.#window[into] === 0x24 || (this.#window[into] === 0x2e && this.#window[into + 1] === 0x4c)
  }

  #add(start: number, size: number, place: number, rank: number): void {
    if (this.#count >= mostSymbols) throw new ElfError(`it has more than ${mostSymbols} symbols`)
    if (this.#count === this.#starts.length) this.#grow()
    this.#starts[this.#count] = start
    this.#sizes[this.#count] = size
    this.#places[this.#count] = place
    this.#ranks[this.#count++] = rank
  }

  #grow(): void {
    const room = this.#count * 2
    this.#starts = grown(this.#starts, new Uint32Array(room))
    this.#sizes = grown(this.#sizes, new Uint32Array(room))
    this.#places = grown(this.#places, new Uint32Array(room))
    this.#ranks = grown(this.#ranks, new Uint8Array(room))
  }

  /** By start, best first among equal starts; drops entries with the start of a better one. */
  sorted(): { starts: Uint32Array; sizes: Uint32Array; places: Uint32Array } {
    const order = this.#order()
    const kept = this.#unique(order)
    const pick = (from: Uint32Array) => {
      const to = new Uint32Array(kept)
      for (let i = 0; i < kept; i++) to[i] = from[order[i] as number] as number
      return to
    }
    return { starts: pick(this.#starts), sizes: pick(this.#sizes), places: pick(this.#places) }
  }

  /** Symbol numbers. Doubles sort without a comparison function. */
  #order(): Uint32Array {
    const keys = new Float64Array(this.#count)
    for (let i = 0; i < this.#count; i++) keys[i] = (this.#starts[i] as number) * mostSymbols + i
    keys.sort()
    return Uint32Array.from(keys, key => key % mostSymbols)
  }

  /** Moves kept entries to the front of `order`; returns their number. */
  #unique(order: Uint32Array): number {
    let kept = 0
    for (let from = 0; from < order.length; ) {
      const start = this.#starts[order[from] as number]
      let to = from + 1
      while (to < order.length && this.#starts[order[to] as number] === start) to++
      kept = this.#keepBest(order, from, to, kept)
      from = to
    }
    return kept
  }

  #keepBest(order: Uint32Array, from: number, to: number, kept: number): number {
    if (to - from > 1) {
      const best = this.#bestRank(order, from, to)
      let room = mostAliases
      let next = kept
      for (let i = from; i < to && room > 0; i++) {
        if (this.#ranks[order[i] as number] !== best) continue
        order[next++] = order[i] as number
        room--
      }
      return next
    }
    order[kept] = order[from] as number
    return kept + 1
  }

  #bestRank(order: Uint32Array, from: number, to: number): number {
    let best = 0
    for (let i = from; i < to; i++) best = Math.max(best, this.#ranks[order[i] as number] as number)
    return best
  }
}

/** Functions before labels, sized before unsized, then by table, and global, weak, local. */
function rankOf(type: number, bound: number, size: number, table: number): number {
  const scope = bound === binding.global ? 2 : bound === binding.weak ? 1 : 0
  const isFunction = type === symbolType.none ? 0 : 1
  return (((size > 0 ? 1 : 0) * 2 + isFunction) * mostTables + (mostTables - 1 - table)) * 3 + scope
}

function grown<T extends Uint32Array | Uint8Array>(from: T, to: T): T {
  to.set(from)
  return to
}
