import {
  closeSync,
  constants,
  fstatSync,
  futimesSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { ElfFile } from '../../foundation/lib/elf/elf-file.ts'
import { makeOwnDirectory } from '../../foundation/lib/own-directory.ts'
import { cfaRule, rbpRule, ruleBytes, type UnwindTable } from '../../foundation/model/unwind-table.ts'
import { unwindDigest } from './eh-frame.ts'

/** Changes with the format, and with the content of tables for the same file. */
const version = 3
const magic = 0x75637673
const defaultBytes = 64 * 1024 * 1024
/**
 * Words: magic, version, checksum of the rest, rows, pages, bytes of rules, unsupported, 0; then the digest of the
 * table's input.
 */
const headerBytes = 48
const checkedFrom = 12
const hashAt = 32
const mostRows = 2 ** 21
const mostPages = 2 ** 16 + 2
const mostRuleBytes = 2 ** 16 * ruleBytes
/** Linkers write 8, 16 or 20 bytes; shorter ids are not unique enough. */
const keyPattern = /^[0-9a-f]{16,128}$/
const suffix = '.unwind'
const newSuffix = '.new'

/**
 * Caches unwind tables on disk by the build id of their file. The digest of the table's input detects a file with the
 * same build id and other contents (stripped later, or forged). Invalid entries are ignored. Synchronous.
 */
export class UnwindCache {
  readonly #directory: string
  readonly #maxBytes: number
  readonly #isUsable: boolean
  readonly #digests = new WeakMap<ElfFile, string>()
  #fault: string | undefined

  /** Creates the directory. Keeps the most recently used tables, up to `maxBytes`. */
  constructor(directory: string, maxBytes = defaultBytes) {
    this.#directory = directory
    this.#maxBytes = maxBytes
    this.#try('use', () => {
      makeOwnDirectory(directory)
    })
    this.#isUsable = this.#fault === undefined
  }

  /** Why the directory is unusable, or the last table was not written; undefined if there is no fault. */
  get fault(): string | undefined {
    return this.#fault
  }

  read(elf: ElfFile): UnwindTable | undefined {
    const path = this.#path(elf)
    if (path === undefined) return undefined
    let fd: number | undefined
    try {
      fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
      const table = readTable(fd, this.#digestOf(elf))
      const now = new Date()
      if (table) futimesSync(fd, now, now)
      return table
    } catch {
      // Usually missing; after any error the table is built again.
      return undefined
    } finally {
      if (fd !== undefined) closeSync(fd)
    }
  }

  write(elf: ElfFile, table: UnwindTable): void {
    const path = this.#path(elf)
    const { rows, pages, rules } = table
    const size = headerBytes + rows.byteLength + pages.byteLength + rules.byteLength
    if (path === undefined || size > this.#maxBytes) return
    this.#fault = undefined
    this.#try('write to', () => {
      this.#makeRoom(size, path)
      const newPath = `${path}.${process.pid}${newSuffix}`
      try {
        writeTable(newPath, table, this.#digestOf(elf))
        renameSync(newPath, path)
      } finally {
        rmSync(newPath, { force: true })
      }
    })
  }

  /** Called twice for a file without a cached table. */
  #digestOf(elf: ElfFile): string {
    let digest = this.#digests.get(elf)
    if (digest === undefined) {
      digest = unwindDigest(elf)
      this.#digests.set(elf, digest)
    }
    return digest
  }

  #path(elf: ElfFile): string | undefined {
    if (!this.#isUsable || !keyPattern.test(elf.buildId)) return undefined
    return join(this.#directory, elf.buildId + suffix)
  }

  /** Removes the least recently used tables, and incomplete files of an earlier run. */
  #makeRoom(bytes: number, replaced: string): void {
    const kept = []
    let total = bytes
    for (const name of readdirSync(this.#directory)) {
      const path = join(this.#directory, name)
      if (name.endsWith(newSuffix)) rmSync(path, { force: true })
      if (!name.endsWith(suffix) || path === replaced) continue
      const { size, mtimeMs } = lstatSync(path)
      kept.push({ path, size, mtimeMs })
      total += size
    }
    kept.sort((a, b) => a.mtimeMs - b.mtimeMs)
    for (const { path, size } of kept) {
      if (total <= this.#maxBytes) return
      rmSync(path, { force: true })
      total -= size
    }
  }

  #try(verb: string, act: () => void): void {
    try {
      act()
    } catch (error) {
      this.#fault = `cannot ${verb} the directory ${this.#directory}: ${(error as Error).message}`
    }
  }
}

function writeTable(path: string, { rows, pages, rules, unsupported }: UnwindTable, hash: string): void {
  const header = Buffer.alloc(headerBytes)
  const words = [magic, version, 0, rows.length, pages.length, rules.length, unsupported]
  for (const [index, word] of words.entries()) header.writeUInt32LE(word, 4 * index)
  header.write(hash, hashAt, 'hex')
  const parts = [rows, pages, rules].map(part => Buffer.from(part.buffer, part.byteOffset, part.byteLength))
  let checksum = crc32(header.subarray(checkedFrom))
  for (const part of parts) checksum = crc32(part, checksum)
  header.writeUInt32LE(checksum, 8)
  const fd = openSync(path, 'wx', 0o600)
  try {
    for (const part of [header, ...parts])
      for (let done = 0; done < part.length; ) done += writeSync(fd, part, done)
  } finally {
    closeSync(fd)
  }
}

function readTable(fd: number, hash: string): UnwindTable | undefined {
  const { size } = fstatSync(fd)
  if (size < headerBytes || size > headerBytes + 4 * (mostRows + mostPages) + mostRuleBytes) return undefined
  const bytes = Buffer.allocUnsafeSlow(size)
  for (let done = 0; done < size; ) {
    const count = readSync(fd, bytes, done, size - done, done)
    if (count === 0) return undefined
    done += count
  }
  const word = (index: number) => bytes.readUInt32LE(4 * index)
  if (word(0) !== magic || word(1) !== version || word(2) !== crc32(bytes.subarray(checkedFrom)))
    return undefined
  if (bytes.toString('hex', hashAt, headerBytes) !== hash) return undefined
  const rowsEnd = headerBytes + 4 * word(3)
  const pagesEnd = rowsEnd + 4 * word(4)
  if (pagesEnd + word(5) !== size) return undefined
  const rows = new Uint32Array(bytes.buffer, headerBytes, word(3))
  const pages = new Uint32Array(bytes.buffer, rowsEnd, word(4))
  const table = { rows, pages, rules: new Uint8Array(bytes.buffer, pagesEnd), unsupported: word(6) }
  return isSound(table) ? table : undefined
}

/** The kernel side trusts tables, so corrupted ones must not be used. */
function isSound({ rows, pages, rules, unsupported }: UnwindTable): boolean {
  const ruleCount = rules.length / ruleBytes
  if (!Number.isInteger(ruleCount) || ruleCount > 2 ** 16 || unsupported > rows.length) return false
  for (let at = 0; at < rules.length; at += ruleBytes)
    if (rules[at]! > cfaRule.framePointer || rules[at + 1]! > rbpRule.atRbp) return false
  if (pages.length < 2 || pages.length > mostPages || pages[0] !== 0) return false
  for (let page = 0; page + 1 < pages.length; page++)
    if (!areSoundRows(rows, pages[page]!, pages[page + 1]!, ruleCount)) return false
  return pages[pages.length - 1] === rows.length
}

function areSoundRows(rows: Uint32Array, first: number, after: number, ruleCount: number): boolean {
  if (first > after || after > rows.length) return false
  let last = -1
  for (let row = first; row < after; row++) {
    const place = rows[row]! >>> 16
    if (place <= last || (rows[row]! & 0xffff) >= ruleCount) return false
    last = place
  }
  return true
}

/** Cache directory, beside the given queue directory. */
export function tableDirectory(queueDirectory: string): string {
  return join(dirname(queueDirectory), 'unwind')
}
