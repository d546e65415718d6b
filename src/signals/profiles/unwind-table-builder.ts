import { fstatSync, readSync, type Stats, statSync } from 'node:fs'
import { ElfFile } from '../../foundation/lib/elf/elf-file.ts'
import { ElfError } from '../../foundation/lib/elf/elf-format.ts'
import type { Owner } from '../../foundation/lib/fair-share.ts'
import { errorText } from '../../foundation/lib/logger.ts'
import type { Mapping } from '../../foundation/model/profile.ts'
import type { UnwindTable } from '../../foundation/model/unwind-table.ts'
import { type DecodeOrigin, Decoder } from '../../kernel/decoder.ts'
import { isOfHost } from '../../kernel/mapped-mounts.ts'
import { type Mapping as ProcessMapping, readMappings } from '../../kernel/process-maps.ts'
import { ownerOf } from '../../kernel/process-owner.ts'
import { buildUnwindTable } from './eh-frame.ts'
import { vdsoPath } from './mapped-files.ts'
import type { Answer, MappedFile, SymbolSettings } from './messages.ts'
import type { FileSymbols } from './symbols/file-symbols.ts'
import { reasons, unreadableReason } from './symbols/reasons.ts'
import { originOf, SymbolCache } from './symbols/symbol-cache.ts'
import { vdsoSymbols } from './symbols/vdso.ts'
import { UnwindCache } from './unwind-cache.ts'
import { runtimes } from './unwinders/index.ts'
import type { RuntimeFile, RuntimeUnit } from './unwinders/runtime.ts'

/** Data of a file with executed code. */
export interface KnownFile {
  readonly file: MappedFile
  /** Undefined: not an ELF file, or not read. Its descriptor may be closed: only data that was read is used. */
  readonly elf: ElfFile | undefined
  readonly mapping: Mapping | undefined
  readonly origin: DecodeOrigin
  /** Why it has no table; '' if it has one. */
  readonly reason: string
  readonly runtime: { readonly unit: RuntimeUnit; readonly file: RuntimeFile } | undefined
}

/** The kernel side's number for just-in-time code in memory that is a file. */
const addressCode = 255
/** Maximum files without a table kept for the status. */
const mostUntabled = 20

/** Opens files, builds their unwind tables, and identifies their runtimes. */
export class UnwindTableBuilder {
  readonly symbols: SymbolCache
  readonly decoder: Decoder
  /** Most recent files without a table. */
  readonly withoutTable: { path: string; reason: string }[] = []
  cacheHits = 0
  #settings: SymbolSettings
  #cache: UnwindCache | undefined
  #vdso: FileSymbols | undefined
  readonly #files = new Map<number, KnownFile>()
  /** State of each file when read, and the last process that ran it since the last check. */
  readonly #stamps = new Map<number, Stamp>()
  readonly #metBy = new Map<number, number>()

  constructor(settings: SymbolSettings, decoder = new Decoder()) {
    this.#settings = settings
    this.decoder = decoder
    this.symbols = new SymbolCache(settings, decoder)
    this.#cache = settings.cacheDir === '' ? undefined : new UnwindCache(settings.cacheDir)
  }

  get size(): number {
    return this.#files.size
  }

