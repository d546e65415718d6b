// What processes keep in their own memory and /proc shows: command lines and environments. To read them the kernel takes
// the lock of the process's memory, which any process can keep for ever: mmap(2) over pages that it changed of a file on
// FUSE waits, with the lock, for whoever serves that. So svc-probe reads it, and who asks waits for a moment:
// native/probe/probe.c has the protocol.

import { readSync, writeSync } from 'node:fs'
import type { Owner } from '../lib/fair-share.ts'
import { findAsset } from './assets.ts'
import { type AnsweringChild, startAnswering } from './child.ts'
import { type ChannelHandle, loadNative, type Native, Unsupported } from './native.ts'
import { ownerOf } from './process-owner.ts'

/** Both are valid until the next question. */
export interface ProcessStrings {
  /** As in /proc/PID/cmdline; empty where it cannot be read. */
  readonly command: Buffer
  /** As in /proc/PID/environ. */
  readonly environment: Buffer
}

export interface StringReaderOptions {
  /** Undefined: it was not built, and what it would read is not known. */
  readonly program?: string | undefined
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number
  /** How long who asks may wait in five seconds, in milliseconds. */
  readonly mostWaitMs?: number
}

/** Of each of the two: they may have 2 MB, and the beginning is enough. */
const mostBytes = 256 * 1024
/** An answer takes 0.1 ms. Where all processors are busy this process waits for its turn like any other. */
const patienceMs = 100
/** Questions that nobody answers, of all and of one group: each is a thread of svc-probe. */
const mostHeld = 64
const mostHeldOfGroup = 3
/** How long nothing is asked of who let a question wait, once it was answered; twice as long each time after. */
const firstPenaltyMs = 10_000
const longestPenaltyMs = 600_000
/** Owners that are remembered for it. */
const mostOwners = 1_024
/** A program that ended is not started again before this time since its start. */
const restartMs = 1_000
/** Whether a process lets go of its lock shows with its first byte. */
const leastBytes = 1
/**
 * How long who asks may wait in a while, for all and for each owner: where all processors are busy and processes many,
 * answers in time would add up to seconds in which nothing else is done. A busy host alone stays far below, as who is not
 * asked for goes by the name of its program until it is. Below the usual time of an answer nothing counts.
 */
const windowMs = 5_000
const usualMostWaitMs = 1_500
/** Of them, each owner's part, and the first of which nobody's part is counted. */
const ownersPart = 1 / 2
const freePart = 1 / 6
const usualMs = 1
const bufferBytes = 2 * mostBytes + 4_096

/** Who let a question wait. */
interface Holder {
  readonly owner: Owner
  /** Questions without an answer. */
  held: number
  penaltyMs: number
  untilMs: number
}

/** How long was waited in the current stretch of time. */
class Waits {
  readonly #ofOwners = new Map<string, number>()
  #beganMs = Number.NEGATIVE_INFINITY
  #totalMs = 0
  readonly #mostMs: number

  constructor(mostMs: number) {
    this.#mostMs = mostMs
  }

