// What processes keep to themselves, asked without waiting: reading it may take for ever (process-asker.ts).

import type { Logger } from '../foundation/lib/logger.ts'
import { within } from '../foundation/lib/within.ts'
import { Holders } from './holders.ts'
import { ownerOf } from './process-owner.ts'
import { RemoteFileError, RemoteFiles } from './remote-files.ts'

export interface ProcessInspectorOptions {
  readonly log: Logger
  /** Undefined: svc-probe was not built. */
  readonly program?: string | undefined
  /** How long an answer is waited for. */
  readonly patienceMs?: number
}

/** Whoever asks does other work meanwhile, but looks at one process after the other. */
const usualPatienceMs = 500
/** A Java process may have tens of thousands of mappings, of 100 bytes. */
const mostMapsBytes = 16 * 1024 * 1024

/** No answer came in time, or nobody was asked. */
export class NoAnswerError extends Error {}

/**
 * Whoever lets a question wait costs its owner what its processes keep until it was answered and a while after, and
 * nobody else anything.
 */
export class ProcessInspector {
  /** Questions that were not answered in time, that were not asked, and that could not be, since the start. */
  readonly lost = { late: 0, refused: 0, unavailable: 0 }
  readonly #remote: RemoteFiles
  readonly #holders = new Holders(() => performance.now())
  readonly #patienceMs: number
  #nextId = 1

  constructor({ patienceMs, ...options }: ProcessInspectorOptions) {
    this.#remote = new RemoteFiles(options)
    this.#patienceMs = patienceMs ?? usualPatienceMs
  }

  /** The list of its mappings (proc(5), maps). All of these reject with `NoAnswerError`, or a `RemoteFileError` of why it cannot be read. */
  maps(procDir: string, pid: number): Promise<Buffer> {
    return this.#ask(procDir, pid, () => this.#remote.beginning(`${procDir}/${pid}/maps`, mostMapsBytes))
  }

  /** As `RemoteFiles.memory`. */
  memory(procDir: string, pid: number, address: number, length: number): Promise<Buffer | undefined> {
    return this.#ask(procDir, pid, () => this.#remote.memory(`${procDir}/${pid}`, address, length))
  }

  /** Whether a process lets go of the lock of its memory now, so that what takes it (map_files) may be opened. */
  async isFree(procDir: string, pid: number): Promise<boolean> {
    try {
      await this.#ask(procDir, pid, () => this.#remote.beginning(`${procDir}/${pid}/cmdline`, 1))
      return true
    } catch (error) {
      return error instanceof RemoteFileError && error.errno !== 0 // what opens the file tells why
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
