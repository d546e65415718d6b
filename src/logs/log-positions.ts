import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { FairShare } from '../lib/fair-share.ts'
import { checkOwnDirectory, makeOwnDirectory } from '../lib/own-directory.ts'
import { fileKey } from './file-finder.ts'
import { sharing } from './log-owner.ts'

/** How far a file was read. */
export interface Position {
  /** Under which the file was followed; it may have another name by now. */
  readonly path: string
  readonly device: number
  readonly inode: number
  /** Digest of its first bytes, and of how many. */
  readonly fingerprint: string
  readonly fingerprintLength: number
  /** Where the first line begins that has to be read again. */
  readonly offset: number
  /** When it was last there. Milliseconds since the Unix epoch. */
  readonly seenMs: number
  /** When it was last what the path leads to, likewise. What followed it was changed later. */
  readonly currentMs: number
}

const mostBytes = 16 * 1024 * 1024
/** Of memory for a position beside its texts, about. */
const entryBytes = 500
const maxOwnerLength = 4200
const maxCursors = 100
const maxCursorLength = 16 * 1024
const maxPathLength = 4096
const maxFileBytes = 64 * 1024 * 1024
/** What is gone is remembered for so long: it may come back, and its number may be given to another file. */
const keptMs = 24 * 3600 * 1000
const { O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_TRUNC, O_WRONLY } = constants

interface Entry {
  readonly position: Position
  /** Whose the log is: see `logOwner`. */
  readonly owner: string
  /** Both as JSON. */
  readonly text: string
  readonly bytes: number
}

/**
 * Remembers on disk how far logs were read: one JSON file, replaced as a whole. Who sets a position says that all before
 * it is secured. Their bytes are bounded, and shared by the owners of the logs: who makes files without end makes none of
 * the others' be forgotten.
 */
export class LogPositions {
  private readonly path: string
  private readonly warn: (message: string, hint: string) => void
  /** Those of one path in the order in which the files were begun. */
  private readonly entries = new Map<string, Entry>()
  /** Keys of the entries of each path, in their order. */
  private readonly keysOf = new Map<string, Set<string>>()
  /** The same by owner, in the order in which they were last set. */
  private readonly setOf = new Map<string, Set<string>>()
  private readonly share: FairShare
  private readonly cursors = new Map<string, string>()
  private writing: Promise<void> | undefined
  private isChanged = false
  private hasFailed = false
  /** Every file that was there at this time is known. Milliseconds since the Unix epoch; 0: no such time. */
  lookedMs = 0
  /** Positions that were forgotten for want of room, since the start. */
  forgotten = 0

  /** Reads what was kept. A file that is damaged is as none, with a warning. */
  constructor(
    path: string,
    warn: (message: string, hint: string) => void = () => undefined,
    capacity = mostBytes,
  ) {
    this.path = path
    this.warn = warn
    this.share = new FairShare(capacity)
    this.load()
  }

  get size(): number {
    return this.entries.size
  }

  /** Of memory, about. */
  get bytes(): number {
    return this.share.used
  }

  at(device: number, inode: number): Position | undefined {
    return this.entries.get(fileKey(device, inode))?.position
  }

  /** Under which files were followed. */
  paths(): string[] {
    return [...this.keysOf.keys()]
  }

  /** All files that were followed under a path, the one that was begun last at the end. */
  ofPath(path: string): Position[] {
    return Array.from(this.keysOf.get(path) ?? [], key => this.entries.get(key)!.position)
  }

  /** One that is known keeps its place in the order, and its owner where none is given. */
  set(position: Position, owner?: string): void {
    const key = fileKey(position.device, position.inode)
    const known = this.entries.get(key)
    if (known?.position.path !== position.path) {
      this.remove(key)
      const keys = this.keysOf.get(position.path) ?? new Set()
      this.keysOf.set(position.path, keys.add(key))
    } else this.unshare(key, known)
    const whose = owner ?? known?.owner ?? ''
    const text = JSON.stringify({ ...position, owner: whose })
    const bytes = entryBytes + text.length + position.path.length
    this.entries.set(key, { position, owner: whose, text, bytes })
    const own = this.setOf.get(whose) ?? new Set()
    this.setOf.set(whose, own.add(key))
    this.share.add(sharing(whose), bytes)
    this.isChanged = true
    while (!this.share.fits(0)) this.forgetOf(this.share.richest()!.group)
  }

