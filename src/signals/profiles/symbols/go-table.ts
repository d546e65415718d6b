import type { ElfFile, Section } from '../../../foundation/lib/elf/elf-file.ts'
import { u64 } from '../../../foundation/lib/u64.ts'
import type { FoundSymbol } from './symbol-table.ts'

/** First words of the table: Go 1.2, 1.16, 1.18, 1.20 and later (cmd/internal, `debug/gosym/pclntab.go`). */
const version = { go2: 0xfffffffb, go16: 0xfffffffa, go18: 0xfffffff0, go20: 0xfffffff1 } as const
const sectionNames = ['.gopclntab', '.data.rel.ro.gopclntab']
const headerBytes = 72
/** Bytes read at once at the end of a search. */
const blockBytes = 4096
const longestName = 1024
const mostFunctions = 2 ** 24
/** Maximum padding between the last function and the end of its section. */
const mostPadding = 4096

interface Layout {
  readonly functions: number
  /** File offsets of the function table, and the bases of description and name offsets. */
  readonly table: number
  readonly descriptions: number
  readonly names: number
  /** Added to addresses in the table. */
  readonly base: number
  /** Size of a number in the table, and of the address in a function's description. */
  readonly width: 4 | 8
}

/**
 * Functions of a Go program by the table that the program contains for its stack traces, even if stripped. Searched in
 * the file; nothing is kept in memory.
 */
export class GoTable {
  readonly #elf: ElfFile
  readonly #section: Section
  readonly #layout: Layout
  readonly #block = Buffer.allocUnsafe(blockBytes)

  /** Undefined: not a Go program, or with an unsupported version of the table. Throws `ElfError`. */
  static of(elf: ElfFile): GoTable | undefined {
    const section = elf.sections.find(({ name }) => sectionNames.includes(name))
    const layout = section && layoutOf(elf, section)
    return layout && new GoTable(elf, section, layout)
  }

  private constructor(elf: ElfFile, section: Section, layout: Layout) {
    this.#elf = elf
    this.#section = section
    this.#layout = layout
  }

  /** Throws `ElfError`. */
  at(offset: number): FoundSymbol | undefined {
    const address = this.#elf.addressOf(offset)
    if (address === undefined) return undefined
    const { functions, base, width } = this.#layout
    const index = this.#lastAtMost(address - base)
    // The entry after the last function marks its end.
    if (index < 0 || index >= functions) return undefined
    const start = this.#elf.offsetOf(this.#entry(index, 0) + base)
    const description = this.#layout.descriptions + this.#entry(index, width)
    const symbol = this.#nameOf(description)
    return start === undefined || symbol === undefined ? undefined : { symbol, start }
  }

  /** Last of the ascending entries that is at most the address. */
  #lastAtMost(address: number): number {
    let low = 0
    let high = this.#layout.functions + 1
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#entry(middle, 0) <= address) low = middle + 1
      else high = middle
    }
    return low - 1
  }

  #entry(index: number, field: number): number {
    const { table, width } = this.#layout
    return number(this.#read(table + index * 2 * width + field, width), width)
  }

  #nameOf(description: number): string | undefined {
    const at = this.#layout.names + this.#read(description + this.#layout.width, 4).readInt32LE()
    const room = Math.min(longestName, this.#end - at)
    if (at < this.#section.offset || room <= 0) return undefined
    const bytes = this.#read(at, room)
    const end = bytes.indexOf(0)
    return end <= 0 ? undefined : bytes.toString('utf8', 0, end)
  }

  get #end(): number {
    return this.#section.offset + this.#section.size
  }

  #read(at: number, length: number): Buffer {
    const bytes = this.#block.subarray(0, length)
    this.#elf.readInto(bytes, at)
    return bytes
  }
}

function layoutOf(elf: ElfFile, section: Section): Layout | undefined {
  if (section.size < headerBytes) return undefined
  const header = elf.read(section.offset, headerBytes)
  // Two zeros, the minimum instruction size, the pointer size.
  if (header.readUInt16LE(4) !== 0 || header[7] !== 8) return undefined
  const functions = u64(header, 8)
  const word = (index: number) => section.offset + u64(header, 8 + 8 * index)
  let layout: Layout | undefined
  const magic = header.readUInt32LE(0)
  if (magic === version.go2) {
    const { offset } = section
    layout = { functions, table: offset + 16, descriptions: offset, names: offset, base: 0, width: 8 }
  } else if (magic === version.go16)
    layout = { functions, table: word(6), descriptions: word(6), names: word(2), base: 0, width: 8 }
  else if (magic === version.go18 || magic === version.go20) {
    const base = textStart(elf, section, functions, u64(header, 24), word(7))
    if (base === undefined) return undefined
    layout = { functions, table: word(7), descriptions: word(7), names: word(3), base, width: 4 }
  }
  return layout !== undefined && isInside(layout, section) ? layout : undefined
}

function isInside({ functions, table, names, width }: Layout, { offset, size }: Section): boolean {
  const end = offset + size
  return (
    functions > 0 && functions <= mostFunctions && table + (functions * 2 + 1) * width <= end && names < end
  )
}

/**
 * Base of the addresses, `runtime.text`. Position-independent programs, and those of Go 1.26, have 0 in the file. The
 * base is then the start of the section, if its end is also the end of the last function: C code may precede it.
 */
function textStart(
  elf: ElfFile,
  section: Section,
  functions: number,
  stated: number,
  table: number,
): number | undefined {
  if (stated !== 0) return stated
  const text = elf.section('.text')
  const last = table + functions * 8
  if (text === undefined || functions > mostFunctions || last + 4 > section.offset + section.size)
    return undefined
  const padding = text.size - elf.read(last, 4).readUInt32LE()
  return padding >= 0 && padding <= mostPadding ? text.address : undefined
}

function number(bytes: Buffer, width: 4 | 8): number {
  return width === 8 ? u64(bytes, 0) : bytes.readUInt32LE(0)
}
