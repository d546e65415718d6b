import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import { ElfFile } from '../../../foundation/lib/elf/elf-file.ts'
import { ElfError } from '../../../foundation/lib/elf/elf-format.ts'
import { errnoText } from '../../../foundation/lib/errno-text.ts'
import { FairShare, isSameOwner, type Owner } from '../../../foundation/lib/fair-share.ts'
import type { DecodeOrigin, Decoder } from '../../../kernel/decoder.ts'
import { FileSymbols, type SymbolOptions } from './file-symbols.ts'
import { reasons, unreadableReason } from './reasons.ts'

/** Maximum programs and libraries; each may have a debug file in addition. */
const mostFiles = 64

export interface SymbolCacheOptions extends SymbolOptions {
  /** Maximum memory for the tables of all files; one file is kept even if it needs more. */
  readonly cacheBytes: number
}

/** Idle time before a file is closed: an open file blocks its file system and keeps its disk space. */
const idleMs = 60_000

interface Entry {
  readonly fd: number
  readonly symbols: FileSymbols
  /** '' if the build id identifies the file. */
  readonly hash: string
  usedMs: number
  owner: Owner
  /** Bytes charged for it. */
  share: number
}

const noOwner: Owner = { group: '', user: '' }

/** The wanted file; its path may hold another file now. */
export interface RequestedFile {
  /** Path as seen by its process. */
  readonly path: string
  /** '' if it has none. */
  readonly buildId: string
}

/**
 * Symbols of recently used files, by the profiler's file number. A file stays open while its symbols are cached,
 * because names are read on demand.
 */
export class SymbolCache {
  /** Memory of the tables. */
  bytes = 0
  readonly losses = { refused: 0, taken: 0 }
  #share: FairShare
  #options: SymbolCacheOptions
  readonly #decoder: Decoder | undefined
  readonly #entries = new Map<number, Entry>()
  /** Hashes of files without a build id by their number, also after they are closed. */
  readonly #hashes = new Map<number, string>()

  constructor(options: SymbolCacheOptions, decoder?: Decoder) {
    this.#options = options
    this.#share = new FairShare(options.cacheBytes)
    this.#decoder = decoder
  }

  get files(): number {
    return this.#entries.size
  }

  /**
   * Symbols of a file, or a reason in brackets. `source` returns a path at which the file can be opened now, for
   * example `/proc/self/fd/7` or `/proc/17/map_files/…`; undefined if there is none. Does not throw.
   */
  of(
    id: number,
    file: RequestedFile,
    source: () => string | undefined,
    ownerOf: () => Owner = () => noOwner,
  ): FileSymbols | string {
    const known = this.#entries.get(id)
    if (known) {
      known.usedMs = performance.now()
      this.#entries.delete(id)
      this.#entries.set(id, known)
      return known.symbols
    }
    const entry = this.#opened(file, source, this.#hashes.get(id))
    if (typeof entry === 'string') return entry
    if (file.buildId === '') this.#hashes.set(id, entry.hash)
    this.#entries.set(id, entry)
    this.bytes += entry.symbols.bytes
    entry.owner = ownerOf()
    entry.share = Math.max(entry.symbols.bytes, Math.ceil(this.#options.cacheBytes / mostFiles))
    this.#share.add(entry.owner, entry.share)
    while (!this.#share.hasRoom(0) && this.#dropOf(this.#share.richest(), id)) this.losses.taken++
    return entry.symbols
  }

  /** Cached symbols are dropped, as they were read with other options. */
  configure(options: SymbolCacheOptions): void {
    this.#options = options
    this.close()
    this.#share = new FairShare(options.cacheBytes)
  }

  /** The number becomes invalid. */
  forget(id: number): void {
    this.#hashes.delete(id)
    this.#drop(id)
  }

  #drop(id: number): void {
    const entry = this.#entries.get(id)
    if (entry === undefined) return
    this.#entries.delete(id)
    this.bytes -= entry.symbols.bytes
    this.#share.remove(entry.owner, entry.share)
    entry.symbols.close()
    closeSync(entry.fd)
  }

  /** Closes all files. The cache can be used again. */
  close(): void {
    for (const id of this.#entries.keys()) this.#drop(id)
  }

  /** Closes files that were not used in the last minute. */
  closeIdle(): void {
    const now = performance.now()
    for (const [id, { usedMs }] of this.#entries) if (now - usedMs > idleMs) this.#drop(id)
  }

  /** Drops tables, largest owners first, to free memory. Returns the bytes freed. */
  shed(bytes: number): number {
    const before = this.bytes
    while (before - this.bytes < bytes && this.#dropOf(this.#share.richest(), undefined));
    return before - this.bytes
  }

  /** Drops the least recently used file of an owner, except one. */
  #dropOf(owner: Owner | undefined, except: number | undefined): boolean {
    for (const [id, entry] of this.#entries) {
      if (id === except || !isSameOwner(entry.owner, owner)) continue
      this.#drop(id)
      return true
    }
    return false
  }

  #opened(
    { path, buildId }: RequestedFile,
    source: () => string | undefined,
    hash: string | undefined,
  ): Entry | string {
    let fd: number
    try {
      const from = source()
      if (from === undefined) return reasons.processEnded
      fd = openSync(from, constants.O_RDONLY | constants.O_NONBLOCK)
    } catch (error) {
      const { errno } = error as NodeJS.ErrnoException
      return unreadableReason(path, `cannot open: ${errno ? errnoText(Math.abs(errno)) : String(error)}`)
    }
    try {
      const elf = ElfFile.of(fd)
      const decoder = this.#decoder
      const unpack =
        decoder && ((bytes: Uint8Array, most: number) => decoder.unpack(bytes, most, originOf(fd)))
      const isSame = elf.buildId === buildId && (hash === undefined || elf.htlHash() === hash)
      if (isSame)
        return {
          fd,
          symbols: FileSymbols.of(elf, path, this.#options, unpack),
          hash: buildId === '' ? elf.htlHash() : '',
          usedMs: performance.now(),
          owner: noOwner,
          share: 0,
        }
      closeSync(fd)
      return unreadableReason(path, 'replaced by another file')
    } catch (error) {
      closeSync(fd)
      if (error instanceof ElfError) return unreadableReason(path, error.message)
      throw error
    }
  }
}

/** Owner of a file: for containers the file system is more specific than the user. */
export function originOf(fd: number): DecodeOrigin {
  const { dev, ino, uid } = fstatSync(fd)
  return { file: `${dev}:${ino}`, owner: `${dev}:${uid}` }
}
