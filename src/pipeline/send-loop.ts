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

/** How a signal is sent; may change at any time. */
export interface SendSettings {
  /** Undefined: nowhere, and what is queued is dropped with the reason `no_endpoint`. */
  readonly sender: Sender | undefined
  /** Requests under way at a time. */
  readonly concurrency: number
  readonly retry: RetryOptions
  /** Refused for who we are: `park` keeps the data and asks again once per `retry.maxMs`, `drop` drops it. */
  readonly onAuthError: 'park' | 'drop'
}

export interface SendLoopOptions {
  readonly signal: Signal
  readonly queue: Queue
  readonly account: Account
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

/** What a flush came to, in items. What is in neither count was rejected or dropped. */
export interface Flushed {
  readonly acknowledged: number
  /** Still waiting or under way when time was up. */
  readonly left: number
}

interface Flush {
  /** Batches up to this number are awaited. */
  readonly last: number
  acknowledged: number
  readonly done: () => void
}

/** A sender and how sending to it goes. Another sender begins anew: nothing is held against it. */
class Outlet {
  readonly sender: Sender
  readonly repeat: ReturnType<typeof limitRepeats>
  backoff: Backoff
  underWay = 0
  /** One request at a time until one succeeds. */
  probing = false
  /** Failures of requests that began before the last wait belong to the outage that it answers. */
  round = 0
  ownDelayUntil = 0
  serverDelayUntil = 0
  failingSince = 0

  connected = false
  lastExportMs: number | null = null
  lastError: string | null = null
  lastWarning: string | null = null
  parked = false

  constructor(sender: Sender, retry: RetryOptions, log: Logger) {
    this.sender = sender
    this.repeat = limitRepeats(log, repeatMs)
    this.backoff = new Backoff(retry)
  }

  succeed(): void {
    this.backoff.reset()
    this.probing = false
    this.ownDelayUntil = 0
    this.failingSince = 0
    this.parked = false
    this.connected = true
    this.lastError = null
    this.lastExportMs = Date.now()
  }
}

/**
 * Sends the batches of one signal's queue, several at a time. After a failure that may pass, the batch goes
 * back to its place, the whole signal waits, and one request at a time tries until one succeeds. Where the sender
 * changes, requests under way end at the old one, and what it does not take goes to the new one.
 */
export class SendLoop {
  readonly #options: SendLoopOptions
  readonly #stop = new AbortController()
  readonly #flushes = new Set<Flush>()
  #settings: SendSettings
  #outlet: Outlet | undefined
  /** At senders of before, too. */
  #underWay = 0
  #timer: NodeJS.Timeout | undefined
  #stopped: (() => void) | undefined
  /** Requests that have ended, those of them without success, and batches that were sent once more. */
  readonly counts = { requests: 0, failed: 0, retries: 0 }

  constructor(options: SendLoopOptions, settings: SendSettings) {
    this.#options = options
    this.#settings = settings
    this.change(settings)
  }

  /** Undefined where nothing is sent. */
  get destination(): Destination | undefined {
    const outlet = this.#outlet
    if (!outlet) return undefined
    const { connected, lastExportMs, lastError, lastWarning, parked } = outlet
    return { endpoint: outlet.sender.endpoint, connected, lastExportMs, lastError, lastWarning, parked }
  }

  /** Sends by other settings from now on. A `pump` has to follow. */
  change(settings: SendSettings): void {
    const { sender, retry } = settings
    this.#settings = settings
    const outlet = this.#outlet
    if (outlet && outlet.sender === sender) {
      outlet.backoff = new Backoff(retry)
      outlet.ownDelayUntil = Math.min(outlet.ownDelayUntil, performance.now() + retry.maxMs)
      return
    }
    this.#outlet = sender && new Outlet(sender, retry, this.#options.log)
    if (sender) this.#options.account.deliver(sender.endpoint, 0)
  }

