import { readSync } from 'node:fs'
import { readMappings } from '../kernel/process-maps.ts'
import { ElfFile } from '../lib/elf/elf-file.ts'
import { ElfError } from '../lib/elf/elf-format.ts'
import { errorText } from '../lib/logger.ts'
import type { Mapping } from '../model/profile.ts'
import type { UnwindTable } from '../model/unwind-table.ts'
import { runtimes } from '../unwinders/index.ts'
import type { RuntimeFile, RuntimeUnit } from '../unwinders/runtime.ts'
import { buildUnwindTable } from './eh-frame.ts'
import { vdsoPath } from './mapped-files.ts'
import type { Answer, MappedFile, SymbolSettings } from './messages.ts'
import type { FileSymbols } from './symbols/file-symbols.ts'
import { reasons, unreadableReason } from './symbols/reasons.ts'
import { SymbolCache } from './symbols/symbol-cache.ts'
import { vdsoSymbols } from './symbols/vdso.ts'
import { UnwindCache } from './unwind-cache.ts'

/** What is known of a file of which code runs. */
export interface KnownFile {
  readonly file: MappedFile
  /** Undefined: it is no ELF file, or is not read. Its descriptor may be closed: only what was read is asked for. */
  readonly elf: ElfFile | undefined
  readonly mapping: Mapping | undefined
  /** Why it has no table; '' where it has one. */
  readonly reason: string
  readonly runtime: { readonly unit: RuntimeUnit; readonly file: RuntimeFile } | undefined
}

/** The kernel side's number for memory of just-in-time code that happens to be a file. */
const addressCode = 255
/** Files without a table that are remembered for the status. */
const mostUntabled = 20

/** Opens files, makes their unwind tables, and knows which runtimes they hold. */
export class Workshop {
  readonly symbols: SymbolCache
  /** Files without a table, the last ones. */
  readonly untabled: { path: string; reason: string }[] = []
  cacheHits = 0
  private settings: SymbolSettings
  private cache: UnwindCache | undefined
  private vdso: FileSymbols | undefined
  private readonly files = new Map<number, KnownFile>()

  constructor(settings: SymbolSettings) {
    this.settings = settings
    this.symbols = new SymbolCache(settings)
    this.cache = settings.cacheDir === '' ? undefined : new UnwindCache(settings.cacheDir)
  }

  get size(): number {
    return this.files.size
  }

  configure(settings: SymbolSettings): void {
    if (settings.cacheDir !== this.settings.cacheDir)
      this.cache = settings.cacheDir === '' ? undefined : new UnwindCache(settings.cacheDir)
    this.settings = settings
    this.symbols.configure(settings)
  }

  known(id: number): KnownFile | undefined {
    return this.files.get(id)
  }

  byPath(path: string): KnownFile | undefined {
    for (const known of this.files.values()) if (known.file.path === path) return known
    return undefined
  }

  /** The symbols of a file, which is opened again through a process that runs it; in brackets why there are none. */
  symbolsOf(id: number, pid: number): FileSymbols | string {
    const known = this.files.get(id)
    if (known === undefined) return reasons.processEnded
    const { path } = known.file
    if (known.elf === undefined) return unreadableReason(path, known.reason)
    if (path === vdsoPath) {
      this.vdso ??= vdsoSymbols()
      return this.vdso ?? reasons.vdso
    }
    return this.symbols.of(id, { path, buildId: known.elf.buildId }, () => mappedAt(pid, path))
  }

  forget(id: number): void {
    this.files.delete(id)
    this.symbols.forget(id)
  }

  /** Reads a file: its table, and what is needed to name its frames while it may be opened. `fd` stays the caller's. */
  add(file: MappedFile, fd: number): Answer {
    const known = this.read(file, fd)
    this.files.set(file.id, known)
    let table: UnwindTable | undefined
    let { reason } = known
    if (known.elf !== undefined) {
      try {
        table = this.tableOf(known.elf)
        if (table === undefined) reason = 'it has no .eh_frame'
      } catch (error) {
        reason = errorText(error)
      }
      if (file.path !== vdsoPath)
        this.symbols.of(file.id, { path: file.path, buildId: known.elf.buildId }, () => `/proc/self/fd/${fd}`)
    }
    if (reason !== '') this.note(file.path, reason)
    const runtime = known.runtime?.unit.code ?? (known.reason === notElf ? addressCode : 0)
    return { kind: 'table', id: file.id, table, runtime }
  }

  private read(file: MappedFile, fd: number): KnownFile {
    const none = { file, elf: undefined, mapping: undefined, runtime: undefined }
    if (fd < 0) return { ...none, reason: 'it is on a file system that may not answer, and is not opened' }
    let elf: ElfFile
    try {
      elf = file.path === vdsoPath ? ElfFile.of(fd, file.end - file.start, file.start) : ElfFile.of(fd)
    } catch (error) {
      if (!(error instanceof ElfError)) throw error
      return { ...none, reason: hasMagic(fd) ? error.message : notElf }
    }
    const mapping = { path: file.path, buildId: elf.buildId, hash: elf.htlHash(), ...elf.codeMapping() }
    return { file, elf, mapping, reason: '', runtime: this.runtimeOf(elf, file.path) }
  }

  private tableOf(elf: ElfFile): UnwindTable | undefined {
    const cached = this.cache?.read(elf)
    if (cached !== undefined) {
      this.cacheHits++
      return cached
    }
    const table = buildUnwindTable(elf)
    if (table !== undefined) this.cache?.write(elf, table)
    return table
  }

  private runtimeOf(elf: ElfFile, path: string): KnownFile['runtime'] {
    for (const unit of runtimes) {
      try {
        const file = unit.recognise(elf, path)
        if (typeof file === 'string') this.note(path, file)
        else if (file !== undefined) return { unit, file }
      } catch (error) {
        if (!(error instanceof ElfError)) throw error
      }
    }
    return undefined
  }

  /** Remembers for the status why a file is not read, or not in full. */
  note(path: string, reason: string): void {
    if (this.untabled.some(each => each.path === path && each.reason === reason)) return
    this.untabled.push({ path, reason })
    if (this.untabled.length > mostUntabled) this.untabled.shift()
  }
}

const notElf = 'it is no ELF file: its code is taken for that of a just-in-time compiler'

function hasMagic(fd: number): boolean {
  const bytes = Buffer.alloc(4)
  return readSync(fd, bytes, 0, 4, 0) === 4 && bytes.toString('latin1') === '\x7fELF'
}

/** Where a file can be opened through a process that has it mapped. */
function mappedAt(pid: number, path: string): string | undefined {
  try {
    const found = readMappings('/proc', pid).find(mapping => mapping.path === path)
    return found && `/proc/${pid}/map_files/${found.range}`
  } catch {
    return undefined // it ended
  }
}
