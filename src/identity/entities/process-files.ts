import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { linkText } from '../../foundation/lib/optional-files.ts'
import { ownText } from '../../foundation/lib/own-text.ts'
import { isEnding, statFields } from '../../foundation/lib/process-stat.ts'
import { processStrings, type StringReader } from '../../kernel/process-strings.ts'
import type { ProcessFacts } from './service-name.ts'

/** Mount lists may have any size; the beginning is enough. */
const maxFileBytes = 256 * 1024
/** One argument may have 128 KiB (MAX_ARG_STRLEN), such as a Java class path. */
const maxCommandBytes = 128 * 1024
const maxArguments = 2_048
/** Maximum bytes of one argument: a path is no longer (PATH_MAX). */
const maxArgumentBytes = 4_096
/** TASK_COMM_LEN, plus the suffixes of kernel threads. */
const maxCommBytes = 64
const nothing = Buffer.alloc(0)
export const unknownStart = -1

export interface ProgramFacts extends ProcessFacts {
  /** Command line and environment could not be read; they may be later. */
  readonly isUnread: boolean
  /** Identifies the program with its arguments. */
  readonly digest: string
}

/** Identifies a program with its arguments. `line`: as in /proc/PID/cmdline. */
export function digestOf(executable: string, line: Buffer = nothing): string {
  return createHash('sha1').update(executable).update('\0').update(line).digest('base64')
}

/** Arguments end with NUL; the last may be truncated. */
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
 * Reads /proc files of processes. If a process has ended or is not readable, the result is an empty text. Files that
 * take the lock of the process's memory (cmdline, environ, maps), which it may hold for ever, are read by
 * `StringReader`.
 */
export class ProcessFiles {
  readonly procDir: string
  readonly strings: StringReader
  /** Side results of `start`: the kernel's short name, the parent, and whether the process is exiting. */
  comm = ''
  parent = 0
  ending = false
  readonly #buffer = Buffer.alloc(maxFileBytes)

  constructor(procDir: string, strings: StringReader = processStrings) {
    this.procDir = procDir
    this.strings = strings
  }

  /**
   * Start of the process in clock ticks since boot; `unknownStart` if there is none. Sets `comm`, `parent` and
   * `ending`.
   */
  start(pid: number): number {
    const stat = this.text(pid, 'stat')
    // The name is in parentheses and may contain any character (proc_pid_stat(5)).
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

  /** Uses `comm` as just read by `start`. `environment` is valid until the next process is read. */
  facts(pid: number): ProgramFacts & { readonly environment: Buffer } {
    const strings = this.strings.of(this.procDir, pid)
    const { command = nothing, environment = nothing } = strings ?? {}
    const line = command.subarray(0, maxCommandBytes)
    // Updates replace executables; the name of the deleted file is still valid.
    const executable = this.link(pid, 'exe').replace(/ \(deleted\)$/, '')
    const digest = digestOf(executable, line)
    const cwd = this.link(pid, 'cwd')
    const isUnread = strings === undefined
    return { comm: this.comm, executable, args: argumentsIn(line), cwd, digest, isUnread, environment }
  }

  /** Real user; -1: unknown. */
  user(pid: number): number {
    const uid = /^Uid:\s+(\d+)/m.exec(this.text(pid, 'status'))
    return uid === null ? -1 : Number(uid[1])
  }

  /** Beginning of a file of the process. */
  text(pid: number | string, name: string): string {
    return this.bytes(pid, name).toString('utf8')
  }

  /** The same as bytes, valid until the next read. */
  bytes(pid: number | string, name: string, most = maxFileBytes): Buffer {
    let fd = -1
    try {
      fd = openSync(`${this.procDir}/${pid}/${name}`, 'r')
      let size = 0
      // The kernel returns about a page per read.
      for (;;) {
        const more = readSync(fd, this.#buffer, size, most - size, null)
        size += more
        if (more === 0 || size === most) return this.#buffer.subarray(0, size)
      }
    } catch {
      return nothing // ended, or no permission
    } finally {
      if (fd >= 0) closeSync(fd)
    }
  }

  link(pid: number, name: string): string {
    return linkText(`${this.procDir}/${pid}/${name}`)
  }
}
