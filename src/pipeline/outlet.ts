import { Backoff, type BackoffOptions } from '../lib/backoff.ts'
import { type Logger, limitRepeats } from '../lib/logger.ts'
import type { SendError, Sender } from '../model/batch.ts'

export interface RetryOptions extends BackoffOptions {
  /** A batch is dropped this long after its first attempt; 0: never. */
  readonly maxElapsedMs: number
}

/** How a destination is doing. Times are milliseconds since the Unix epoch. */
export interface Destination {
  readonly endpoint: string
  /** The last request reached the receiver. */
  readonly connected: boolean
  readonly lastExportMs: number | null
  /** What stands in the way of the last batch, with words; null after a success. */
  readonly lastError: string | null
  /** The receiver's words on its last partial success; null when there was none. */
  readonly lastWarning: string | null
  /** The receiver refuses our credentials, so sending waits for others. */
  readonly parked: boolean
  /** The receiver does not know the signal: what is made of it is dropped, until it is asked again. */
  readonly unknown: boolean
  /** When the next request may start, milliseconds since the Unix epoch; null while nothing stands in its way. */
  readonly nextAttemptMs: number | null
}

/** No server may silence a signal for longer than this. */
const maxServerDelayMs = 15 * 60_000
/**
 * A receiver that does not know the signal is asked again after the first time, and later and later up to the other: a
 * gateway that starts says so for a moment, a receiver without profiles for ever.
 */
const firstUnknownMs = 30_000
const lastUnknownMs = 10 * 60_000
const repeatMs = 60_000
/** A limit of the receiver is learned down to here; what is smaller is no limit that anybody meant. */
const leastLimitBytes = 4096
/** Twice the limit is tried again after this time, for a receiver, or a proxy before it, may be set right. */
const limitMs = 10 * 60_000

/** Errors that say nothing of an answer. */
const unreached = new Set(['connect', 'dns', 'tls', 'unavailable', 'deadline_exceeded', 'cancelled'])

/** A sender and how sending to it goes. Another sender begins anew: nothing is held against it. */
export class Outlet {
  readonly sender: Sender
  readonly repeat: ReturnType<typeof limitRepeats>
  underWay = 0
  /** One request at a time until one succeeds. */
  probing = false
  /** Failures of requests that began before the last wait belong to the outage that it answers. */
  round = 0
  failingSince = 0
  parked = false
  lastWarning: string | null = null
  #backoff: Backoff
  #ownDelayUntil = 0
  #serverDelayUntil = 0
  #unknownUntil = 0
  #nextUnknownMs = firstUnknownMs
  #limitBytes = Number.POSITIVE_INFINITY
  #limitedAt = 0
  #connected = false
  #unknown = false
  #lastExportMs: number | null = null
  #lastError: string | null = null

  constructor(sender: Sender, retry: RetryOptions, log: Logger) {
    this.sender = sender
    this.repeat = limitRepeats(log, repeatMs)
    this.#backoff = new Backoff(retry)
  }

  get destination(): Destination {
    const wait = this.waitMs
    return {
      endpoint: this.sender.endpoint,
      connected: this.#connected,
      lastExportMs: this.#lastExportMs,
      lastError: this.#lastError,
      lastWarning: this.lastWarning,
      parked: this.parked,
      unknown: this.#unknown,
      nextAttemptMs: wait > 0 ? Math.round(Date.now() + wait) : null,
    }
  }

  /** Milliseconds until the next request may start; not above 0 where it may now. */
  get waitMs(): number {
    return Math.max(this.#ownDelayUntil, this.#serverDelayUntil, this.#unknownUntil) - performance.now()
  }

  /** For how long the receiver, which does not know the signal, is still left alone, in milliseconds. */
  get unknownMs(): number {
    return Math.max(0, this.#unknownUntil - performance.now())
  }

  /** Largest request that the receiver is known to take, in bytes before compression; infinite: not known. */
  get limitBytes(): number {
    return this.#limitBytes
  }

  /** Makes no larger requests from now on; false where that is nothing new. */
  limit(bytes: number): boolean {
    const limitBytes = Math.max(bytes, leastLimitBytes)
    if (limitBytes >= this.#limitBytes) return false
    this.#limitBytes = limitBytes
    this.#limitedAt = performance.now()
    return true
  }

  /** After some minutes doubles the limit that was learned, and returns true. */
  widen(): boolean {
    const now = performance.now()
    if (this.#limitBytes === Number.POSITIVE_INFINITY || now - this.#limitedAt < limitMs) return false
    this.#limitBytes *= 2
    this.#limitedAt = now
    return true
  }

  /** Other waits from now on. One that runs is not made longer. */
  retryBy(retry: RetryOptions): void {
    this.#backoff = new Backoff(retry)
    this.#ownDelayUntil = Math.min(this.#ownDelayUntil, performance.now() + retry.maxMs)
  }

  /** The next attempt waits for nothing but what the server asked for, and those after it not for long. */
  hurry(): void {
    this.#backoff.reset()
    this.#ownDelayUntil = 0
  }

  succeed(): void {
    this.#nextUnknownMs = firstUnknownMs
    this.#backoff.reset()
    this.probing = false
    this.#ownDelayUntil = 0
    this.failingSince = 0
    this.parked = false
    this.#connected = true
    this.#unknown = false
    this.#lastError = null
    this.#lastExportMs = Date.now()
  }

  /** Takes down what a request ended with. */
  failed(error: SendError): void {
    this.#connected = !unreached.has(error.type)
    this.#unknown = error.type === 'unimplemented'
    this.#lastError = error.message
  }

  /** Keeps to the wait that the server asked for, within reason. Returns it in milliseconds. */
  obey(error: SendError): number {
    const delay = Math.min(error.retryAfterMs, maxServerDelayMs)
    this.#serverDelayUntil = Math.max(this.#serverDelayUntil, performance.now() + delay)
    return delay
  }

  /** Waits, for longer with each time, or `fixedMs`; returns the wait in milliseconds. */
  backOff(fixedMs?: number): number {
    this.round++
    this.probing = true
    const delay = fixedMs ?? this.#backoff.next()
    this.#ownDelayUntil = performance.now() + delay
    return delay
  }

  /** Leaves the signal alone for a while. */
  leave(): void {
    this.probing = true
    this.#unknownUntil = performance.now() + this.#nextUnknownMs
    this.#nextUnknownMs = Math.min(2 * this.#nextUnknownMs, lastUnknownMs)
  }
}
