import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { FairShare } from '../../foundation/lib/fair-share.ts'
import { checkOwnDirectory, makeOwnDirectory } from '../../foundation/lib/own-directory.ts'
import { fileKey } from './file-finder.ts'
import { sharing } from './log-owner.ts'

/** Read position of a file. */
export interface Position {
  /** Path under which the file was followed; it may have another name now. */
  readonly path: string
  readonly device: number
  readonly inode: number
  /** Digest of its first bytes, and their number. */
  readonly fingerprint: string
  readonly fingerprintLength: number
  /** Offset of the first line that must be read again. */
  readonly offset: number
  /** Last time that it existed, in milliseconds since the Unix epoch. */
  readonly seenMs: number
  /** Last time that it was at its path, likewise. Its successor changed later. */
  readonly currentMs: number
}

const mostBytes = 16 * 1024 * 1024
/** Approximate memory of a position without its texts, in bytes. */
const entryBytes = 500
const maxOwnerLength = 4200
const maxCursors = 100
const maxCursorLength = 16 * 1024
const maxPathLength = 4096
const maxFileBytes = 64 * 1024 * 1024
/**
 * Time to keep the positions of removed files, in milliseconds: they may come back, and their inode numbers may be
 * reused.
 */
const keptMs = 24 * 3600 * 1000
const { O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_TRUNC, O_WRONLY } = constants

interface Entry {
  readonly position: Position
  /** Owner of the log: see `logOwner`. */
  readonly owner: string
  /** Position and owner as JSON. */
  readonly text: string
  readonly bytes: number
}

/**
 * Stores read positions on disk: one JSON file, replaced as a whole. Setting a position means that all data before it
 * is secured. Their size is limited, and shared by the owners of the logs: an owner with endless files does not evict
 * positions of others.
 */
export class LogPositions {
  readonly #path: string
  readonly #warn: (message: string, hint: string) => void
  /** Positions; those of one path in the order in which the files were started. */
  readonly #entries = new Map<string, Entry>()
  /** Keys of the entries of each path, in order. */
  readonly #keysOf = new Map<string, Set<string>>()
  /** Keys by owner, in the order of their last change. */
  readonly #setOf = new Map<string, Set<string>>()
  readonly #share: FairShare
  readonly #cursors = new Map<string, string>()
  #writing: Promise<void> | undefined
  #isChanged = false
  #hasFailed = false
  /** Time of the last complete scan, in milliseconds since the Unix epoch; 0 for none. */
  lookedMs = 0
  /** Positions evicted for lack of room, since the start. */
  forgotten = 0

  /** Loads the saved positions. A damaged file is ignored with a warning. */
  constructor(
    path: string,
    warn: (message: string, hint: string) => void = () => undefined,
    capacity = mostBytes,
  ) {
    this.#path = path
    this.#warn = warn
    this.#share = new FairShare(capacity)
    this.#load()
  }

  get size(): number {
    return this.#entries.size
  }

  /** Approximate memory, in bytes. */
  get bytes(): number {
    return this.#share.used
  }

  at(device: number, inode: number): Position | undefined {
    return this.#entries.get(fileKey(device, inode))?.position
  }

