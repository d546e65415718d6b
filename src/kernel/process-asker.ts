// Reads data in processes' own memory through svc-probe. Reading it may block forever: on the lock of the memory, which
// any process can hold, and on the server of a mapped file (FUSE). Requests here have a short timeout.

import { isMainThread } from 'node:worker_threads'
import type { Owner } from '../foundation/lib/fair-share.ts'
import { findAsset } from './assets.ts'
import { type HelperAnswer, HelperChannel } from './helper-channel.ts'
import { Holders, keyOf } from './holders.ts'
import { loadNative, Unsupported } from './native.ts'

export interface ProcessAskerOptions {
  /** Undefined: it was not built, and all data is unknown. */
  readonly program?: string | undefined
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number
  /** Timeout of a request, in milliseconds. */
  readonly patienceMs?: number
  /** Maximum waiting time in a row, in milliseconds. */
  readonly mostWaitMs?: number
}

export interface ProcessQuestion {
  /** Operations of native/probe/probe.c. */
  readonly operation: 'P' | 'O' | 'M'
  readonly limit: number
  /** PATH in the protocol. */
  readonly text: string
  /** The process's owner: called only if some owner delayed a request. */
  readonly owner: () => Owner
  /** Called with an answer that arrives after its timeout. */
  readonly late?: (answer: HelperAnswer) => void
}

/** An answer takes 0.1 ms. When all CPUs are busy, svc-probe waits for its turn like any other process. */
const usualPatienceMs = 100
/** Minimum time between two starts of the program. */
const restartMs = 1_000
/**
 * Maximum recent waiting time, for all and per owner, and the time in which it decays: with all CPUs busy and many
 * processes, even answers in time would add up to seconds in which nothing else runs. A busy host alone stays far
 * below, since a process without an answer is named by its program until it gets one. Waits below the usual time of an
 * answer do not count.
 */
const usualMostWaitMs = 1_000
const forgottenMs = 3_000
/** Each owner's part, and the first part, which is not counted per owner. */
const ownersPart = 1 / 2
const freePart = 1 / 6
const usualMs = 1

/** Recent waiting time, which decays. */
class Waits {
  readonly #ofOwners = new Map<string, number>()
  #atMs = Number.NEGATIVE_INFINITY
  #totalMs = 0
  readonly #mostMs: number

  constructor(mostMs: number) {
    this.#mostMs = mostMs
  }

  /** True if there was so much waiting that each owner is limited to its part. */
  isCounted(nowMs: number): boolean {
    const forgottenOfAll = (this.#mostMs * (nowMs - this.#atMs)) / forgottenMs
    this.#totalMs = Math.max(0, this.#totalMs - forgottenOfAll)
    this.#atMs = nowMs
    if (this.#totalMs === 0) this.#ofOwners.clear()
    for (const [owner, ms] of this.#ofOwners)
      if (ms > forgottenOfAll) this.#ofOwners.set(owner, ms - forgottenOfAll)
      else this.#ofOwners.delete(owner)
    return this.#totalMs >= this.#mostMs * freePart
  }

  isSpent(owner: string): boolean {
    const ofOwner = this.#ofOwners.get(owner) ?? 0
    return this.#totalMs >= this.#mostMs || ofOwner >= this.#mostMs * ownersPart
  }

  /** `owner`: '' while they are not counted. */
  add(owner: string, tookMs: number): void {
    if (tookMs <= usualMs) return
    this.#totalMs += tookMs
    if (owner !== '') this.#ofOwners.set(owner, (this.#ofOwners.get(owner) ?? 0) + tookMs)
  }
}

/**
 * Sends one request at a time. An owner (user within a container, unit or session) that delays a request loses the data
 * of its processes until it is answered and for a while afterwards; other owners are not affected.
 */
export class ProcessAsker {
  /** Requests that were not answered in time, and that were not sent, since the start. */
  readonly lost = { late: 0, refused: 0, busy: 0, unavailable: 0 }
  readonly #program: string | undefined
  readonly #now: () => number
  readonly #patienceMs: number
  readonly #holders: Holders
  /** Handlers of late answers, by request number. */
  readonly #late = new Map<number, (answer: HelperAnswer) => void>()
  readonly #waits: Waits
  #running: HelperChannel | undefined
  #startedMs = Number.NEGATIVE_INFINITY
  #nextId = 1

  constructor(options: ProcessAskerOptions = {}) {
    this.#program = 'program' in options ? options.program : findAsset('svc-probe')
    this.#now = options.now ?? (() => performance.now())
    this.#patienceMs = options.patienceMs ?? usualPatienceMs
    this.#holders = new Holders(this.#now)
    this.#waits = new Waits(options.mostWaitMs ?? usualMostWaitMs)
  }

  /** Number of unanswered requests. */
  get held(): number {
    return this.#holders.held
  }

  /** The running program; files that an earlier one had open are closed. Undefined: none runs. */
  get running(): object | undefined {
    return this.#running?.isOpen === true ? this.#running : undefined
  }

  /** Undefined: no answer in time, or the request was not sent. Valid until the next request. */
  ask({ operation, limit, text, owner: whose, late }: ProcessQuestion): HelperAnswer | undefined {
    const isCounted = this.#waits.isCounted(this.#now())
    const owner = isCounted || !this.#holders.areNone ? whose() : undefined
    if (owner !== undefined && this.#holders.isRefused(owner)) {
      this.lost.refused++
      return undefined
    }
    if (owner !== undefined && isCounted && this.#waits.isSpent(keyOf(owner))) {
      this.lost.busy++
      return undefined
    }
    const running = this.#started()
    if (running === undefined) {
      this.lost.unavailable++
      return undefined
    }
    const id = this.#nextId++
    const beganMs = performance.now()
    try {
      running.ask(id, operation, limit, text)
      const answer = running.answer(id, this.#patienceMs, (other, answer) => this.#answered(other, answer))
      if (answer !== undefined) return answer
    } catch {
      this.close() // It ended; the next request starts another one.
      this.lost.unavailable++
      return undefined
    } finally {
      this.#waits.add(isCounted && owner !== undefined ? keyOf(owner) : '', performance.now() - beganMs)
    }
    this.lost.late++
    this.#holders.hold(id, owner ?? whose())
    if (late !== undefined) this.#late.set(id, late)
    return undefined
  }

  /** Closes a file that the program has open, without waiting. */
  release(text: string): void {
    try {
      if (this.#running?.isOpen === true) this.#running.ask(this.#nextId++, 'C', 0, text)
    } catch {
      this.close() // It ended, and has nothing open.
    }
  }

  /** Stops the program. It is restarted on demand. */
  close(): void {
    this.#running?.close()
    this.#running = undefined
    this.#late.clear()
    this.#holders.answeredAll()
  }

  #answered(id: number, answer: HelperAnswer): void {
    this.#holders.answered(id)
    const late = this.#late.get(id)
    this.#late.delete(id)
    late?.(answer)
  }

  #started(): HelperChannel | undefined {
    if (this.#running?.isOpen === true) return this.#running
    this.close()
    const now = this.#now()
    if (this.#program === undefined || now - this.#startedMs < restartMs) return undefined
    this.#startedMs = now
    try {
      const native = loadNative()
      if (native instanceof Unsupported) return undefined
      this.#running = new HelperChannel(this.#program, native, this.#patienceMs)
    } catch {
      // No room for another process: retry later.
    }
    return this.#running
  }
}

/**
 * One per thread, so that a delay in one does not delay the others. Threads other than the main one may wait longer.
 */
export const processAsker = new ProcessAsker(isMainThread ? {} : { patienceMs: 500, mostWaitMs: 5_000 })