  /** Forgets positions of about so many bytes that nobody needs, those first that were begun first, and returns how many. */
  shed(bytes: number, isNeeded: (position: Position) => boolean): number {
    const before = this.bytes
    for (const [key, { position }] of this.entries) {
      if (before - this.bytes >= bytes) break
      if (!isNeeded(position)) this.remove(key)
    }
    return before - this.bytes
  }

  forget(device: number, inode: number): void {
    this.remove(fileKey(device, inode))
  }

  /** Where somebody else is, who reads no files; '' where nothing is known. */
  cursor(name: string): string {
    return this.cursors.get(name) ?? ''
  }

  setCursor(name: string, text: string): void {
    if (text.length > maxCursorLength || this.cursors.get(name) === text) return
    if (this.cursors.size >= maxCursors && !this.cursors.has(name)) return
    this.cursors.set(name, text)
    this.isChanged = true
  }

  /** Resolves when all that was set before is on the disk, or when it cannot be, which is told once. */
  async save(): Promise<void> {
    while (this.writing) await this.writing
    if (!this.isChanged) return
    this.writing = this.write()
    await this.writing
    this.writing = undefined
  }

  private async write(): Promise<void> {
    this.isChanged = false
    this.forgetGone()
    const temporary = `${this.path}.tmp`
    try {
      makeOwnDirectory(dirname(this.path))
      // What a killed process left, or somebody's link.
      await rm(temporary, { force: true })
      const file = await open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600)
      try {
        await file.writeFile(this.text())
        await file.datasync()
      } finally {
        await file.close()
      }
      await rename(temporary, this.path)
      this.hasFailed = false
    } catch (error) {
      this.isChanged = true
      if (!this.hasFailed)
        this.warn(
          `cannot write log positions to ${this.path}: ${(error as Error).message}`,
          'make its directory writable, or set agent.logs.position_file; until then a restart may duplicate or miss log records',
        )
      this.hasFailed = true
    }
  }

  private text(): string {
    const head = { version: 1, lookedMs: this.lookedMs, cursors: Object.fromEntries(this.cursors) }
    const lines: string[] = []
    for (const { text } of this.entries.values()) lines.push(text)
    return `${JSON.stringify(head).slice(0, -1)},"files":[\n${lines.join(',\n')}]}\n`
  }

  private remove(key: string): void {
    const entry = this.entries.get(key)
    if (entry === undefined) return
    this.isChanged = true
    this.entries.delete(key)
    this.unshare(key, entry)
    const keys = this.keysOf.get(entry.position.path)
    keys?.delete(key)
    if (keys?.size === 0) this.keysOf.delete(entry.position.path)
  }

  private forgetGone(): void {
    const before = Date.now() - keptMs
    for (const [key, { position }] of this.entries) if (position.seenMs < before) this.remove(key)
  }

  /** What an owner has that was not set for longest. */
  private forgetOf(owner: string): void {
    this.forgotten++
    this.remove(this.setOf.get(owner)!.values().next().value!)
  }

  private unshare(key: string, { owner, bytes }: Entry): void {
    this.share.remove(sharing(owner), bytes)
    const own = this.setOf.get(owner)
    own?.delete(key)
    if (own?.size === 0) this.setOf.delete(owner)
  }

  private load(): void {
    let content: unknown
    try {
      content = readJson(this.path)
    } catch (error) {
      this.warn(
        `cannot read log positions from ${this.path}: ${(error as Error).message}`,
        'no action needed; svc starts as on a new host and rewrites the file',
      )
      return
    }
    if (content === undefined) return
    const { version, lookedMs, cursors, files } = content as Record<string, unknown>
    if (version !== 1 || !Array.isArray(files)) {
      this.warn(
        `cannot read log positions from ${this.path}: format of another version`,
        'no action needed; svc starts as on a new host and rewrites the file',
      )
      return
    }
    // A time that is yet to come would leave new files unread.
    if (isCount(lookedMs)) this.lookedMs = Math.min(lookedMs, Date.now())
    for (const file of files) if (isPosition(file)) this.set(plain(file), ownerOf(file))
    if (typeof cursors === 'object' && cursors !== null)
      for (const [name, text] of Object.entries(cursors))
        if (typeof text === 'string') this.setCursor(name, text)
    this.isChanged = false
  }
}

/** Undefined where there is no file. Throws in words, or the error of the system call. */
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
    // These may be too large to be exact.
    [device, inode].every(number => Number.isInteger(number) && (number as number) >= 0)
  )
}

/** Only the fields that are known. */
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
