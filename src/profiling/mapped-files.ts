import { closeSync, constants, fstatSync, openSync, readFileSync, readlinkSync } from 'node:fs'
import { FarPaths, parseMounts } from '../kernel/mounts.ts'
import { vdsoRange } from '../kernel/process-maps.ts'
import { maxFileId, type UnknownFile } from '../model/raw-stack.ts'
import type { UnwindTable } from '../model/unwind-table.ts'
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

interface Known {
  readonly dev: number
  readonly inode: number
}

/** What the kernel calls code of its own in every process, and the file that stands for it. */
export const vdsoPath = '[vdso]'
const vdso: Known = { dev: 0, inode: 0 }
/** How long a list of mounts is believed. */
const mountsMs = 30_000
const deletedMark = ' (deleted)'

/**
 * Files that code runs of, by the ids that frames have: from the first sight in the kernel until their table makes room
 * for another one. They are opened through the process that has them mapped (proc(5), map_files), so that deleted files
 * and those of containers are found like all others.
 */
export class MappedFiles {
  /** Files that could not be opened, as their process had ended; another one will tell of them. */
  gone = 0
  private readonly options: MappedFilesOptions
  private readonly procDir: string
  private readonly known = new Map<number, Known>()
  /** Ids of files by device and inode, also of those whose table is being made. */
  private readonly ids = new Map<string, number>()
  private readonly free: number[] = []
  private next = 1
  private opened = 0
  private refusal: string | undefined
  private far: FarPaths | undefined
  private farAt = 0

  constructor(options: MappedFilesOptions) {
    this.options = options
    this.procDir = options.procDir ?? '/proc'
  }

  get size(): number {
    return this.known.size
  }

  /** Why no file may be opened; undefined where some are. Single processes may be protected even so. */
  get denied(): string | undefined {
    return this.opened === 0 ? this.refusal : undefined
  }

  /** The kernel side met code of a file that has no table. */
  meet(file: UnknownFile): void {
    const key = keyOf(file)
    if (this.ids.has(key)) return // its table is being made
    const range = `${file.start.toString(16)}-${file.end.toString(16)}`
    const link = `${this.procDir}/${file.pid}/map_files/${range}`
    let path: string
    let fd = -1
    try {
      path = readlinkSync(link)
      if (!this.isFar(path)) fd = openFile(link)
      this.opened++
    } catch (error) {
      this.fail(error as NodeJS.ErrnoException)
      return
    }
    const id = this.give()
    if (id === undefined) {
      if (fd >= 0) closeSync(fd)
      return
    }
    const { dev, inode, pid, start, end, offset } = file
    const name = path.endsWith(deletedMark) ? path.slice(0, -deletedMark.length) : path
    this.read({ dev, inode }, { id, pid, path: name, start, end, offset }, fd)
  }

  /** The kernel's code in all processes, the same in each: it is read where this one has it. */
  meetVdso(): void {
    const range = vdsoRange()
    const id = range === undefined ? undefined : this.give()
    if (range === undefined || id === undefined) return
    const file = { id, pid: process.pid, path: vdsoPath, ...range, offset: 0 }
    this.read(vdso, file, openSync('/proc/self/mem', 'r'))
  }

  /** The table of a file is made; undefined: it has none. */
  publish(id: number, table: UnwindTable | undefined, runtime: number): void {
    const known = this.known.get(id)
    if (known === undefined) return
    const { arena, sampler } = this.options
    arena.put(id, table, runtime, evicted => this.forget(evicted))
    sampler.publish(known.dev, known.inode, id)
  }

  /** Forgets all files: whoever knew them has ended. */
  clear(): void {
    for (const id of [...this.known.keys()]) {
      this.forget(id)
      this.options.arena.drop(id)
    }
  }

  private read(known: Known, file: MappedFile, fd: number): void {
    this.known.set(file.id, known)
    this.ids.set(keyOf(known), file.id)
    if (!this.options.read(file, fd)) this.forget(file.id)
  }

  private fail({ code, message }: NodeJS.ErrnoException): void {
    if (code === 'EPERM' || code === 'EACCES')
      this.refusal = `files of processes cannot be opened, so that their code has no names: ${message}`
    else this.gone++
  }

  private forget(id: number): void {
    const known = this.known.get(id)
    if (known === undefined) return
    const { sampler, forget } = this.options
    sampler.unpublish(known.dev, known.inode)
    this.known.delete(id)
    this.ids.delete(keyOf(known))
    this.free.push(id)
    forget(id)
    // A stack with this id could otherwise be taken for one of the next file.
    sampler.forgetStacks()
  }

  /** An id that was not used for as long as possible. */
  private give(): number | undefined {
    return this.next <= maxFileId ? this.next++ : this.free.shift()
  }

  /** Opening a file of a server that does not answer would hang. */
  private isFar(path: string): boolean {
    const now = performance.now()
    if (this.far === undefined || now - this.farAt > mountsMs) {
      this.far = new FarPaths(mountsOf(this.procDir))
      this.farAt = now
    }
    return this.far.has(path)
  }
}

function keyOf({ dev, inode }: Known): string {
  return `${dev}:${inode}`
}

/** A regular file, opened so that nothing waits; throws where it is none. */
function openFile(path: string): number {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  if (fstatSync(fd).isFile()) return fd
  closeSync(fd)
  return -1
}

function mountsOf(procDir: string) {
  try {
    return parseMounts(readFileSync(`${procDir}/self/mountinfo`), '/')
  } catch {
    return [] // without a list of mounts none is known
  }
}
