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
   * Has the table of a file made. `fd`: -1 where the file is not to be read; it is closed by whoever takes it. False: it
   * cannot be made now.
   */
  readonly read: (file: MappedFile, fd: number) => boolean
  /** An id stands for no file any more. */
  readonly forget: (id: number) => void
  readonly procDir?: string
}

interface Known extends FileIdentity {
  /** Whose process was met with it first. */
  readonly owner: Owner
  /** The kernel side has its id. */
  published: boolean
  /** When it is tried again, as it could not be opened or found no room. */
  againMs: number
}

/** What the kernel calls code of its own in every process, and the file that stands for it. */
export const vdsoPath = '[vdso]'
const kernelOwner: Owner = { group: 'kernel', user: '' }
const vdso: FileIdentity = { dev: 0, inode: 0, generation: 0 }
/** Of memory with a name (memfd_create(2), shared memory), by the kernel's own mount of it, which no list shows. */
const memoryDevice = 1
/** Every process that runs it was asked by then: a file that may not be opened is asked about every second. */
const mostRefusals = 30
const mostRefused = 1_024
/** Of a file in memory: here, and in the thread that reads it, where the parts of its head have names. Measured. */
const fileBytes = 11 * 1024
/** How long a file without a table for reasons of this host stays so. */
const againMs = 600_000
/** Ids that are taken back at once when all are given: each time all stacks are told again. */
const takenBack = 64
const deletedMark = ' (deleted)'
const farReason = 'not opened: the file system may not respond'
const refusedReason = 'no permission to open it'

/**
 * Files that code runs of, by the ids that frames have: from the first sight in the kernel until their table makes room
 * for another one. They are opened through the process that has them mapped (proc(5), map_files), so that deleted files
 * and those of containers are found like all others.
 */
export class MappedFiles {
  /** Files that could not be opened, as their process had ended; another one will tell of them. */
  gone = 0
  readonly #options: MappedFilesOptions
  readonly #procDir: string
  readonly #known = new Map<number, Known>()
  /** Ids of files by what the kernel calls them, also of those whose table is being made. */
  readonly #ids = new Map<string, number>()
  /** How often files were refused that were never opened. */
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

  /** Bytes of what is known of them, in both threads; their tables are in the kernel. */
  get bytes(): number {
    return this.#known.size * fileBytes
  }

  /** Memory is short: some of those that were not met of late are forgotten, until they are met again. */
  shed(bytes: number): number {
    const before = this.bytes
    const most = Math.min(takenBack, Math.ceil(bytes / fileBytes))
    for (const id of this.#options.arena.idle().slice(0, most)) this.#drop(id)
    return before - this.bytes
  }

  /** Why no file may be opened; undefined where some are. Single processes may be protected even so. */
  get denied(): string | undefined {
    return this.#opened === 0 ? this.#refusal : undefined
  }

  /** The kernel side met code of a file that has no table. */
  addUnknown(file: UnknownFile): void {
    const key = keyOf(file)
    if (this.#ids.has(key) || !this.#makeRoom()) return // its table is being made, or there are too many
    // Links in map_files wait for the lock of its memory. It is met again.
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

  /** The kernel's code in all processes, the same in each: it is read where this one has it. */
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

  /** The table of a file is made; undefined: it has none. */
  publish(id: number, table: UnwindTable | undefined, runtime: number): void {
    const known = this.#known.get(id)
    if (known === undefined) return
    const { arena, sampler } = this.#options
    const hasRoom = arena.put(id, table, runtime, evicted => this.#forget(evicted), known.owner)
    if (!hasRoom) known.againMs = performance.now() + againMs
    // The kernel side does not ask for the vDSO a second time.
    if (known.inode === vdso.inode && known.dev === vdso.dev) arena.pin(id)
    known.published = true
    sampler.publish(known, id)
  }

  /** To be called every few seconds: files that could not be opened or found no room are asked about again some time. */
  age(nowMs = performance.now()): void {
    this.#options.arena.age()
    for (const [id, known] of this.#known) if (known.published && nowMs >= known.againMs) this.#drop(id)
  }

  /** Another file has the inode of this one by now. */
  replaced(id: number): void {
    if (this.#known.get(id)?.published) this.#drop(id)
  }

  /** Forgets all files: whoever knew them has ended. */
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

  /** Whether the file is to be taken for one that nobody may open. */
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
    // A stack with this id could otherwise be taken for one of the next file.
    if (known.published) sampler.forgetStacks()
  }

  /** Ids are few: files that were not met of late give theirs back. False: all are in use. */
  #makeRoom(): boolean {
    if (this.#next <= maxFileId || this.#free.length > 0) return true
    for (const id of this.#options.arena.idle().slice(0, takenBack)) this.#drop(id)
    return this.#free.length > 0
  }

  /** An id that was not used for as long as possible. */
  #give(): number | undefined {
    return this.#next <= maxFileId ? this.#next++ : this.#free.shift()
  }
}

function keyOf({ dev, inode, generation }: FileIdentity): string {
  return `${dev}:${inode}:${generation}`
}

/** A regular file, opened so that nothing waits; throws where it is none. */
function openFile(path: string): number {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  if (fstatSync(fd).isFile()) return fd
  closeSync(fd)
  return -1
}
