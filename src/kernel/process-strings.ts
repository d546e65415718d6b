// Command lines and environments, which are in the processes' own memory. To read them the kernel takes the lock of
// that memory, which any process can hold forever: mmap(2) over modified pages of a FUSE file waits, holding the lock,
// for the file's server. So svc-probe reads them, and callers wait only briefly.

import { type ProcessAsker, processAsker } from './process-asker.ts'
import { ownerOf } from './process-owner.ts'

/** Both are valid until the next request. */
export interface ProcessStrings {
  /** As in /proc/PID/cmdline; empty if unreadable. */
  readonly command: Buffer
  /** As in /proc/PID/environ. */
  readonly environment: Buffer
}

/** Maximum bytes of each: they may have 2 MB, and the beginning is enough. */
const mostBytes = 256 * 1024
/** Reading one byte is enough to test the lock. */
const leastBytes = 1

const nothing = Buffer.alloc(0)
const noStrings: ProcessStrings = { command: nothing, environment: nothing }

export class StringReader {
  readonly #asker: ProcessAsker

  constructor(asker: ProcessAsker = processAsker) {
    this.#asker = asker
  }

  /** Processes whose strings did not arrive in time, or were not requested, since the start. */
  get lost(): Readonly<Record<'late' | 'refused' | 'busy' | 'unavailable', number>> {
    return this.#asker.lost
  }

  /** Undefined: unknown. A process that exited has empty ones. */
  of(procDir: string, pid: number): ProcessStrings | undefined {
    return this.#ask(procDir, pid, mostBytes)
  }

  /** True if the lock of a process's memory is free, so that files that require it (maps, map_files) may be read. */
  isFree(procDir: string, pid: number): boolean {
    return this.#ask(procDir, pid, leastBytes) !== undefined
  }

  #ask(procDir: string, pid: number, most: number): ProcessStrings | undefined {
    const answer = this.#asker.ask({
      operation: 'P',
      limit: most,
      text: `${procDir}/${pid}`,
      owner: () => ownerOf(procDir, pid),
    })
    if (answer === undefined) return undefined
    const { errno, payload } = answer
    if (errno !== 0) return noStrings
    const newline = payload.indexOf(10)
    const behind = newline + 1 + Number(payload.toString('latin1', 0, newline))
    return { command: payload.subarray(newline + 1, behind), environment: payload.subarray(behind) }
  }
}

export const processStrings = new StringReader()
