import { Backoff, type BackoffOptions } from '../foundation/lib/backoff.ts'
import { type Logger, limitRepeats } from '../foundation/lib/logger.ts'
import type { SendError, Sender } from '../foundation/model/batch.ts'

export interface RetryOptions extends BackoffOptions {
  /** Maximum time from the first attempt until a batch is dropped, in milliseconds; 0 for no limit. */
  readonly maxElapsedMs: number
}

/** State of a destination. Times are milliseconds since the Unix epoch. */
export interface Destination {
  readonly endpoint: string
  /** Whether the last request reached the receiver. */
  readonly connected: boolean
  readonly lastExportMs: number | null
  /** Error of the last batch; null after a success. */
  readonly lastError: string | null
  /** Message of the last partial success; null for none. */
  readonly lastWarning: string | null
  /** Whether sending is paused because the receiver rejects our credentials. */
  readonly parked: boolean
  /** Whether the receiver does not support the signal: items are dropped until the next attempt. */
  readonly unknown: boolean
  /** Earliest time of the next request; null if it may start now. */
  readonly nextAttemptMs: number | null
}

/** Maximum wait that a server can request, in milliseconds. */
const maxServerDelayMs = 15 * 60_000
/**
 * First and last wait before a retry at a receiver that does not support the signal: a starting gateway answers so
 * briefly, a receiver without profiles always.
 */
const firstUnknownMs = 30_000
const lastUnknownMs = 10 * 60_000
const repeatMs = 60_000
/** Minimum learned size limit of a receiver; a lower one is not plausible. */
const leastLimitBytes = 4096
/** Time before twice the limit is tried, in milliseconds: the receiver or a proxy may have been reconfigured. */
const limitMs = 10 * 60_000

/** Error types without an answer. */
const unreached = new Set(['connect', 'dns', 'tls', 'unavailable', 'deadline_exceeded', 'cancelled'])

/** A sender and the state of sending to it. A new sender starts with a clean state. */
export class DestinationState {
  readonly sender: Sender
  readonly repeat: ReturnType<typeof limitRepeats>
  inFlight = 0
  /** Whether only one request at a time is sent, until one succeeds. */
  halfOpen = false
  /** Number of waits. Failures of requests started before the last wait belong to the same outage. */
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

  /** Milliseconds until the next request may start; 0 or less if it may start now. */
  get waitMs(): number {
    return Math.max(this.#ownDelayUntil, this.#serverDelayUntil, this.#unknownUntil) - performance.now()
  }

  /** Remaining wait for a receiver that does not support the signal, in milliseconds. */
  get unknownMs(): number {
    return Math.max(0, this.#unknownUntil - performance.now())
  }

  /** Known size limit of the receiver, in bytes before compression; infinite if unknown. */
  get limitBytes(): number {
    return this.#limitBytes
  }

  /** Sets the size limit; false if it is not lower than before. */
  limit(bytes: number): boolean {
    const limitBytes = Math.max(bytes, leastLimitBytes)
    if (limitBytes >= this.#limitBytes) return false
    this.#limitBytes = limitBytes
    this.#limitedAt = performance.now()
    return true
  }

  /** Doubles the learned limit after some minutes; true if it did. */
  widen(): boolean {
    const now = performance.now()
    if (this.#limitBytes === Number.POSITIVE_INFINITY || now - this.#limitedAt < limitMs) return false
    this.#limitBytes *= 2
    this.#limitedAt = now
    return true
  }

  /** Sets the retry waits. A current wait is not extended. */
  retryBy(retry: RetryOptions): void {
    this.#backoff = new Backoff(retry)
    this.#ownDelayUntil = Math.min(this.#ownDelayUntil, performance.now() + retry.maxMs)
  }

  /** Makes the next attempt wait only for the server's delay, and resets the backoff. */
  hurry(): void {
    this.#backoff.reset()
    this.#ownDelayUntil = 0
  }

  succeed(): void {
    this.#nextUnknownMs = firstUnknownMs
    this.#backoff.reset()
    this.halfOpen = false
    this.#ownDelayUntil = 0
    this.failingSince = 0
    this.parked = false
    this.#connected = true
    this.#unknown = false
    this.#lastError = null
    this.#lastExportMs = Date.now()
  }

  /** Records the error of a request. */
  failed(error: SendError): void {
    this.#connected = !unreached.has(error.type)
    this.#unknown = error.type === 'unimplemented'
    this.#lastError = error.message
  }

  /** Applies the wait requested by the server, up to a maximum. Returns it in milliseconds. */
  obey(error: SendError): number {
    const delay = Math.min(error.retryAfterMs, maxServerDelayMs)
    this.#serverDelayUntil = Math.max(this.#serverDelayUntil, performance.now() + delay)
    return delay
  }

  /** Starts a wait, longer each time, or of `fixedMs`. Returns it in milliseconds. */
  backOff(fixedMs?: number): number {
    this.round++
    this.halfOpen = true
    const delay = fixedMs ?? this.#backoff.next()
    this.#ownDelayUntil = performance.now() + delay
    return delay
  }

  /** Stops sending for a while because the receiver does not support the signal. */
  leave(): void {
    this.halfOpen = true
    this.#unknownUntil = performance.now() + this.#nextUnknownMs
    this.#nextUnknownMs = Math.min(2 * this.#nextUnknownMs, lastUnknownMs)
  }
}
