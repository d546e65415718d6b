import { closeSync, constants, fstatSync, openSync, readlinkSync } from 'node:fs'
import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import type { Owner } from '../../foundation/lib/fair-share.ts'
import { small } from '../../foundation/lib/small-tables.ts'
import { type FileIdentity, maxFileId, type UnknownFile } from '../../foundation/model/raw-stack.ts'
import type { UnwindTable } from '../../foundation/model/unwind-table.ts'
import { mayHangBehind, openPlace } from '../../kernel/mapped-mounts.ts'
import { vdsoRange } from '../../kernel/process-maps.ts'
import { ownerOf } from '../../kernel/process-owner.ts'
import { processStrings } from '../../kernel/process-strings.ts'
import type { MappedFile } from './messages.ts'
import type { Sampler } from './sampler.ts'
import type { UnwindArena } from './unwind-arena.ts'

export interface MappedFilesOptions {
  readonly sampler: Pick<Sampler, 'publish' | 'unpublish' | 'forgetStacks'>
  readonly arena: UnwindArena
  /**
   * Requests the table of a file. `fd`: -1 if the file is not to be read; the receiver closes it. False: not possible
   * now.
   */
  readonly read: (file: MappedFile, fd: number) => boolean
  /** An id becomes invalid. */
  readonly forget: (id: number) => void
  readonly procDir?: string
}

interface Known extends FileIdentity {
  /** Owner of the process where it was first seen. */
  readonly owner: Owner
  /** The kernel side has its id. */
  published: boolean
  /** Time of the next attempt, if it could not be opened or had no room. */
  againMs: number
}

/** Path and identity that represent the vDSO, kernel code in every process. */
export const vdsoPath = '[vdso]'
const kernelOwner: Owner = { group: 'kernel', user: '' }
const vdso: FileIdentity = { dev: 0, inode: 0, generation: 0 }
/** Device of named memory (memfd_create(2), shared memory): the kernel's internal mount, which no mount list shows. */
const memoryDevice = 1
/**
 * Attempts before a file counts as unreadable: by then, every process that runs it was tried, about once per second.
 */
const mostRefusals = 30
const mostRefused = 1_024
/** Measured memory per file, here and in the reading thread, including section names. */
const fileBytes = 11 * 1024
/** Retry delay for a file without a table because of conditions on this host. */
const againMs = 600_000
/** Maximum ids reclaimed at once when all are in use: each time, all stacks are reported again. */
const takenBack = 64
const deletedMark = ' (deleted)'
const farReason = 'not opened: the file system may not respond'
const refusedReason = 'no permission to open it'

/**
 * Files with executed code by their frame ids, from the first report of the kernel side until their table is evicted.
 * They are opened through a process that maps them (proc(5), map_files), which also works for deleted files and those
 * of containers.
 */
export class MappedFiles {
  /** Files that could not be opened because their process had ended; another process will report them. */
  gone = 0
  readonly #options: MappedFilesOptions
  readonly #procDir: string
  readonly #known = new Map<number, Known>()
  /** Ids by kernel identity, including files whose table is being built. */
  readonly #ids = new Map<string, number>()
  /** Failed attempts by file that was never opened. */
  readonly #refusals = small(new BoundedMap<string, number>(mostRefused))
  readonly #free: number[] = []
  #next = 1
  #opened = 0
  #refusal: string | undefined

  constructor(options: MappedFilesOptions) {
    this.#options = options
    this.#procDir = options.procDir ?? '/proc'
  }

  get size(): number {
    return this.#known.size
  }

  /** Memory of their data in both threads; the tables are in the kernel. */
  get bytes(): number {
    return this.#known.size * fileBytes
  }