  /** Starts what may be sent now. To be called whenever the queue has changed. */
  pump(): void {
    const outlet = this.#outlet
    const { queue, log } = this.#options
    if (outlet) {
      while (this.#mayStart(outlet)) {
        const entry = queue.take()
        if (!entry) break
        this.#underWay++
        outlet.underWay++
        if (entry.attempts > 1) this.counts.retries++
        this.#send(outlet, entry).catch(error => log.error('Cannot report an export request.', { error }))
      }
    } else if (this.#underWay === 0 && !this.#stop.signal.aborted) queue.clear('no_endpoint')
    const oldest = this.#flushes.size > 0 ? queue.oldestNumber : 0
    for (const flush of this.#flushes) if (oldest > flush.last) flush.done()
  }

  /**
   * Sends without the wait of its own backoff, but keeps the one that the server asked for. Resolves with
   * what became of the items queued now, when the last has left the queue or time is up.
   */
  flush(timeoutMs: number): Promise<Flushed> {
    return new Promise(resolve => {
      const timer = setTimeout(() => flush.done(), timeoutMs)
      const flush: Flush = {
        last: this.#options.queue.lastNumber,
        acknowledged: 0,
        done: () => {
          clearTimeout(timer)
          this.#flushes.delete(flush)
          resolve({
            acknowledged: flush.acknowledged,
            left: this.#options.queue.itemsUpTo(flush.last),
          })
        },
      }
      this.#flushes.add(flush)
      if (this.#outlet) this.#outlet.ownDelayUntil = 0
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

  #mayStart({ underWay, probing, ownDelayUntil, serverDelayUntil }: Outlet): boolean {
    const most = probing ? 1 : this.#settings.concurrency
    if (this.#stop.signal.aborted || underWay >= most) return false
    const wait = Math.max(ownDelayUntil, serverDelayUntil) - performance.now()
    if (wait <= 0) return true
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.pump(), Math.ceil(wait))
    return false
  }

  async #send(outlet: Outlet, entry: Entry): Promise<void> {
    const { round } = outlet
    const startedAt = performance.now()
    let errorType = ''
    try {
      const receipt = await outlet.sender.send(entry.batch, this.#stop.signal)
      this.#accepted(outlet, entry, receipt)
    } catch (cause) {
      const error = asSendError(cause)
      errorType = error.type
      // What a former sender did not take is for the present one to judge.
      if (this.#stop.signal.aborted || outlet !== this.#outlet) this.#options.queue.putBack(entry)
      else this.#failed(outlet, entry, error, round)
    } finally {
      this.#underWay--
      outlet.underWay--
      this.counts.requests++
      if (errorType !== '') this.counts.failed++
      if (this.#underWay === 0) this.#stopped?.()
      this.pump()
    }
    this.#report(outlet.sender, entry, errorType, performance.now() - startedAt)
  }

  #accepted(outlet: Outlet, entry: Entry, receipt: Receipt): void {
    const { account, queue, signal, log } = this.#options
    const { endpoint } = outlet.sender
    if (!queue.settle(entry)) return
    const rejected = Math.min(Math.max(receipt.rejected, 0), entry.batch.items)
    const exported = entry.batch.items - rejected
    account.deliver(endpoint, exported)
    account.rejected += rejected
    for (const flush of this.#flushes) if (entry.number <= flush.last) flush.acknowledged += exported

    if (outlet.failingSince > 0) {
      const seconds = Math.round((performance.now() - outlet.failingSince) / 1000)
      log.info('Export works again.', { signal, endpoint, after_seconds: seconds })
    }
    outlet.succeed()
    if (rejected === 0 && receipt.message === '') return
    outlet.lastWarning = receipt.message || `${rejected} items rejected`
    const fields = { signal, endpoint, rejected, of: entry.batch.items }
    const level = rejected > 0 ? 'error' : 'warn'
    const sentence = rejected > 0 ? 'The receiver rejected items.' : 'The receiver has a warning.'
    outlet.repeat(level, `partial ${level}`, sentence, { ...fields, message: receipt.message })
  }

  #failed(outlet: Outlet, entry: Entry, error: SendError, round: number): void {
    const { account, queue, signal } = this.#options
    const { retry, onAuthError } = this.#settings
    const fields = { signal, endpoint: outlet.sender.endpoint, error: error.message }
    outlet.connected = !unreached.has(error.type)
    outlet.lastError = error.message
    const park = onAuthError === 'park' && authErrors.has(error.type)
    const given = retry.maxElapsedMs > 0 && performance.now() - entry.firstTriedAt >= retry.maxElapsedMs
    if ((!error.retryable && !park) || given) {
      if (!queue.settle(entry)) return
      const reason = error.retryable ? 'retry_timeout' : error.type
      account.drop(reason, entry.batch.items)
      outlet.repeat('error', `drop ${reason}`, 'A batch was dropped.', {
        ...fields,
        items: entry.batch.items,
      })
      if (!error.retryable) return
    } else queue.putBack(entry)

    const now = performance.now()
    const serverDelay = Math.min(error.retryAfterMs, maxServerDelayMs)
    outlet.serverDelayUntil = Math.max(outlet.serverDelayUntil, now + serverDelay)
    if (round !== outlet.round) return
    outlet.round++
    outlet.probing = true
    outlet.parked = park
    const delay = park ? retry.maxMs : outlet.backoff.next()
    outlet.ownDelayUntil = now + delay
    if (outlet.failingSince > 0) return
    outlet.failingSince = now
    const sentence = park
      ? 'The receiver refuses our credentials; data is kept and sending is tried again from time to time.'
      : 'Export fails; data is kept and sent again.'
    outlet.repeat('warn', park ? 'park' : 'retry', sentence, {
      ...fields,
      retry_seconds: Math.max(delay, serverDelay) / 1000,
    })
  }

  #report({ endpoint }: Sender, entry: Entry, errorType: string, latencyMs: number): void {
    const { observe, signal, log } = this.#options
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
