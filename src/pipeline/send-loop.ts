import { Backoff, type BackoffOptions } from '../lib/backoff.ts'
import { type Logger, limitRepeats } from '../lib/logger.ts'
import { type Receipt, SendError, type Sender } from '../model/batch.ts'
import type { Signal } from '../model/signal.ts'
import type { Account } from './ledger.ts'
import type { Entry, Queue } from './queue.ts'

/** One export request that ended. `errorType` is '' where the receiver took the batch. */
export interface ExportRequest {
  readonly endpoint: string
  readonly signal: Signal
  readonly errorType: string
  readonly latencySeconds: number
  readonly items: number
}

export interface RetryOptions extends BackoffOptions {
  /** A batch is dropped this long after its first attempt; 0: never. */
  readonly maxElapsedMs: number
}

export interface SendLoopOptions {
  readonly signal: Signal
  readonly sender: Sender
  readonly queue: Queue
  readonly account: Account
  /** Requests under way at a time. */
  readonly concurrency: number
  readonly retry: RetryOptions
  /** Refused for who we are: `park` keeps the data and asks again once per `retry.maxMs`, `drop` drops it. */
  readonly onAuthError: 'park' | 'drop'
  readonly log: Logger
  /** Called after each request. Must not throw. */
  readonly observe?: ((request: ExportRequest) => void) | undefined
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
}

/** No server may silence a signal for longer than this. */
const maxServerDelayMs = 15 * 60_000
const repeatMs = 60_000

const authErrors = new Set(['unauthenticated', 'permission_denied'])
/** Errors that say nothing of an answer. */
const unreached = new Set(['connect', 'dns', 'tls', 'unavailable', 'deadline_exceeded', 'cancelled'])

/** How log records call the items. */
const itemNames = { traces: 'spans', metrics: 'metrics', logs: 'logs', profiles: 'profiles' } as const

interface Flush {
  /** Batches up to this number are awaited. */
  readonly last: number
  acknowledged: number
  readonly done: () => void
}

/**
 * Sends the batches of one signal's queue, several at a time. After a failure that may pass, the batch goes
 * back to its place, the whole signal waits, and one request at a time tries until one succeeds.
 */
export class SendLoop {
  readonly #options: SendLoopOptions
  readonly #backoff: Backoff
  readonly #repeat: ReturnType<typeof limitRepeats>
  readonly #stop = new AbortController()
  readonly #flushes = new Set<Flush>()
  #underWay = 0
  #width: number
  /** Failures of requests that began before the last wait belong to the outage that it answers. */
  #round = 0
  #ownDelayUntil = 0
  #serverDelayUntil = 0
  #timer: NodeJS.Timeout | undefined
  #stopped: (() => void) | undefined

  #connected = false
  #lastExportMs: number | null = null
  #lastError: string | null = null
  #lastWarning: string | null = null
  #parked = false
  #failingSince = 0

  constructor(options: SendLoopOptions) {
    this.#options = options
    this.#backoff = new Backoff(options.retry)
    this.#repeat = limitRepeats(options.log, repeatMs)
    this.#width = options.concurrency
  }

  get destination(): Destination {
    return {
      endpoint: this.#options.sender.endpoint,
      connected: this.#connected,
      lastExportMs: this.#lastExportMs,
      lastError: this.#lastError,
      lastWarning: this.#lastWarning,
      parked: this.#parked,
    }
  }

