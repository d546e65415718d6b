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

/** Of one file at once, its last ones, and of what is kept for all processes. */
const mostFileBytes = 16 * 1024 * 1024
const mostKeptBytes = 16 * 1024 * 1024
const mostProcesses = 256
const leastBytes = mostKeptBytes / mostProcesses
const chunkBytes = 256 * 1024
/** So often a file is looked at again at most: more may have been written, or it is another process's. */
const lookMs = 1000
/** Files have the time of the last tick, and clocks are set. */
const clockSlackMs = 1000
/** `USER_HZ`, the same on all architectures that this runs on. */
const tickMs = 10

interface Entry {
  readonly map: PerfMap
  readonly owner: Owner
  /** What it is counted for. */
  bytes: number
  /** Of the file that was read last. */
  inode: number
  read: number
  lookedMs: number
}

/**
 * Names of code that runtimes make while they run, by the file in which they tell them to perf(1):
 * `/tmp/perf-<pid>.map` as the process sees it (Linux, tools/perf/Documentation/jit-interface.txt). Anybody may write
 * to `/tmp`, so a file counts only if it is the process's user's or root's. The file stays when its process ends, so it
 * counts only if it was written since this one began.
 */
export class PerfMaps {
  readonly losses = { refused: 0, taken: 0 }
  readonly #entries = new Map<number, Entry>()
  readonly #share = new FairShare(mostKeptBytes)
  readonly #root: string
  readonly #ownerOf: (pid: number) => Owner

  /** `root`: of the proc file system. */
  constructor(root = '/proc', ownerOf = (pid: number) => ownerOfProcess(root, pid)) {
    this.#root = root
    this.#ownerOf = ownerOf
  }

  /** Of memory. */
  get bytes(): number {
    return this.#share.used
  }

  /** What the process told of an address; undefined: nothing. Does not throw. */
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

  /** The process ended, or runs another program now. */
  forget(pid: number): void {
    const entry = this.#entries.get(pid)
    if (entry === undefined) return
    this.#share.remove(entry.owner, entry.bytes)
    this.#entries.delete(pid)
  }

  /** Memory is short: lets maps go, those of whoever has most first. Bytes that it had. */
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

  /** Counts what a map has by now; where that is too much in all, who has most gives maps up. */
  #charge(used: number, entry: Entry): void {
    const bytes = Math.max(leastBytes, entry.map.bytes)
    this.#share.remove(entry.owner, entry.bytes)
    this.#share.add(entry.owner, bytes)
    entry.bytes = bytes
    while (!this.#share.hasRoom(0) && this.#dropOf(this.#share.richest(), used)) this.losses.taken++
  }

  /** Lets go of the map of an owner that was not asked for for the longest time, but one. */
  #dropOf(owner: Owner | undefined, except: number | undefined): boolean {
    for (const [pid, entry] of this.#entries) {
      if (pid === except || !isSameOwner(entry.owner, owner)) continue
      this.forget(pid)
      return true
    }
    return false
  }

  /** Reads what was written since the last time. */
  #readOn(pid: number, entry: Entry): void {
    const fd = this.#open(pid)
    if (fd === undefined) {
      // What an ended process told still names what was seen of it. Another one of its number has told nothing.
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
      // It went away, or its file system did.
    } finally {
      closeSync(fd)
    }
  }

  /** When the process began, as files have their times; 0: not known. */
  #startMs(pid: number): number {
    let stat: string
    try {
      stat = readFileSync(`${this.#root}/${pid}/stat`, 'latin1')
    } catch {
      return 0 // It ended since.
    }
    // The name of the program, in parentheses, may have any characters (proc_pid_stat(5)).
    const ticks = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19])
    return Number.isFinite(ticks) ? Date.now() - uptime() * 1000 + ticks * tickMs : 0
  }

  #open(pid: number): number | undefined {
    let directory: number | undefined
    try {
      const owner = ownerOf(readFileSync(`${this.#root}/${pid}/status`, 'latin1'))
      if (owner === undefined) return undefined
      // What users mounted in namespaces of their own may never answer: the way to it is looked at first, then it.
      const home = `${this.#root}/${pid}/root`
      if (!isOfHost(this.#root, pid) && mayHangAt(this.#root, pid, home)) return undefined
      // A link would be followed from this process's root, not from that of the other.
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

/** The effective user, and the number that the process knows itself by, of its status (proc_pid_status(5)). */
function ownerOf(status: string): { uid: number; pid: number } | undefined {
  const uid = /^Uid:\t\d+\t(\d+)/m.exec(status)?.[1]
  const pid = /^NSpid:.*\t(\d+)$/m.exec(status)?.[1]
  return uid === undefined || pid === undefined ? undefined : { uid: Number(uid), pid: Number(pid) }
}

/** Where the next line begins, if it is not longer than any name. */
function lineBehind(fd: number, from: number): number {
  const bytes = Buffer.alloc(4096)
  return from + bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, from)).indexOf(10) + 1
}

/** Takes up whole lines; where the next reading begins. */
function readLines(fd: number, from: number, to: number, map: PerfMap): number {
  const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, to - from))
  for (let at = from; at < to; ) {
    const bytes = chunk.subarray(0, readSync(fd, chunk, 0, Math.min(chunk.length, to - at), at))
    const end = bytes.lastIndexOf(10) + 1
    if (end === 0) {
      // A line is not written yet, or longer than any name.
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
