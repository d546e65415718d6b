// Asynchronous access to private data of processes: reading it may block forever (process-asker.ts).

import type { Logger } from '../foundation/lib/logger.ts'
import { within } from '../foundation/lib/within.ts'
import { Holders } from './holders.ts'
import { ownerOf } from './process-owner.ts'
import { RemoteFileError, RemoteFiles } from './remote-files.ts'

export interface ProcessInspectorOptions {
  readonly log: Logger
  /** Undefined: svc-probe was not built. */
  readonly program?: string | undefined
  /** Timeout of an answer. */
  readonly patienceMs?: number
}

/** Callers do other work in between, but examine one process after the other. */
const usualPatienceMs = 500
/** A Java process may have tens of thousands of mappings, at 100 bytes each. */
const mostMapsBytes = 16 * 1024 * 1024

/** No answer in time, or no request was sent. */
export class NoAnswerError extends Error {}

/**
 * An owner whose processes do not answer loses the data of its processes until the request is answered and for a while
 * afterwards; other owners are not affected.
 */
export class ProcessInspector {
  /** Requests that were not answered in time, that were not sent, and that could not be, since the start. */
  readonly lost = { late: 0, refused: 0, unavailable: 0 }
  readonly #remote: RemoteFiles
  readonly #holders = new Holders(() => performance.now())
  readonly #patienceMs: number
  #nextId = 1

  constructor({ patienceMs, ...options }: ProcessInspectorOptions) {
    this.#remote = new RemoteFiles(options)
    this.#patienceMs = patienceMs ?? usualPatienceMs
  }

  /**
   * The process's list of mappings (proc(5), maps). All methods reject with `NoAnswerError`, or a `RemoteFileError` with the reason.
   */
  maps(procDir: string, pid: number): Promise<Buffer> {
    return this.#ask(procDir, pid, () => this.#remote.beginning(`${procDir}/${pid}/maps`, mostMapsBytes))
  }

  /** Like `RemoteFiles.memory`. */
  memory(procDir: string, pid: number, address: number, length: number): Promise<Buffer | undefined> {
    return this.#ask(procDir, pid, () => this.#remote.memory(`${procDir}/${pid}`, address, length))
  }

  /** True if the lock of a process's memory is free, so that files that require it (map_files) may be opened. */
  async isFree(procDir: string, pid: number): Promise<boolean> {
    try {
      await this.#ask(procDir, pid, () => this.#remote.beginning(`${procDir}/${pid}/cmdline`, 1))
      return true
    } catch (error) {
      return error instanceof RemoteFileError && error.errno !== 0 // opening the file reports the reason
    }
  }

  close(): void {
    this.#remote.close()
  }

  async #ask<T>(procDir: string, pid: number, question: () => Promise<T>): Promise<T> {
    if (!this.#holders.areNone && this.#holders.isRefused(ownerOf(procDir, pid))) {
      this.lost.refused++
      throw new NoAnswerError()
    }
    const answer = question().then(value => ({ value }))
    try {
      const found = await within(this.#patienceMs, answer)
      if (found !== undefined) return found.value
    } catch (error) {
      if (error instanceof RemoteFileError && error.errno === 0) this.lost.unavailable++
      throw error
    }
    this.lost.late++
    const id = this.#nextId++
    this.#holders.hold(id, ownerOf(procDir, pid))
    const done = () => this.#holders.answered(id)
    answer.then(done, done)
    throw new NoAnswerError()
  }
}