  /** Starts what may be sent now. To be called whenever the queue has changed. */
  pump(): void {
    while (this.#mayStart()) {
      const entry = this.#options.queue.take()
      if (!entry) break
      this.#underWay++
      this.#send(entry).catch(error => this.#options.log.error('Cannot report an export request.', { error }))
    }
    const oldest = this.#flushes.size > 0 ? this.#options.queue.oldestNumber : 0
    for (const flush of this.#flushes) if (oldest > flush.last) flush.done()
  }

  /**
   * Sends without the wait of its own backoff, but keeps the one that the server asked for. Resolves with the
   * items that the receiver acknowledged of those queued now, when the last has left the queue or time is up.
   */
  flush(timeoutMs: number): Promise<number> {
    return new Promise(resolve => {
      const timer = setTimeout(() => flush.done(), timeoutMs)
      const flush: Flush = {
        last: this.#options.queue.lastNumber,
        acknowledged: 0,
        done: () => {
          clearTimeout(timer)
          this.#flushes.delete(flush)
          resolve(flush.acknowledged)
        },
      }
      this.#flushes.add(flush)
      this.#ownDelayUntil = 0
      this.pump()
    })
  }

  /** Ends what is under way; its batches go back to the queue. Waits a second at most for a sender to give up. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer)
    this.#stop.abort()
    for (const flush of this.#flushes) flush.done()
    if (this.#underWay === 0) return
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, 1000)
      this.#stopped = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #mayStart(): boolean {
    if (this.#stop.signal.aborted || this.#underWay >= this.#width) return false
    const wait = Math.max(this.#ownDelayUntil, this.#serverDelayUntil) - performance.now()
    if (wait <= 0) return true
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.pump(), Math.ceil(wait))
    return false
  }

  async #send(entry: Entry): Promise<void> {
    const round = this.#round
    const startedAt = performance.now()
    let errorType = ''
    try {
      const receipt = await this.#options.sender.send(entry.batch, this.#stop.signal)
      this.#accepted(entry, receipt)
    } catch (cause) {
      const error = asSendError(cause)
      errorType = error.type
      if (this.#stop.signal.aborted) this.#options.queue.putBack(entry)
      else this.#failed(entry, error, round)
    } finally {
      this.#underWay--
      if (this.#underWay === 0) this.#stopped?.()
      this.pump()
    }
    this.#report(entry, errorType, performance.now() - startedAt)
  }

  #accepted(entry: Entry, receipt: Receipt): void {
    const { account, queue, signal, sender, concurrency, log } = this.#options
    if (!queue.settle(entry)) return
    const rejected = Math.min(Math.max(receipt.rejected, 0), entry.batch.items)
    const exported = entry.batch.items - rejected
    account.exported += exported
    account.rejected += rejected
    for (const flush of this.#flushes) if (entry.number <= flush.last) flush.acknowledged += exported

    if (this.#failingSince > 0) {
      const seconds = Math.round((performance.now() - this.#failingSince) / 1000)
      log.info('Export works again.', { signal, endpoint: sender.endpoint, after_seconds: seconds })
    }
    this.#succeed(concurrency)
    if (rejected === 0 && receipt.message === '') return
    this.#lastWarning = receipt.message || `${rejected} items rejected`
    const fields = { signal, endpoint: sender.endpoint, rejected, of: entry.batch.items }
    const level = rejected > 0 ? 'error' : 'warn'
    const sentence = rejected > 0 ? 'The receiver rejected items.' : 'The receiver has a warning.'
    this.#repeat(level, `partial ${level}`, sentence, { ...fields, message: receipt.message })
  }

  #succeed(concurrency: number): void {
    this.#backoff.reset()
    this.#width = concurrency
    this.#ownDelayUntil = 0
    this.#failingSince = 0
    this.#parked = false
    this.#connected = true
    this.#lastError = null
    this.#lastExportMs = Date.now()
  }

  #failed(entry: Entry, error: SendError, round: number): void {
    const { account, queue, retry, onAuthError, signal, sender } = this.#options
    const fields = { signal, endpoint: sender.endpoint, error: error.message }
    this.#connected = !unreached.has(error.type)
    this.#lastError = error.message
    const park = onAuthError === 'park' && authErrors.has(error.type)
    const given = retry.maxElapsedMs > 0 && performance.now() - entry.firstTriedAt >= retry.maxElapsedMs
    if ((!error.retryable && !park) || given) {
      if (!queue.settle(entry)) return
      const reason = error.retryable ? 'retry_timeout' : error.type
      account.drop(reason, entry.batch.items)
      this.#repeat('error', `drop ${reason}`, 'A batch was dropped.', { ...fields, items: entry.batch.items })
      if (!error.retryable) return
    } else queue.putBack(entry)

    const now = performance.now()
    const serverDelay = Math.min(error.retryAfterMs, maxServerDelayMs)
    this.#serverDelayUntil = Math.max(this.#serverDelayUntil, now + serverDelay)
    if (round !== this.#round) return
    this.#round++
    this.#width = 1
    this.#parked = park
    const delay = park ? retry.maxMs : this.#backoff.next()
    this.#ownDelayUntil = now + delay
    if (this.#failingSince > 0) return
    this.#failingSince = now
    const sentence = park
      ? 'The receiver refuses our credentials; data is kept and sending is tried again from time to time.'
      : 'Export fails; data is kept and sent again.'
    this.#repeat('warn', park ? 'park' : 'retry', sentence, {
      ...fields,
      retry_seconds: Math.max(delay, serverDelay) / 1000,
    })
  }

  #report(entry: Entry, errorType: string, latencyMs: number): void {
    const { observe, sender, signal, log } = this.#options
    const { endpoint } = sender
    const { items } = entry.batch
    observe?.({ endpoint, signal, errorType, latencySeconds: latencyMs / 1000, items })
    if (errorType === '' && log.enabled('debug'))
      log.debug('Exported a batch.', {
        endpoint,
        [itemNames[signal]]: items,
        latency_ms: Math.round(latencyMs),
      })
  }
}

/** A sender rejects with a `SendError`. Anything else is its fault and not the data's, yet would repeat for ever. */
function asSendError(error: unknown): SendError {
  if (error instanceof SendError) return error
  return new SendError(`cannot send a batch: ${String(error)}`, {
    type: 'internal',
    retryable: false,
    cause: error,
  })
}
