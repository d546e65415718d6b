import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  type Stats,
} from 'node:fs'
import { uptime } from 'node:os'
import { FairShare, isSameOwner, type Owner } from '../../../foundation/lib/fair-share.ts'
import { isOfHost, mayHangAt } from '../../../kernel/mapped-mounts.ts'
import { ownerOf as ownerOfProcess } from '../../../kernel/process-owner.ts'
import { PerfMap } from './perf-map.ts'

/** Maximum bytes of one file, counted from its end, and of all processes. */
const mostFileBytes = 16 * 1024 * 1024
const mostKeptBytes = 16 * 1024 * 1024
const mostProcesses = 256
const leastBytes = mostKeptBytes / mostProcesses
const chunkBytes = 256 * 1024
/** Minimum interval of reads: more may have been written, or the file may belong to another process. */
const lookMs = 1000
/** File times have tick resolution, and clocks are adjusted. */
const clockSlackMs = 1000
/** `USER_HZ`, the same on all supported architectures. */
const tickMs = 10

interface Entry {
  readonly map: PerfMap
  readonly owner: Owner
  /** Bytes charged for it. */
  bytes: number
  /** Inode of the last file read. */
  inode: number
  read: number
  lookedMs: number
}

/**
 * Names of just-in-time code from the files that runtimes write for perf(1): `/tmp/perf-<pid>.map` as the process sees
 * it (Linux, tools/perf/Documentation/jit-interface.txt). Any user can write to `/tmp`, so the file must belong to the
 * process's user or root. Files outlive their process, so it must have been written since the process started.
 */
export class PerfMaps {
  readonly losses = { refused: 0, taken: 0 }
  readonly #entries = new Map<number, Entry>()
  readonly #share = new FairShare(mostKeptBytes)
  readonly #root: string
  readonly #ownerOf: (pid: number) => Owner

  /** `root`: mount point of procfs. */
  constructor(root = '/proc', ownerOf = (pid: number) => ownerOfProcess(root, pid)) {
    this.#root = root
    this.#ownerOf = ownerOf
  }

  /** Memory in bytes. */
  get bytes(): number {
    return this.#share.used
  }

  /** Name that the process reported for an address; undefined if there is none. Does not throw. */
  find(pid: number, address: number): string | undefined {
    const entry = this.#entry(pid)
    const nowMs = performance.now()
    if (nowMs - entry.lookedMs >= lookMs) {
      entry.lookedMs = nowMs
      this.#readOn(pid, entry)
      this.#charge(pid, entry)
    }
    return entry.map.at(address)
  }

  /** The process ended, or executed another program. */
  forget(pid: number): void {
    const entry = this.#entries.get(pid)
    if (entry === undefined) return
    this.#share.remove(entry.owner, entry.bytes)
    this.#entries.delete(pid)
  }

  /** Drops maps, largest owners first, to free memory. Returns the bytes freed. */
  shed(bytes: number): number {
    const before = this.bytes
    while (before - this.bytes < bytes && this.#dropOf(this.#share.richest(), undefined));
    return before - this.bytes
  }

  #entry(pid: number): Entry {
    const known = this.#entries.get(pid)
    if (known !== undefined) {
      this.#entries.delete(pid)
      this.#entries.set(pid, known)
      return known
    }
    const entry: Entry = {
      map: new PerfMap(),
      owner: this.#ownerOf(pid),
      bytes: 0,
      inode: 0,
      read: 0,
      lookedMs: Number.NEGATIVE_INFINITY,
    }
    this.#entries.set(pid, entry)
    this.#charge(pid, entry)
    return entry
  }

  /** Counts the current memory of a map; above the limit, the largest owner loses maps. */
  #charge(used: number, entry: Entry): void {
    const bytes = Math.max(leastBytes, entry.map.bytes)
    this.#share.remove(entry.owner, entry.bytes)
    this.#share.add(entry.owner, bytes)
    entry.bytes = bytes
    while (!this.#share.hasRoom(0) && this.#dropOf(this.#share.richest(), used)) this.losses.taken++
  }

