import { closeSync } from 'node:fs'
import { ElfFile, type Section } from '../../../foundation/lib/elf/elf-file.ts'
import { ElfError, sectionType } from '../../../foundation/lib/elf/elf-format.ts'
import { DecodeError } from '../../../kernel/decoder.ts'
import { findDebugFile } from './debug-files.ts'
import { type FunctionName, functionName } from './function-name.ts'
import { GoTable } from './go-table.ts'
import { linkageReason, strippedReason, uncoveredReason, unreadableReason } from './reasons.ts'
import { type FoundSymbol, type SymbolSource, SymbolTable } from './symbol-table.ts'

/** Maximum packed and unpacked size of `.gnu_debugdata`. The names of a program of 100 MB take some MB. */
const mostPackedBytes = 16 * 1024 * 1024
const mostUnpackedBytes = 32 * 1024 * 1024
/** Overhead beside the arrays: headers of the file and its sections. */
const objectBytes = 16 * 1024

export interface SymbolOptions {
  /** Demangles C++ and Rust names. */
  readonly demangle: boolean
  /** Directories with debug files, for example `/usr/lib/debug`. */
  readonly debugDirs: readonly string[]
}

/**
 * Decompresses xz data into a memory file of at most `most` bytes, whose descriptor the caller closes. Throws
 * `DecodeError`.
 */
export type Unpack = (bytes: Uint8Array, most: number) => number

export interface FoundFunction extends FunctionName {
  /** Offset in the file. */
  readonly start: number
}

/**
 * Functions of a program or library: from its own table, its debug file, or the small table that distributions pack
 * into `.gnu_debugdata` plus its exports; for Go programs, from Go's own table.
 */
export class FileSymbols {
  /** Memory, including memory files. */
  readonly bytes: number
  /** Source of the tables. */
  readonly origin: 'symtab' | 'debug file' | 'gnu_debugdata' | 'dynsym' | 'none'
  readonly #elf: ElfFile
  readonly #path: string
  readonly #demangle: boolean
  readonly #go: GoTable | undefined
  readonly #table: SymbolTable | undefined
  /** Why existing tables were not read; '' if all were. */
  readonly #fault: string
  readonly #descriptors: number[]

  /** Reads the tables of an open file, which the caller must keep open until `close`. Does not throw. */
  static of(elf: ElfFile, path: string, options: SymbolOptions, unpack?: Unpack): FileSymbols {
    return new FileSymbols(elf, path, options, unpack)
  }

