import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { linkText } from '../../foundation/lib/optional-files.ts'
import { ownText } from '../../foundation/lib/own-text.ts'
import { isEnding, statFields } from '../../foundation/lib/process-stat.ts'
import { processStrings, type StringReader } from '../../kernel/process-strings.ts'
import type { ProcessFacts } from './service-name.ts'

/** Lists of mounts may have any size; the beginning is enough. */
const maxFileBytes = 256 * 1024
/** One argument may have 128 KiB (MAX_ARG_STRLEN): the path of classes of a Java program. */
const maxCommandBytes = 128 * 1024
const maxArguments = 2_048
/** Of one argument: a path is no longer (PATH_MAX). */
const maxArgumentBytes = 4_096
/** TASK_COMM_LEN, and what threads of the kernel add to theirs. */
const maxCommBytes = 64
const nothing = Buffer.alloc(0)
export const unknownStart = -1

export interface ProgramFacts extends ProcessFacts {
  /** Its command line and environment are not known: they may be later. */
  readonly isUnread: boolean
  /** Tells this program with its arguments from others. */
  readonly digest: string
}

/** Tells a program with its arguments from others. `line`: as in /proc/PID/cmdline. */
export function digestOf(executable: string, line: Buffer = nothing): string {
  return createHash('sha1').update(executable).update('\0').update(line).digest('base64')
}

/** Each ends with NUL; the last may have been cut. */
function argumentsIn(line: Buffer): string[] {
  const args: string[] = []
  for (let from = 0; from < line.length && args.length < maxArguments; ) {
    const nul = line.indexOf(0, from)
    const end = nul < 0 ? line.length : nul
    args.push(line.toString('utf8', from, Math.min(end, from + maxArgumentBytes)))
    from = end + 1
  }
  return args
}

/**
 * Reads what /proc tells of processes. What ended, or is not ours to read, is answered by an empty text. What takes the
 * lock of its memory (cmdline, environ, maps), which it may keep for ever, is for `StringReader`.
 */
export class ProcessFiles {
  readonly procDir: string
  readonly strings: StringReader
  /** What `start` read beside its answer: the kernel's short name of the process, its parent, and whether it is ending. */
  comm = ''
  parent = 0
  ending = false
  readonly #buffer = Buffer.alloc(maxFileBytes)

  constructor(procDir: string, strings: StringReader = processStrings) {
    this.procDir = procDir
    this.strings = strings
  }

  /** When the process started, in clock ticks since boot; `unknownStart` if there is none. Sets `comm`, `parent` and `ending`. */
  start(pid: number): number {
    const stat = this.text(pid, 'stat')
    // The name stands in parentheses and may itself hold any character (proc_pid_stat(5)).
    const open = stat.indexOf('(')
    const close = stat.lastIndexOf(')')
    if (open < 0 || close < open) return unknownStart
    this.comm = ownText(stat.slice(open + 1, close), maxCommBytes)
    const fields = statFields(stat, 20)
    this.parent = Number(fields[1]) || 0
    this.ending = isEnding(fields)
    const start = Number(fields[19]) // field 22
    return Number.isSafeInteger(start) ? start : unknownStart
  }

  /** `comm` is what `start` has just read. `environment` is valid until the next process is looked at. */
  facts(pid: number): ProgramFacts & { readonly environment: Buffer } {
    const strings = this.strings.of(this.procDir, pid)
    const { command = nothing, environment = nothing } = strings ?? {}
    const line = command.subarray(0, maxCommandBytes)
    // A deleted executable was replaced by an update; its name still holds.
    const executable = this.link(pid, 'exe').replace(/ \(deleted\)$/, '')
    const digest = digestOf(executable, line)
    const cwd = this.link(pid, 'cwd')
    const isUnread = strings === undefined
    return { comm: this.comm, executable, args: argumentsIn(line), cwd, digest, isUnread, environment }
  }

  /** The real user; -1: not known. */
  user(pid: number): number {
    const uid = /^Uid:\s+(\d+)/m.exec(this.text(pid, 'status'))
    return uid === null ? -1 : Number(uid[1])
  }

  /** The beginning of a file of the process. */
  text(pid: number | string, name: string): string {
    return this.bytes(pid, name).toString('utf8')
  }

  /** The same as bytes, which hold until the next reading. */
  bytes(pid: number | string, name: string, most = maxFileBytes): Buffer {
    let fd = -1
    try {
      fd = openSync(`${this.procDir}/${pid}/${name}`, 'r')
      let size = 0
      // The kernel hands out about a page with each read.
      for (;;) {
        const more = readSync(fd, this.#buffer, size, most - size, null)
        size += more
        if (more === 0 || size === most) return this.#buffer.subarray(0, size)
      }
    } catch {
      return nothing // gone, or not ours to read
    } finally {
      if (fd >= 0) closeSync(fd)
    }
  }

  link(pid: number, name: string): string {
    return linkText(`${this.procDir}/${pid}/${name}`)
  }
}