  /** Whether so much was waited that each owner gets no more than its part. */
  isCounted(nowMs: number): boolean {
    if (nowMs - this.#beganMs >= windowMs) {
      this.#beganMs = nowMs
      this.#totalMs = 0
      this.#ofOwners.clear()
    }
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
 * Asks for the strings of processes, by turns. Whoever lets a question wait costs its owner (user within a container, unit
 * or session) the strings of its processes until it was answered and a while after, and nobody else anything.
 */
export class StringReader {
  /** Processes whose strings were not there in time, and that were not asked for them, since the start. */
  readonly lost = { late: 0, refused: 0, busy: 0, unavailable: 0 }
  readonly #program: string | undefined
  readonly #now: () => number
  readonly #holders = new Map<string, Holder>()
  /** Those that wait, by the number of their question. */
  readonly #held = new Map<number, Holder>()
  readonly #waits: Waits
  #running: Running | undefined
  #startedMs = Number.NEGATIVE_INFINITY
  #nextId = 1

  constructor(options: StringReaderOptions = {}) {
    this.#program = 'program' in options ? options.program : findAsset('svc-probe')
    this.#now = options.now ?? (() => performance.now())
    this.#waits = new Waits(options.mostWaitMs ?? usualMostWaitMs)
  }

  /** How many questions nobody has answered yet. */
  get held(): number {
    return this.#held.size
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
    const isCounted = this.#waits.isCounted(this.#now())
    const owner = isCounted || this.#holders.size > 0 ? ownerOf(procDir, pid) : undefined
    if (owner !== undefined && this.#isRefused(owner)) {
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
      running.ask(id, `${procDir}/${pid}`, most)
      const strings = running.answer(id, patienceMs, other => this.#answered(other))
      if (strings !== undefined) return strings
    } catch {
      this.close() // It ended; the next process has another one.
      this.lost.unavailable++
      return undefined
    } finally {
      this.#waits.add(isCounted && owner !== undefined ? keyOf(owner) : '', performance.now() - beganMs)
    }
    this.lost.late++
    this.#hold(id, owner ?? ownerOf(procDir, pid))
    return undefined
  }

  /** Ends the program. It is started again when it is needed. */
  close(): void {
    this.#running?.close()
    this.#running = undefined
    for (const id of [...this.#held.keys()]) this.#answered(id)
  }

  #isRefused({ group, user }: Owner): boolean {
    if (this.#held.size >= mostHeld) return true
    const own = this.#holders.get(keyOf({ group, user }))
    if (own !== undefined && (own.held > 0 || this.#now() < own.untilMs)) return true
    if (group === '') return false
    let ofGroup = 0
    for (const { owner } of this.#held.values()) if (owner.group === group) ofGroup++
    return ofGroup >= mostHeldOfGroup
  }

  #hold(id: number, owner: Owner): void {
    const key = keyOf(owner)
    const holder = this.#holders.get(key) ?? { owner, held: 0, penaltyMs: 0, untilMs: 0 }
    this.#holders.delete(key)
    this.#holders.set(key, holder)
    holder.held++
    this.#held.set(id, holder)
    if (this.#holders.size <= mostOwners) return
    for (const [other, { held }] of this.#holders) {
      if (held > 0) continue
      this.#holders.delete(other)
      return
    }
  }

  #answered(id: number): void {
    const holder = this.#held.get(id)
    if (holder === undefined) return
    this.#held.delete(id)
    holder.held--
    holder.penaltyMs = Math.min(longestPenaltyMs, Math.max(firstPenaltyMs, holder.penaltyMs * 2))
    holder.untilMs = this.#now() + holder.penaltyMs
  }

  #started(): Running | undefined {
    if (this.#running?.isThere === true) return this.#running
    this.close()
    const now = this.#now()
    if (this.#program === undefined || now - this.#startedMs < restartMs) return undefined
    this.#startedMs = now
    try {
      const native = loadNative()
      if (native instanceof Unsupported) return undefined
      this.#running = new Running(this.#program, native)
    } catch {
      // No place for another process: tried again.
    }
    return this.#running
  }
}

/** Of this process: what holds one reader would hold the others. */
export const processStrings = new StringReader()

/** The program, by its end of the channel. Every method throws where it has ended. */
class Running {
  isThere = true
  readonly #child: AnsweringChild
  readonly #native: Native
  readonly #channel: ChannelHandle
  readonly #fd: number
  readonly #buffer = Buffer.allocUnsafeSlow(bufferBytes)
  #start = 0
  #end = 0

  constructor(program: string, native: Native) {
    this.#native = native
    this.#channel = native.channelOpen(patienceMs)
    const { near, far } = native.channelEnds(this.#channel)
    this.#fd = near
    try {
      this.#child = startAnswering(program, far, 'own')
    } catch (error) {
      native.channelClose(this.#channel)
      throw error
    }
    native.channelBelongs(this.#channel, this.#child.pid!)
    this.#child.on('exit', () => {
      this.isThere = false
      native.channelBelongs(this.#channel, 0)
    })
  }

  close(): void {
    this.isThere = false
    this.#child.kill('SIGKILL')
    this.#native.channelClose(this.#channel)
  }

  ask(id: number, directory: string, most: number): void {
    const request = `${id} P ${most} ${Buffer.from(directory).toString('hex')}\n`
    if (again(() => writeSync(this.#fd, request)) !== request.length) throw new Error('it does not read')
  }

  /** Undefined where it does not come in time. `other`: a question from before that has been answered. */
  answer(id: number, mostMs: number, other: (id: number) => void): ProcessStrings | undefined {
    const endMs = performance.now() + mostMs
    for (;;) {
      const head = this.#line(endMs)
      if (head === undefined) return undefined
      const [answered = 0, errno = 0, length = 0] = head.text.split(' ').map(Number)
      if (length > 2 * mostBytes + 64) throw new Error('what it wrote is no answer')
      // What is there of it stays, and is read with the next question.
      if (!this.#fill(head.end + length, endMs)) return undefined
      const payload = this.#buffer.subarray(head.end, head.end + length)
      this.#start = head.end + length
      if (answered !== id) {
        other(answered)
        continue
      }
      if (errno !== 0) return noStrings
      const newline = payload.indexOf(10)
      const behind = newline + 1 + Number(payload.toString('latin1', 0, newline))
      return { command: payload.subarray(newline + 1, behind), environment: payload.subarray(behind) }
    }
  }

  /** The line that begins here; `end`: where the next byte stands. */
  #line(endMs: number): { readonly text: string; readonly end: number } | undefined {
    // Only between answers, so that nothing moves that is in use.
    this.#buffer.copyWithin(0, this.#start, this.#end)
    this.#end -= this.#start
    this.#start = 0
    for (let wanted = 1; ; wanted = this.#end + 1) {
      if (!this.#fill(wanted, endMs)) return undefined
      const newline = this.#buffer.subarray(0, Math.min(this.#end, 64)).indexOf(10)
      if (newline >= 0) return { text: this.#buffer.toString('latin1', 0, newline), end: newline + 1 }
      if (this.#end >= 64) throw new Error('what it wrote is no answer')
    }
  }

  /** Whether there are so many bytes. */
  #fill(wanted: number, endMs: number): boolean {
    while (this.#end < wanted) {
      if (performance.now() > endMs) return false
      let got = 0
      try {
        got = readSync(this.#fd, this.#buffer, this.#end, this.#buffer.length - this.#end, null)
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code === 'EAGAIN') return false
        // A signal: with many of them the kernel's own bound of the wait begins again and again.
        if (code === 'EINTR') continue
        throw error
      }
      if (got === 0) throw new Error('it ended')
      this.#end += got
    }
    return true
  }
}

const nothing = Buffer.alloc(0)
const noStrings: ProcessStrings = { command: nothing, environment: nothing }

function keyOf({ group, user }: Owner): string {
  return `${group}\0${user}`
}

/** A signal that comes while a call waits ends the call. */
function again(call: () => number): number {
  for (;;) {
    try {
      return call()
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EINTR') throw error
    }
  }
}