  /** Drops the least recently used map of an owner, except one. */
  #dropOf(owner: Owner | undefined, except: number | undefined): boolean {
    for (const [pid, entry] of this.#entries) {
      if (pid === except || !isSameOwner(entry.owner, owner)) continue
      this.forget(pid)
      return true
    }
    return false
  }

  /** Reads lines written since the last time. */
  #readOn(pid: number, entry: Entry): void {
    const fd = this.#open(pid)
    if (fd === undefined) {
      // The map of an ended process still names its samples, unless a new process has its number.
      if (existsSync(`${this.#root}/${pid}`)) clear(entry, 0)
      return
    }
    try {
      const { ino, size, mtimeMs } = fstatSync(fd)
      if (mtimeMs + clockSlackMs < this.#startMs(pid)) {
        clear(entry, 0)
        return
      }
      if (ino !== entry.inode || size < entry.read) clear(entry, ino)
      if (size - entry.read > mostFileBytes) {
        entry.map.clear()
        entry.read = lineBehind(fd, size - mostFileBytes)
      }
      if (size > entry.read) entry.read = readLines(fd, entry.read, size, entry.map)
    } catch {
      // The file or its file system is gone.
    } finally {
      closeSync(fd)
    }
  }

  /** Start of the process in file time; 0 if unknown. */
  #startMs(pid: number): number {
    let stat: string
    try {
      stat = readFileSync(`${this.#root}/${pid}/stat`, 'latin1')
    } catch {
      return 0 // It has ended.
    }
    // The program name in parentheses may contain any characters (proc_pid_stat(5)).
    const ticks = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19])
    return Number.isFinite(ticks) ? Date.now() - uptime() * 1000 + ticks * tickMs : 0
  }

  #open(pid: number): number | undefined {
    let directory: number | undefined
    try {
      const owner = ownerOf(readFileSync(`${this.#root}/${pid}/status`, 'latin1'))
      if (owner === undefined) return undefined
      // File systems that users mounted in their own namespaces may never respond: checks the path first, then the
      // file.
      const home = `${this.#root}/${pid}/root`
      if (!isOfHost(this.#root, pid) && mayHangAt(this.#root, pid, home)) return undefined
      // A link would be resolved in this process's root, not in that of the other.
      directory = openSync(`${home}/tmp`, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
      const fd = openSync(
        `/proc/self/fd/${directory}/perf-${owner.pid}.map`,
        constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
      )
      if (isOwned(fstatSync(fd), owner.uid)) return fd
      closeSync(fd)
    } catch {
      // Most processes have none.
    } finally {
      if (directory !== undefined) closeSync(directory)
    }
    return undefined
  }
}

function clear(entry: Entry, inode: number): void {
  entry.map.clear()
  entry.inode = inode
  entry.read = 0
}

function isOwned(stat: Stats, uid: number): boolean {
  return stat.isFile() && (stat.uid === uid || stat.uid === 0)
}

/** Effective user, and the process's number in its own namespace (proc_pid_status(5)). */
function ownerOf(status: string): { uid: number; pid: number } | undefined {
  const uid = /^Uid:\t\d+\t(\d+)/m.exec(status)?.[1]
  const pid = /^NSpid:.*\t(\d+)$/m.exec(status)?.[1]
  return uid === undefined || pid === undefined ? undefined : { uid: Number(uid), pid: Number(pid) }
}

/** Start of the next line, if it is within the maximum length of a name. */
function lineBehind(fd: number, from: number): number {
  const bytes = Buffer.alloc(4096)
  return from + bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, from)).indexOf(10) + 1
}

/** Adds whole lines; returns the start of the next read. */
function readLines(fd: number, from: number, to: number, map: PerfMap): number {
  const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, to - from))
  for (let at = from; at < to; ) {
    const bytes = chunk.subarray(0, readSync(fd, chunk, 0, Math.min(chunk.length, to - at), at))
    const end = bytes.lastIndexOf(10) + 1
    if (end === 0) {
      // An incomplete line, or one longer than any name.
      if (bytes.length < chunkBytes) return at
      at += bytes.length
    } else {
      map.add(bytes.subarray(0, end))
      at += end
      if (bytes.length < chunk.length) return at
    }
  }
  return to
}