  private constructor(elf: ElfFile, path: string, options: SymbolOptions, unpack: Unpack | undefined) {
    this.#elf = elf
    this.#path = path
    this.#demangle = options.demangle
    const found = new FoundTables(elf, path, options.debugDirs, unpack)
    this.#go = found.attempt(() => GoTable.of(elf))
    this.#table = found.table()
    this.origin = found.origin
    this.#fault = found.fault
    this.#descriptors = found.descriptors
    this.bytes = objectBytes + (this.#table?.bytes ?? 0) + found.memoryBytes
  }

  /** Functions in the tables, without those of Go's own. */
  get count(): number {
    return this.#table?.count ?? 0
  }

  /** Function that covers a file offset; undefined if none is known. Does not throw. */
  find(offset: number): FoundFunction | undefined {
    try {
      const go = this.#go?.at(offset)
      if (go) return { name: go.symbol, systemName: go.symbol, type: 'go', isMangled: false, start: go.start }
      const found = this.#table?.at(offset)
      // A label without a size extends to the next one, but `_init` before the linker's stubs does not name them.
      if (found === undefined || (this.#isLinkage(offset) && !this.#isLinkage(found.start))) return undefined
      return named(found, this.#demangle)
    } catch (error) {
      if (error instanceof ElfError) return undefined
      throw error
    }
  }

  /** Replacement for a missing name. */
  reason(offset: number): string {
    if (this.#isLinkage(offset)) return linkageReason(this.#path)
    if (this.#fault !== '') return unreadableReason(this.#path, this.#fault)
    const isWhole = this.origin === 'symtab' || this.origin === 'debug file'
    return isWhole ? uncoveredReason(this.#path) : strippedReason(this.#path)
  }

  /** Closes the files that it opened itself. */
  close(): void {
    for (const descriptor of this.#descriptors.splice(0)) closeSync(descriptor)
  }

  #isLinkage(offset: number): boolean {
    return this.#elf.sections.some(
      section =>
        section.name.startsWith('.plt') &&
        section.type !== sectionType.nobits &&
        offset >= section.offset &&
        offset < section.offset + section.size,
    )
  }
}

function named({ symbol, start }: FoundSymbol, demangle: boolean): FoundFunction {
  return { ...functionName(symbol, demangle), start }
}

/** Tables found for a program, and their source. */
class FoundTables {
  origin: FileSymbols['origin'] = 'none'
  fault = ''
  memoryBytes = 0
  readonly descriptors: number[] = []
  readonly #elf: ElfFile
  readonly #path: string
  readonly #debugDirs: readonly string[]
  readonly #unpack: Unpack | undefined

  constructor(elf: ElfFile, path: string, debugDirs: readonly string[], unpack: Unpack | undefined) {
    this.#elf = elf
    this.#path = path
    this.#debugDirs = debugDirs
    this.#unpack = unpack
  }

  /** Errors are stored as the file's fault; the remaining tables are still read. */
  attempt<T>(read: () => T): T | undefined {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof ElfError)) throw error
      this.fault = error.message
      return undefined
    }
  }

  /** The best readable table. Exported functions are part of a full table. */
  table(): SymbolTable | undefined {
    const exported = sourceOf(this.#elf, sectionType.dynsym)
    return (
      this.#taken('symtab', () => [sourceOf(this.#elf, sectionType.symtab)]) ??
      this.#taken('debug file', () => [this.#debugFile()]) ??
      this.#taken('gnu_debugdata', () => [this.#packed(), exported]) ??
      this.#taken('dynsym', () => [exported])
    )
  }

  /** Undefined if the first source is missing. */
  #taken(
    origin: FileSymbols['origin'],
    find: () => readonly (SymbolSource | undefined)[],
  ): SymbolTable | undefined {
    const table = this.attempt(() => {
      const sources = find()
      if (sources[0] === undefined) return undefined
      const found = sources.filter(source => source !== undefined)
      return new SymbolTable(this.#elf, found, origin === 'symtab' || origin === 'debug file')
    })
    if (table === undefined) this.closeOpened()
    else this.origin = origin
    return table
  }

  /** Closes files that are not used: memory files would leak. */
  closeOpened(): void {
    for (const descriptor of this.descriptors.splice(0)) closeSync(descriptor)
    this.memoryBytes = 0
  }

  #debugFile(): SymbolSource | undefined {
    const found = findDebugFile(this.#elf, this.#path, this.#debugDirs)
    if (found === undefined) return undefined
    this.descriptors.push(found.fd)
    return sourceOf(found.elf, sectionType.symtab)
  }

  /** ELF file with the functions that are not exported, compressed with xz (GDB manual, "MiniDebugInfo"). */
  #packed(): SymbolSource | undefined {
    const section = this.#elf.section('.gnu_debugdata')
    if (section === undefined || this.#unpack === undefined) return undefined
    const bytes = this.#elf.bytes(section, mostPackedBytes)
    let fd: number
    try {
      fd = this.#unpack(bytes, mostUnpackedBytes)
    } catch (cause) {
      if (!(cause instanceof DecodeError)) throw cause
      throw new ElfError(`has only .gnu_debugdata: ${cause.message}`, { cause })
    }
    this.descriptors.push(fd)
    const unpacked = ElfFile.of(fd)
    this.memoryBytes = unpacked.size
    return sourceOf(unpacked, sectionType.symtab)
  }
}

function sourceOf(elf: ElfFile, type: number): SymbolSource | undefined {
  const section = elf.sections.find((found: Section) => found.type === type && found.entrySize === 24)
  return section && { elf, section }
}
