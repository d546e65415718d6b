import { closeSync } from 'node:fs'
import { ElfFile, type Section } from '../../../foundation/lib/elf/elf-file.ts'
import { ElfError, sectionType } from '../../../foundation/lib/elf/elf-format.ts'
import { DecodeError } from '../../../kernel/decoder.ts'
import { findDebugFile } from './debug-files.ts'
import { type FunctionName, functionName } from './function-name.ts'
import { GoTable } from './go-table.ts'
import { linkageReason, strippedReason, uncoveredReason, unreadableReason } from './reasons.ts'
import { type FoundSymbol, type SymbolSource, SymbolTable } from './symbol-table.ts'

/** Of `.gnu_debugdata`, packed and unpacked. The names of a program of 100 MB take some MB. */
const mostPackedBytes = 16 * 1024 * 1024
const mostUnpackedBytes = 32 * 1024 * 1024
/** Beside the arrays: headers of the file and of its sections. */
const objectBytes = 16 * 1024

export interface SymbolOptions {
  /** C++ and Rust names as people write them. */
  readonly demangle: boolean
  /** Where debug files are looked for, for example `/usr/lib/debug`. */
  readonly debugDirs: readonly string[]
}

/**
 * Unpacks what xz compressed into a file in memory of at most `most` bytes, whose descriptor the caller closes. Throws
 * `DecodeError`.
 */
export type Unpack = (bytes: Uint8Array, most: number) => number

export interface FoundFunction extends FunctionName {
  /** Offset in the file. */
  readonly start: number
}

/**
 * The functions of a program or library: those of its own table, or its debug file's, or the small one that
 * distributions pack into `.gnu_debugdata`, together with what it exports; those of Go programs by Go's own table.
 */
export class FileSymbols {
  /** Of memory, files in memory included. */
  readonly bytes: number
  /** Of the tables that were taken. */
  readonly origin: 'symtab' | 'debug file' | 'gnu_debugdata' | 'dynsym' | 'none'
  readonly #elf: ElfFile
  readonly #path: string
  readonly #demangle: boolean
  readonly #go: GoTable | undefined
  readonly #table: SymbolTable | undefined
  /** Why tables that are there were not read; '': all were. */
  readonly #fault: string
  readonly #descriptors: number[]

  /** Reads the tables of an open file, which stays the caller's and must stay open until `close`. Does not throw. */
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

  /** Functions in the tables, those of Go's own not counted. */
  get count(): number {
    return this.#table?.count ?? 0
  }

  /** The function that covers a place in the file; undefined where no known one does. Does not throw. */
  find(offset: number): FoundFunction | undefined {
    try {
      const go = this.#go?.at(offset)
      if (go) return { name: go.symbol, systemName: go.symbol, type: 'go', isMangled: false, start: go.start }
      const found = this.#table?.at(offset)
      // A label without a size holds up to the next one; `_init`, before the stubs of the linker, is no name of theirs.
      if (found === undefined || (this.#isLinkage(offset) && !this.#isLinkage(found.start))) return undefined
      return named(found, this.#demangle)
    } catch (error) {
      if (error instanceof ElfError) return undefined
      throw error
    }
  }

  /** What stands in the place of a name where `find` has none. */
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

/** The tables that a program has, and where they were found. */
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

  /** What cannot be read is a fault of the file, and the rest of it is read all the same. */
  attempt<T>(read: () => T): T | undefined {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof ElfError)) throw error
      this.fault = error.message
      return undefined
    }
  }

  /** The best that can be read. Exported functions are among those of a whole table. */
  table(): SymbolTable | undefined {
    const exported = sourceOf(this.#elf, sectionType.dynsym)
    return (
      this.#taken('symtab', () => [sourceOf(this.#elf, sectionType.symtab)]) ??
      this.#taken('debug file', () => [this.#debugFile()]) ??
      this.#taken('gnu_debugdata', () => [this.#packed(), exported]) ??
      this.#taken('dynsym', () => [exported])
    )
  }

  /** Undefined where there is no first of the sources. */
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

  /** Whatever was opened is of no use: a file in memory would stay there. */
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

  /** An ELF file with the functions that are not exported, compressed by xz (GDB manual, "MiniDebugInfo"). */
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
