// Asks svc-probe for what processes keep in their own memory. Reading it may wait for ever: for the lock of the memory,
// which any process can keep, and for whoever serves a file that it has mapped (FUSE). Who asks here waits for a moment.

import { isMainThread } from 'node:worker_threads'
import type { Owner } from '../foundation/lib/fair-share.ts'
import { findAsset } from './assets.ts'
import { type HelperAnswer, HelperChannel } from './helper-channel.ts'
import { Holders, keyOf } from './holders.ts'
import { loadNative, Unsupported } from './native.ts'

export interface ProcessAskerOptions {
  /** Undefined: it was not built, and what it would read is not known. */
  readonly program?: string | undefined
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number
  /** How long a question may wait, in milliseconds. */
  readonly patienceMs?: number
  /** How long who asks may wait at once, in milliseconds. */
  readonly mostWaitMs?: number
}

export interface ProcessQuestion {
  /** What native/probe/probe.c can do. */
  readonly operation: 'P' | 'O' | 'M'
  readonly limit: number
  /** What the protocol calls PATH. */
  readonly text: string
  /** Whose process it is: asked only where somebody let a question wait. */
  readonly owner: () => Owner
  /** Is called with an answer for which nobody waits any more. */
  readonly late?: (answer: HelperAnswer) => void
}

/** An answer takes 0.1 ms. Where all processors are busy this process waits for its turn like any other. */
const usualPatienceMs = 100
/** A program that ended is not started again before this time since its start. */
const restartMs = 1_000
/**
 * How long who asks may wait at once, for all and for each owner, and how long it takes until that was forgotten: where all
 * processors are busy and processes many, answers in time would add up to seconds in which nothing else is done. A busy
 * host alone stays far below, as who is not asked for goes by the name of its program until it is. Below the usual time of
 * an answer nothing counts.
 */
const usualMostWaitMs = 1_000
const forgottenMs = 3_000
/** Each owner's part, and the first of which nobody's part is counted. */
const ownersPart = 1 / 2
const freePart = 1 / 6
const usualMs = 1

/** How long was waited of late; it is forgotten bit by bit. */
class Waits {
  readonly #ofOwners = new Map<string, number>()
  #atMs = Number.NEGATIVE_INFINITY
  #totalMs = 0
  readonly #mostMs: number

  constructor(mostMs: number) {
    this.#mostMs = mostMs
  }

  /** Whether so much was waited that each owner gets no more than its part. */
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
 * Asks by turns. Whoever lets a question wait costs its owner (user within a container, unit or session) what its
 * processes keep until it was answered and a while after, and nobody else anything.
 */
export class ProcessAsker {
  /** Questions that were not answered in time, and that were not asked, since the start. */
  readonly lost = { late: 0, refused: 0, busy: 0, unavailable: 0 }
  readonly #program: string | undefined
  readonly #now: () => number
  readonly #patienceMs: number
  readonly #holders: Holders
  /** What is to be done with answers for which nobody waits any more, by the number of the question. */
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

  /** How many questions nobody has answered yet. */
  get held(): number {
    return this.#holders.held
  }

  /** The program that is asked now; what another one had open is closed. Undefined: none runs. */
  get running(): object | undefined {
    return this.#running?.isOpen === true ? this.#running : undefined
  }

  /** Undefined: there was none in time, or it was not asked. Valid until the next question. */
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
      this.close() // It ended; the next process has another one.
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

  /** Closes what the program has open, which nobody waits for. */
  release(text: string): void {
    try {
      if (this.#running?.isOpen === true) this.#running.ask(this.#nextId++, 'C', 0, text)
    } catch {
      this.close() // It ended, and has nothing open.
    }
  }

  /** Ends the program. It is started again when it is needed. */
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
      // No place for another process: tried again.
    }
    return this.#running
  }
}

/** Of this thread: what holds one up would hold up the others. Nobody waits for the threads beside the main one. */
export const processAsker = new ProcessAsker(isMainThread ? {} : { patienceMs: 500, mostWaitMs: 5_000 })
