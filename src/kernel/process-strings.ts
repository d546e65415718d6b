// What processes keep in their own memory and /proc shows: command lines and environments. To read them the kernel takes
// the lock of the process's memory, which any process can keep for ever: mmap(2) over pages that it changed of a file on
// FUSE waits, with the lock, for whoever serves that. So svc-probe reads it, and who asks waits for a moment.

import { type ProcessAsker, processAsker } from './process-asker.ts'
import { ownerOf } from './process-owner.ts'

/** Both are valid until the next question. */
export interface ProcessStrings {
  /** As in /proc/PID/cmdline; empty where it cannot be read. */
  readonly command: Buffer
  /** As in /proc/PID/environ. */
  readonly environment: Buffer
}

/** Of each of the two: they may have 2 MB, and the beginning is enough. */
const mostBytes = 256 * 1024
/** Whether a process lets go of its lock shows with its first byte. */
const leastBytes = 1

const nothing = Buffer.alloc(0)
const noStrings: ProcessStrings = { command: nothing, environment: nothing }

export class StringReader {
  readonly #asker: ProcessAsker

  constructor(asker: ProcessAsker = processAsker) {
    this.#asker = asker
  }

  /** Processes whose strings were not there in time, and that were not asked for them, since the start. */
  get lost(): Readonly<Record<'late' | 'refused' | 'busy' | 'unavailable', number>> {
    return this.#asker.lost
  }

  /** Undefined: they are not known. A process that has ended has none, which are empty. */
  of(procDir: string, pid: number): ProcessStrings | undefined {
    return this.#ask(procDir, pid, mostBytes)
  }

  /** Whether a process lets go of the lock of its memory now, so that what takes it (maps, map_files) may be read. */
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
