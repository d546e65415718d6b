import { closeSync, openSync, readlinkSync, readSync } from 'node:fs'
import { isEnding, statFields } from '../lib/process-stat.ts'
import type { ProcessFacts } from './service-name.ts'

/** Environments and command lines may be 2 MB; the beginning is enough. */
const maxFileBytes = 256 * 1024
export const unknownStart = -1

/** Reads what /proc tells of processes. What ended, or is not ours to read, is answered by an empty text. */
export class ProcessFiles {
  readonly procDir: string
  /** What `start` read beside its answer: the kernel's short name of the process, its parent, and whether it is ending. */
  comm = ''
  parent = 0
  ending = false
  private readonly buffer = Buffer.alloc(maxFileBytes)

  constructor(procDir: string) {
    this.procDir = procDir
  }

  /** When the process started, in clock ticks since boot; `unknownStart` if there is none. Sets `comm`, `parent` and `ending`. */
  start(pid: number): number {
    const stat = this.text(pid, 'stat')
    // The name stands in parentheses and may itself hold any character (proc_pid_stat(5)).
    const open = stat.indexOf('(')
    const close = stat.lastIndexOf(')')
    if (open < 0 || close < open) return unknownStart
    this.comm = stat.slice(open + 1, close)
    const fields = statFields(stat, 20)
    this.parent = Number(fields[1]) || 0
    this.ending = isEnding(fields)
    const start = Number(fields[19]) // field 22
    return Number.isSafeInteger(start) ? start : unknownStart
  }

  /** `comm` is what `start` has just read. */
  facts(pid: number): ProcessFacts {
    const args = this.text(pid, 'cmdline').split('\0')
    if (args.at(-1) === '') args.pop()
    // A deleted executable was replaced by an update; its name still holds.
    const executable = this.link(pid, 'exe').replace(/ \(deleted\)$/, '')
    return { comm: this.comm, executable, args, cwd: this.link(pid, 'cwd') }
  }

  /** The real user; -1: not known. */
  user(pid: number): number {
    const uid = /^Uid:\s+(\d+)/m.exec(this.text(pid, 'status'))
    return uid === null ? -1 : Number(uid[1])
  }

  /** The beginning of a file of the process. */
  text(pid: number | string, name: string): string {
    let fd = -1
    try {
      fd = openSync(`${this.procDir}/${pid}/${name}`, 'r')
      let size = 0
      // The kernel hands out about a page with each read.
      for (;;) {
        const more = readSync(fd, this.buffer, size, this.buffer.length - size, null)
        size += more
        if (more === 0 || size === this.buffer.length) return this.buffer.toString('utf8', 0, size)
      }
    } catch {
      return '' // gone, or not ours to read
    } finally {
      if (fd >= 0) closeSync(fd)
    }
  }

  link(pid: number, name: string): string {
    try {
      return readlinkSync(`${this.procDir}/${pid}/${name}`)
    } catch {
      return '' // as for files; kernel threads have no executable
    }
  }
}