  /** Paths of all positions. */
  paths(): string[] {
    return [...this.#keysOf.keys()]
  }

  /** Positions of all files of a path, the latest last. */
  ofPath(path: string): Position[] {
    return Array.from(this.#keysOf.get(path) ?? [], key => this.#entries.get(key)!.position)
  }

  /** Sets a position. A known one keeps its place in the order, and its owner if none is given. */
  set(position: Position, owner?: string): void {
    const key = fileKey(position.device, position.inode)
    const known = this.#entries.get(key)
    if (known?.position.path !== position.path) {
      this.#remove(key)
      const keys = this.#keysOf.get(position.path) ?? new Set()
      this.#keysOf.set(position.path, keys.add(key))
    } else this.#unshare(key, known)
    const whose = owner ?? known?.owner ?? ''
    const text = JSON.stringify({ ...position, owner: whose })
    const bytes = entryBytes + text.length + position.path.length
    this.#entries.set(key, { position, owner: whose, text, bytes })
    const own = this.#setOf.get(whose) ?? new Set()
    this.#setOf.set(whose, own.add(key))
    this.#share.add(sharing(whose), bytes)
    this.#isChanged = true
    while (!this.#share.hasRoom(0)) this.#forgetOf(this.#share.richest()!.group)
  }

  /** Frees about so many bytes of unneeded positions, the oldest first, and returns how many. */
  shed(bytes: number, isNeeded: (position: Position) => boolean): number {
    const before = this.bytes
    for (const [key, { position }] of this.#entries) {
      if (before - this.bytes >= bytes) break
      if (!isNeeded(position)) this.#remove(key)
    }
    return before - this.bytes
  }

  forget(device: number, inode: number): void {
    this.#remove(fileKey(device, inode))
  }

  /** Cursor of a source without files; '' if unknown. */
  cursor(name: string): string {
    return this.#cursors.get(name) ?? ''
  }

  setCursor(name: string, text: string): void {
    if (text.length > maxCursorLength || this.#cursors.get(name) === text) return
    if (this.#cursors.size >= maxCursors && !this.#cursors.has(name)) return
    this.#cursors.set(name, text)
    this.#isChanged = true
  }

  /** Resolves when all changes are on disk, or after a write error, which is logged once. */
  async save(): Promise<void> {
    while (this.#writing) await this.#writing
    if (!this.#isChanged) return
    this.#writing = this.#write()
    await this.#writing
    this.#writing = undefined
  }

  async #write(): Promise<void> {
    this.#isChanged = false
    this.#forgetGone()
    const temporary = `${this.#path}.tmp`
    try {
      makeOwnDirectory(dirname(this.#path))
      // Left by a killed process, or a link made by another user.
      await rm(temporary, { force: true })
      const file = await open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600)
      try {
        await file.writeFile(this.#text())
        await file.datasync()
      } finally {
        await file.close()
      }
      await rename(temporary, this.#path)
      this.#hasFailed = false
    } catch (error) {
      this.#isChanged = true
      if (!this.#hasFailed)
        this.#warn(
          `cannot write log positions to ${this.#path}: ${(error as Error).message}`,
          'make its directory writable, or set agent.logs.position_file; until then a restart may duplicate or miss log records',
        )
      this.#hasFailed = true
    }
  }

  #text(): string {
    const head = { version: 1, lookedMs: this.lookedMs, cursors: Object.fromEntries(this.#cursors) }
    const lines: string[] = []
    for (const { text } of this.#entries.values()) lines.push(text)
    return `${JSON.stringify(head).slice(0, -1)},"files":[\n${lines.join(',\n')}]}\n`
  }

  #remove(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#isChanged = true
    this.#entries.delete(key)
    this.#unshare(key, entry)
    const keys = this.#keysOf.get(entry.position.path)
    keys?.delete(key)
    if (keys?.size === 0) this.#keysOf.delete(entry.position.path)
  }

  #forgetGone(): void {
    const before = Date.now() - keptMs
    for (const [key, { position }] of this.#entries) if (position.seenMs < before) this.#remove(key)
  }

  /** Evicts the least recently changed position of an owner. */
  #forgetOf(owner: string): void {
    this.forgotten++
    this.#remove(this.#setOf.get(owner)!.values().next().value!)
  }

  #unshare(key: string, { owner, bytes }: Entry): void {
    this.#share.remove(sharing(owner), bytes)
    const own = this.#setOf.get(owner)
    own?.delete(key)
    if (own?.size === 0) this.#setOf.delete(owner)
  }

  #load(): void {
    let content: unknown
    try {
      content = readJson(this.#path)
    } catch (error) {
      this.#warn(
        `cannot read log positions from ${this.#path}: ${(error as Error).message}`,
        'no action needed; svc starts as on a new host and rewrites the file',
      )
      return
    }
    if (content === undefined) return
    const { version, lookedMs, cursors, files } = content as Record<string, unknown>
    if (version !== 1 || !Array.isArray(files)) {
      this.#warn(
        `cannot read log positions from ${this.#path}: format of another version`,
        'no action needed; svc starts as on a new host and rewrites the file',
      )
      return
    }
    // A time in the future would leave new files unread.
    if (isCount(lookedMs)) this.lookedMs = Math.min(lookedMs, Date.now())
    for (const file of files) if (isPosition(file)) this.set(plain(file), ownerOf(file))
    if (typeof cursors === 'object' && cursors !== null)
      for (const [name, text] of Object.entries(cursors))
        if (typeof text === 'string') this.setCursor(name, text)
    this.#isChanged = false
  }
}

/** Undefined without a file. Throws an error with a reason, or that of the system call. */
function readJson(path: string): unknown {
  let fd: number
  checkOwnDirectory(dirname(path))
  try {
    fd = openSync(path, O_RDONLY | O_NONBLOCK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    const stats = fstatSync(fd)
    if (!stats.isFile()) throw new Error('it is not a regular file')
    if (stats.size > maxFileBytes) throw new Error(`it is larger than ${maxFileBytes} bytes`)
    const content: unknown = JSON.parse(readFileSync(fd, 'utf8'))
    if (typeof content !== 'object' || content === null) throw new Error('it is not a JSON object')
    return content
  } finally {
    closeSync(fd)
  }
}

function isPosition(value: unknown): value is Position {
  if (typeof value !== 'object' || value === null) return false
  const { path, device, inode, fingerprint, fingerprintLength, offset, seenMs, currentMs } = value as Record<
    string,
    unknown
  >
  return (
    typeof path === 'string' &&
    path.startsWith('/') &&
    path.length <= maxPathLength &&
    typeof fingerprint === 'string' &&
    fingerprint.length <= 64 &&
    [fingerprintLength, offset, seenMs, currentMs].every(isCount) &&
    // These may be too large for an exact double.
    [device, inode].every(number => Number.isInteger(number) && (number as number) >= 0)
  )
}

/** Copy with only the known fields. */
function plain(position: Position): Position {
  const { path, device, inode, fingerprint, fingerprintLength, offset } = position
  const now = Date.now()
  const seenMs = Math.min(position.seenMs, now)
  const currentMs = Math.min(position.currentMs, now)
  return { path, device, inode, fingerprint, fingerprintLength, offset, seenMs, currentMs }
}

/** '' in files of earlier versions. */
function ownerOf(file: Position & { readonly owner?: unknown }): string {
  const { owner } = file
  return typeof owner === 'string' && owner.length <= maxOwnerLength ? owner : ''
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