  /** Forgets some idle files until they are reported again, to free memory. */
  shed(bytes: number): number {
    const before = this.bytes
    const most = Math.min(takenBack, Math.ceil(bytes / fileBytes))
    for (const id of this.#options.arena.idle().slice(0, most)) this.#drop(id)
    return before - this.bytes
  }

  /** Why no file can be opened; undefined if some can. Individual processes may still be protected. */
  get denied(): string | undefined {
    return this.#opened === 0 ? this.#refusal : undefined
  }

  /** Handles a report of code in a file without a table. */
  addUnknown(file: UnknownFile): void {
    const key = keyOf(file)
    if (this.#ids.has(key) || !this.#makeRoom()) return // its table is being built, or there are too many
    // Links in map_files wait for the lock of the process's memory. The file is reported again.
    if (!processStrings.isFree(this.#procDir, file.pid)) return
    const range = `${file.start.toString(16)}-${file.end.toString(16)}`
    const link = `${this.#procDir}/${file.pid}/map_files/${range}`
    let path: string
    let fd = -1
    let place = -1
    let unread = ''
    try {
      place = openPlace(link)
      const opened = `/proc/self/fd/${place}`
      path = readlinkSync(opened)
      if (file.dev !== memoryDevice && mayHangBehind(this.#procDir, file.pid, place)) unread = farReason
      else fd = openFile(opened)
      if (fd < 0 && unread === '') unread = 'not a regular file'
      this.#opened++
      this.#refusals.delete(key)
    } catch (error) {
      if (!this.#fail(key, error as NodeJS.ErrnoException)) return
      path = ''
      unread = refusedReason
    } finally {
      if (place >= 0) closeSync(place)
    }
    const { dev, inode, generation, pid, start, end, offset } = file
    const name = path.endsWith(deletedMark) ? path.slice(0, -deletedMark.length) : path
    const known = {
      dev,
      inode,
      generation,
      owner: ownerOf(this.#procDir, pid),
      published: false,
      againMs: unread === refusedReason ? performance.now() + againMs : Number.POSITIVE_INFINITY,
    }
    this.#read(known, { id: this.#give()!, pid, path: name, start, end, offset, dev, inode, unread }, fd)
  }

  /** Reads the vDSO, which is equal in all processes, from this process. */
  addVdso(): void {
    let range: ReturnType<typeof vdsoRange>
    let fd: number
    try {
      range = vdsoRange()
      if (range === undefined || !this.#makeRoom()) return
      fd = openSync('/proc/self/mem', 'r')
    } catch {
      return // its frames have no names then
    }
    const id = this.#give()!
    const file = { id, pid: process.pid, path: vdsoPath, ...range, offset: 0, ...vdso, unread: '' }
    this.#read({ ...vdso, owner: kernelOwner, published: false, againMs: Number.POSITIVE_INFINITY }, file, fd)
  }

  /** Publishes the table of a file; undefined: it has none. */
  publish(id: number, table: UnwindTable | undefined, runtime: number): void {
    const known = this.#known.get(id)
    if (known === undefined) return
    const { arena, sampler } = this.#options
    const hasRoom = arena.put(id, table, runtime, evicted => this.#forget(evicted), known.owner)
    if (!hasRoom) known.againMs = performance.now() + againMs
    // The kernel side does not report the vDSO a second time.
    if (known.inode === vdso.inode && known.dev === vdso.dev) arena.pin(id)
    known.published = true
    sampler.publish(known, id)
  }

  /** Call every few seconds: unreadable files, and those without room, are eventually retried. */
  age(nowMs = performance.now()): void {
    this.#options.arena.age()
    for (const [id, known] of this.#known) if (known.published && nowMs >= known.againMs) this.#drop(id)
  }

  /** Another file has this inode now. */
  replaced(id: number): void {
    if (this.#known.get(id)?.published) this.#drop(id)
  }

  /** Forgets all files, as the thread that knew them ended. */
  clear(): void {
    for (const id of [...this.#known.keys()]) this.#drop(id)
  }

  #drop(id: number): void {
    this.#forget(id)
    this.#options.arena.drop(id)
  }

  #read(known: Known, file: MappedFile, fd: number): void {
    this.#known.set(file.id, known)
    this.#ids.set(keyOf(known), file.id)
    if (!this.#options.read(file, fd)) this.#forget(file.id)
  }

  /** Whether the file counts as unreadable now. */
  #fail(key: string, { code, message }: NodeJS.ErrnoException): boolean {
    if (code !== 'EPERM' && code !== 'EACCES') {
      this.gone++
      return false
    }
    this.#refusal = `cannot open the files of processes, so their code has no names: ${message}`
    const refusals = (this.#refusals.get(key) ?? 0) + 1
    this.#refusals.set(key, refusals)
    if (refusals < mostRefusals) return false
    this.#refusals.delete(key)
    return true
  }

  #forget(id: number): void {
    const known = this.#known.get(id)
    if (known === undefined) return
    const { sampler, forget } = this.#options
    if (known.published) sampler.unpublish(known)
    this.#known.delete(id)
    this.#ids.delete(keyOf(known))
    this.#free.push(id)
    forget(id)
    // Stacks with this id could otherwise be attributed to the next file.
    if (known.published) sampler.forgetStacks()
  }

  /** Reclaims the ids of idle files if there are no free ones. False: all are in use. */
  #makeRoom(): boolean {
    if (this.#next <= maxFileId || this.#free.length > 0) return true
    for (const id of this.#options.arena.idle().slice(0, takenBack)) this.#drop(id)
    return this.#free.length > 0
  }

  /** The least recently used free id. */
  #give(): number | undefined {
    return this.#next <= maxFileId ? this.#next++ : this.#free.shift()
  }
}

function keyOf({ dev, inode, generation }: FileIdentity): string {
  return `${dev}:${inode}:${generation}`
}

/** Opens a regular file without blocking; returns -1 if it is not one. */
function openFile(path: string): number {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  if (fstatSync(fd).isFile()) return fd
  closeSync(fd)
  return -1
}