  configure(settings: SymbolSettings): void {
    if (settings.cacheDir !== this.#settings.cacheDir)
      this.#cache = settings.cacheDir === '' ? undefined : new UnwindCache(settings.cacheDir)
    this.#settings = settings
    this.symbols.configure(settings)
  }

  known(id: number): KnownFile | undefined {
    return this.#files.get(id)
  }

  /**
   * File of a process's mapping. Paths alone are ambiguous, as containers use the same for different files; but if
   * device and inode in the listing differ from those of the code (overlayfs), the path in its own process identifies
   * it.
   */
  mapped(pid: number, mapping: ProcessMapping): KnownFile | undefined {
    for (const known of this.#files.values()) {
      const { file } = known
      if (file.path !== mapping.path) continue
      if (file.pid === pid || mapping.file === listed(file)) return known
    }
    return undefined
  }

  /** Records that a process runs code of the file. */
  markUsed(id: number, pid: number): void {
    if (this.#files.has(id)) this.#metBy.set(id, pid)
  }

  /**
   * Recently used files whose inode has new content at the same path, such as an overwritten program. Their ids are
   * invalid.
   */
  replaced(): number[] {
    const found: number[] = []
    for (const [id, pid] of this.#metBy) {
      const before = this.#stamps.get(id)
      const known = this.#files.get(id)
      if (before === undefined || known === undefined) continue
      // File systems that users mounted in their own namespaces may never respond.
      if (!isOfHost('/proc', pid)) continue
      const now = stampAt(`/proc/${pid}/root${known.file.path}`)
      if (now?.ino === before.ino && now.dev === before.dev && isOther(now, before)) found.push(id)
    }
    this.#metBy.clear()
    return found
  }

  /** Symbols of a file, which is opened again through a process that runs it; or a reason in brackets. */
  symbolsOf(id: number, pid: number, owner: () => Owner): FileSymbols | string {
    const known = this.#files.get(id)
    if (known === undefined) return reasons.processEnded
    const { path } = known.file
    if (known.elf === undefined) return unreadableReason(path, known.reason)
    if (path === vdsoPath) {
      this.#vdso ??= vdsoSymbols()
      return this.#vdso ?? reasons.vdso
    }
    const source = () => {
      const { buildId } = known.elf!
      return mappedAt(pid, path) ?? mappedAt(known.file.pid, path) ?? (buildId === '' ? undefined : own(path))
    }
    return this.symbols.of(id, { path, buildId: known.elf.buildId }, source, owner)
  }

  forget(id: number): void {
    this.#files.delete(id)
    this.#stamps.delete(id)
    this.#metBy.delete(id)
    this.symbols.forget(id)
  }

  /** Reads a file: its table, and the data to name its frames while it can be opened. The caller keeps `fd`. */
  add(file: MappedFile, fd: number): Answer {
    const known = this.#read(file, fd)
    this.#files.set(file.id, known)
    if (fd >= 0 && file.path !== vdsoPath) this.#stamps.set(file.id, stampOf(fstatSync(fd)))
    let table: UnwindTable | undefined
    let { reason } = known
    if (known.elf !== undefined) {
      try {
        table = this.#tableOf(known.elf)
        if (table === undefined) reason = 'it has no .eh_frame'
      } catch (error) {
        reason = errorText(error)
      }
      if (file.path !== vdsoPath)
        this.symbols.of(
          file.id,
          { path: file.path, buildId: known.elf.buildId },
          () => `/proc/self/fd/${fd}`,
          () => ownerOf('/proc', file.pid),
        )
    }
    if (reason !== '') this.note(file.path, reason)
    const runtime = known.runtime?.unit.code ?? (known.reason === notElf ? addressCode : 0)
    return { kind: 'table', id: file.id, table, runtime }
  }

  #read(file: MappedFile, fd: number): KnownFile {
    const origin = fd < 0 ? noOrigin : originOf(fd)
    const none = { file, elf: undefined, mapping: undefined, origin, runtime: undefined }
    if (fd < 0) return { ...none, reason: file.unread }
    let elf: ElfFile
    try {
      elf = file.path === vdsoPath ? ElfFile.of(fd, file.end - file.start, file.start) : ElfFile.of(fd)
    } catch (error) {
      // Without an entry, its frames would be reported as those of an ended process.
      if (!(error instanceof ElfError)) return { ...none, reason: errorText(error) }
      return { ...none, reason: hasMagic(fd) ? error.message : notElf }
    }
    const mapping = { path: file.path, buildId: elf.buildId, hash: elf.htlHash(), ...elf.codeMapping() }
    return { file, elf, mapping, origin, reason: '', runtime: this.#runtimeOf(elf, file.path) }
  }

  #tableOf(elf: ElfFile): UnwindTable | undefined {
    const cached = this.#cache?.read(elf)
    if (cached !== undefined) {
      this.cacheHits++
      return cached
    }
    const table = buildUnwindTable(elf)
    if (table !== undefined) this.#cache?.write(elf, table)
    return table
  }

  #runtimeOf(elf: ElfFile, path: string): KnownFile['runtime'] {
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

  /** Stores for the status why a file is not read, or only in part. */
  note(path: string, reason: string): void {
    if (this.withoutTable.some(each => each.path === path && each.reason === reason)) return
    this.withoutTable.push({ path, reason })
    if (this.withoutTable.length > mostUntabled) this.withoutTable.shift()
  }
}

/** No names are decoded for it. */
const noOrigin: DecodeOrigin = { file: '', owner: '' }
const notElf = 'not an ELF file; its code is treated as just-in-time code'

function hasMagic(fd: number): boolean {
  const bytes = Buffer.alloc(4)
  return readSync(fd, bytes, 0, 4, 0) === 4 && bytes.toString('latin1') === '\x7fELF'
}

/** A file as in mapping lists (proc(5), maps). */
function listed({ dev, inode }: MappedFile): string {
  const hex = (part: number) => part.toString(16).padStart(2, '0')
  return `${hex(dev >>> 20)}:${hex(dev & 0xfffff)}:${inode}`
}

interface Stamp {
  readonly dev: number
  readonly ino: number
  readonly size: number
  readonly mtimeMs: number
  readonly ctimeMs: number
}

function stampOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): Stamp {
  return { dev, ino, size, mtimeMs, ctimeMs }
}

function stampAt(path: string): Stamp | undefined {
  try {
    return stampOf(statSync(path))
  } catch {
    return undefined // file or process is gone
  }
}

/** The change time covers all writes; a new name or owner only causes another read. */
function isOther(now: Stamp, before: Stamp): boolean {
  return now.size !== before.size || now.mtimeMs !== before.mtimeMs || now.ctimeMs !== before.ctimeMs
}

/** If its process is gone, the file at the same path on the host may be the same: the build id is compared. */
function own(path: string): string | undefined {
  try {
    return statSync(path).isFile() ? path : undefined
  } catch {
    return undefined // in a container, or gone
  }
}

/** Path to open a file through a process that maps it. */
function mappedAt(pid: number, path: string): string | undefined {
  try {
    const found = readMappings('/proc', pid).find(mapping => mapping.path === path)
    return found && `/proc/${pid}/map_files/${found.range}`
  } catch {
    return undefined // it ended
  }
}
