import type { Logger } from '../foundation/lib/logger.ts'
import {
  type Batch,
  type ExportCall,
  type Receipt,
  SendError,
  type Sender,
  type SendFault,
} from '../foundation/model/batch.ts'
import type { DropReasonName } from '../foundation/model/drop-reasons.ts'
import type { Signal } from '../foundation/model/signal.ts'
import type { BatchQueue, Entry } from './batch-queue.ts'
import { type Destination, DestinationState, type RetryOptions } from './destination-state.ts'
import type { Account } from './ledger.ts'

/** A finished export request. `errorType` is '' if the receiver accepted the batch. */
export interface ExportRequest {
  readonly endpoint: string
  readonly signal: Signal
  readonly errorType: string
  readonly latencySeconds: number
  readonly items: number
  readonly call: ExportCall
  /** HTTP status of the answer, if any. */
  readonly httpStatus: number | undefined
}

/** Settings for sending a signal; may change at any time. */
export interface SendSettings {
  /** Undefined without a destination; batches queued in memory are then dropped with the reason `no_endpoint`. */
  readonly sender: Sender | undefined
  /** Maximum concurrent requests. */
  readonly concurrency: number
  readonly retry: RetryOptions
  /** Action on rejected credentials: `park` keeps the data and retries once per `retry.maxMs`, `drop` drops it. */
  readonly onAuthError: 'park' | 'drop'
}

/** Splits a request into two with its items in order; undefined if that is impossible. */
export type Halve = (batch: Batch) => Promise<readonly [Batch, Batch] | undefined>

export interface SendLoopOptions {
  readonly signal: Signal
  readonly queue: BatchQueue
  readonly account: Account
  readonly log: Logger
  readonly halve?: Halve | undefined
  /** Called after each request. Must not throw. */
  readonly observe?: ((request: ExportRequest) => void) | undefined
  /** Called when the receiver's size limit, or its support for the signal, becomes known. */
  readonly learned?: (() => void) | undefined
  /** Called after each `pump`. */
  readonly pumped?: (() => void) | undefined
}

/** Maximum splits of a rejected request in search of its invalid items. */
const maxSearches = 32
/** Maximum splits of a request that is too large; the receiver's limit ends them long before. */
const maxCuts = 256

const authErrors = new Set(['unauthenticated', 'permission_denied'])
/** Error types caused by the data, so that a part of it may be accepted. */
const dataErrors = new Set(['invalid_argument', 'http_400', 'http_422', 'too_large'])

/** Field names of items in log records. */
const itemNames = { traces: 'spans', metrics: 'metrics', logs: 'logs', profiles: 'profiles' } as const

/** Result of a flush, in items. Items in neither count were rejected or dropped. */
export interface Flushed {
  readonly acknowledged: number
  /** Still waiting or in flight when time was up. */
  readonly left: number
}

interface Flush {
  /** The flush waits for batches up to this number. */
  readonly last: number
  /** Items pushed to the queue before its start. */
  readonly pushed: number
  acknowledged: number
  /** Items of later batches that have already left. */
  later: number
  readonly done: () => void
}

/** Number of splits of a batch by cause. */
interface Divisions {
  searches: number
  cuts: number
}

/**
 * Sends the batches of one signal's queue, several at a time. After a temporary failure, the batch goes back to its
 * place, the whole signal waits, and one request at a time is tried until one succeeds. If the sender changes, requests
 * in flight end at the old one, and batches that it does not accept go to the new one. A batch that is rejected for its
 * content is sent in halves, so that only the invalid part is lost.
 */
export class SendLoop {
  readonly #options: SendLoopOptions
  readonly #stop = new AbortController()
  readonly #flushes = new Set<Flush>()
  readonly #divisions = new WeakMap<Entry, Divisions>()
  #settings: SendSettings
  #destination: DestinationState | undefined
  /** Requests in flight, those of former senders included. */
  #underWay = 0
  #timer: NodeJS.Timeout | undefined
  #stopped: (() => void) | undefined
  /** Finished requests, failed requests, and retried batches. */
  readonly counts = { requests: 0, failed: 0, retries: 0 }

  constructor(options: SendLoopOptions, settings: SendSettings) {
    this.#options = options
    this.#settings = settings
    this.change(settings)
  }

  /** Undefined without a sender. */
  get destination(): Destination | undefined {
    return this.#destination?.destination
  }

  /** Known size limit of the receiver, in bytes before compression; infinite if unknown. */
  get limitBytes(): number {
    return this.#destination?.limitBytes ?? Number.POSITIVE_INFINITY
  }

  /** Remaining wait for a receiver that does not support this signal, in milliseconds. */
  get unknownMs(): number {
    return this.#destination?.unknownMs ?? 0
  }

  /** Whether the last request failed and will be retried. */
  get failing(): boolean {
    return (
      this.#destination === undefined || this.#destination.failingSince > 0 || this.#destination.unknownMs > 0
    )
  }

  /** Applies new settings. The caller must call `pump` afterwards. */
  change(settings: SendSettings): void {
    const { sender, retry } = settings
    this.#settings = settings
    const destination = this.#destination
    if (destination && destination.sender === sender) {
      destination.retryBy(retry)
      return
    }
    this.#destination = sender && new DestinationState(sender, retry, this.#options.log)
    if (sender) this.#options.account.deliver(sender.endpoint, 0)
  }

  /** Starts all possible requests. Must be called after each change of the queue. */
  pump(): void {
    const destination = this.#destination
    const { queue, log } = this.#options
    if (destination) {
      while (this.#mayStart(destination)) {
        const entry = queue.take()
        if (!entry) break
        this.#underWay++
        destination.inFlight++
        if (entry.attempts > 1) this.counts.retries++
        this.#send(destination, entry).catch(error => log.error('cannot report an export request', { error }))
      }
    } else if (this.#underWay === 0 && !this.#stop.signal.aborted && !queue.durable)
      queue.clear('no_endpoint')
    const oldest = this.#flushes.size > 0 ? queue.oldestNumber : 0
    for (const flush of this.#flushes) if (oldest > flush.last) flush.done()
    this.#options.pumped?.()
  }

  /**
   * Sends without our own backoff, but respects the delay requested by the server. Resolves with the result for the
   * items queued now, when the last of them has left the queue, time is up, or `stop` is raised.
   */
  flush(timeoutMs: number, stop?: AbortSignal): Promise<Flushed> {
    const { queue } = this.#options
    return new Promise(resolve => {
      const timer = setTimeout(() => flush.done(), timeoutMs)
      const flush: Flush = {
        last: queue.lastNumber,
        pushed: queue.pushedItems,
        acknowledged: 0,
        later: 0,
        done: () => {
          clearTimeout(timer)
          stop?.removeEventListener('abort', flush.done)
          this.#flushes.delete(flush)
          const later = queue.pushedItems - flush.pushed - flush.later
          const left = queue.oldestNumber > flush.last ? 0 : Math.max(0, queue.items - later)
          resolve({ acknowledged: flush.acknowledged, left })
        },
      }
      this.#flushes.add(flush)
      stop?.addEventListener('abort', flush.done)
      this.#destination?.hurry()
      this.pump()
      if (stop?.aborted) flush.done()
    })
  }

  /** Cancels requests in flight; their batches go back to the queue. Waits at most a second for a sender to stop. */
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

  #mayStart(destination: DestinationState): boolean {
    const most = destination.halfOpen ? 1 : this.#settings.concurrency
    if (this.#stop.signal.aborted || destination.inFlight >= most) return false
    const wait = destination.waitMs
    if (wait <= 0) return true
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.pump(), Math.ceil(wait))
    return false
  }

  /** Sends a batch, or the rest of it, until it is settled or must wait. */
  async #send(destination: DestinationState, entry: Entry): Promise<void> {
    try {
      while (await this.#sendPart(destination, entry));
    } finally {
      this.#underWay--
      destination.inFlight--
      if (this.#underWay === 0) this.#stopped?.()
      this.pump()
    }
  }

  /** Sends the next part of a batch. Resolves with true if another part follows immediately. */
  async #sendPart(destination: DestinationState, entry: Entry): Promise<boolean> {
    const batch = entry.parts?.at(-1) ?? entry.batch
    const { round } = destination
    const startedAt = performance.now()
    let errorType = ''
    let httpStatus: number | undefined
    let more = false
    try {
      const receipt = await destination.sender.send(batch, this.#stop.signal)
      httpStatus = receipt.httpStatus
      more = this.#accepted(destination, entry, batch, receipt)
    } catch (cause) {
      const error = asSendError(cause)
      errorType = error.type
      httpStatus = error.httpStatus
      // The current sender decides about batches that a former one did not deliver.
      if (this.#isFormer(destination)) this.#options.queue.putBack(entry)
      else more = await this.#failed(destination, entry, batch, error, round)
    }
    this.counts.requests++
    if (errorType !== '') this.counts.failed++
    this.#report(destination.sender, batch, { errorType, httpStatus }, performance.now() - startedAt)
    if (!more || !this.#isFormer(destination)) return more
    this.#options.queue.putBack(entry)
    return false
  }

  /** Whether it is no longer the current destination. */
  #isFormer(destination: DestinationState): boolean {
    return this.#stop.signal.aborted || destination !== this.#destination
  }

  /** Returns whether another part of the batch follows. */
  #accepted(destination: DestinationState, entry: Entry, batch: Batch, receipt: Receipt): boolean {
    const { account, signal, log } = this.#options
    const { endpoint } = destination.sender
    const rejected = Math.min(Math.max(receipt.rejected, 0), batch.items)
    const exported = batch.items - rejected
    const more = this.#dealtWith(entry, batch)
    if (more === undefined) return false
    account.deliver(endpoint, exported)
    account.rejected += rejected
    for (const flush of this.#flushes) if (entry.number <= flush.last) flush.acknowledged += exported

    if (destination.failingSince > 0) {
      const seconds = Math.round((performance.now() - destination.failingSince) / 1000)
      log.info('export works again', { signal, endpoint, after_seconds: seconds })
    }
    destination.succeed()
    if (destination === this.#destination && destination.widen()) this.#options.learned?.()
    if (rejected === 0 && receipt.message === '') return more
    destination.lastWarning = receipt.message || `${rejected} items rejected`
    const fields = { signal, endpoint, rejected, of: batch.items }
    const level = rejected > 0 ? 'error' : 'warn'
    const sentence = rejected > 0 ? 'the receiver rejected items' : 'the receiver sent a warning'
    destination.repeat(level, `partial ${level}`, sentence, { ...fields, message: receipt.message })
    return more
  }

  /**
   * Settles a part of a batch, or all of it. Returns whether another part is left; undefined if the batch was dropped
   * before.
   */
  #dealtWith(entry: Entry, batch: Batch): boolean | undefined {
    const { queue } = this.#options
    for (const flush of this.#flushes) if (entry.number > flush.last) flush.later += batch.items
    const { parts } = entry
    parts?.pop()
    if (parts === undefined || parts.length === 0) return queue.settle(entry) ? false : undefined
    return queue.settlePart(entry, batch.items) ? true : undefined
  }

  /** Handles a failed batch. Resolves with true if a part of it is sent immediately. */
  async #failed(
    destination: DestinationState,
    entry: Entry,
    batch: Batch,
    error: SendError,
    round: number,
  ): Promise<boolean> {
    const { queue } = this.#options
    const { retry, onAuthError } = this.#settings
    destination.failed(error)
    const park = onAuthError === 'park' && authErrors.has(error.type)
    if (error.type === 'too_large') this.#learn(destination, batch, error)
    if (!error.retryable && !park) {
      const divisible = batch.items > 1 && this.#options.halve !== undefined && dataErrors.has(error.type)
      if (divisible && (await this.#divide(entry, batch, error))) return true
      if (divisible && this.#isFormer(destination)) {
        queue.putBack(entry)
        return false
      }
      const more = this.#drop(destination, entry, batch, error, error.type)
      // The error concerns only this batch, unless it is about the whole signal.
      if (error.type !== 'unimplemented') return more
      if (more) queue.putBack(entry)
      destination.leave()
      this.#options.learned?.()
      return false
    }
    const given = retry.maxElapsedMs > 0 && performance.now() - entry.firstTriedAt >= retry.maxElapsedMs
    if (given) {
      if (this.#drop(destination, entry, batch, error, 'retry_timeout')) queue.putBack(entry)
    } else queue.putBack(entry)
    this.#wait(destination, error, park, round)
    return false
  }

  /** Drops a part of a batch, or all of it. Returns whether another part is left. */
  #drop(
    destination: DestinationState,
    entry: Entry,
    batch: Batch,
    error: SendError,
    reason: DropReasonName | SendFault,
  ): boolean {
    const { account, queue, signal } = this.#options
    const more = this.#dealtWith(entry, batch)
    if (more === undefined) return false
    queue.bury(batch, error.message)
    account.drop(reason, batch.items)
    destination.repeat('error', `drop ${reason}`, 'batch dropped', {
      signal,
      endpoint: destination.sender.endpoint,
      error: error.message,
      items: batch.items,
    })
    return more
  }

  /** Replaces a part of a batch by its halves. False if it cannot be divided further. */
  async #divide(entry: Entry, batch: Batch, error: SendError): Promise<boolean> {
    const divisions = this.#divisions.get(entry) ?? { searches: 0, cuts: 0 }
    this.#divisions.set(entry, divisions)
    const tooLarge = error.type === 'too_large'
    if (tooLarge ? divisions.cuts++ >= maxCuts : divisions.searches++ >= maxSearches) return false
    const halves = await this.#options.halve?.(batch).catch(() => undefined)
    if (halves === undefined) return false
    const parts = entry.parts ?? [batch]
    parts.pop()
    parts.push(halves[1], halves[0])
    entry.parts = parts
    return true
  }

  /** Learns a lower size limit. */
  #learn(destination: DestinationState, batch: Batch, { limitBytes }: SendError): void {
    const { items, plainBytes } = batch
    // A single item shows only that the limit is below its size.
    const guess = items > 1 ? plainBytes / 2 : plainBytes
    if (destination.limit(limitBytes > 0 && limitBytes < plainBytes ? limitBytes : guess))
      this.#options.learned?.()
  }

  /** Makes the whole signal wait. */
  #wait(destination: DestinationState, error: SendError, park: boolean, round: number): void {
    const serverDelay = destination.obey(error)
    if (round !== destination.round) return
    const delay = destination.backOff(park ? this.#settings.retry.maxMs : undefined)
    destination.parked = park
    if (destination.failingSince > 0) return
    destination.failingSince = performance.now()
    const sentence = park
      ? 'the receiver rejected our credentials; data is queued and svc retries'
      : 'export failed; queued for retry'
    destination.repeat('warn', park ? 'park' : 'retry', sentence, {
      signal: this.#options.signal,
      endpoint: destination.sender.endpoint,
      error: error.message,
      retry_seconds: Math.max(delay, serverDelay) / 1000,
    })
  }

  #report(
    sender: Sender,
    { items }: Batch,
    end: Pick<ExportRequest, 'errorType' | 'httpStatus'>,
    latencyMs: number,
  ): void {
    const { observe, signal, log } = this.#options
    const { endpoint } = sender
    const { errorType } = end
    observe?.({
      endpoint,
      signal,
      ...end,
      latencySeconds: latencyMs / 1000,
      items,
      call: sender.callOf(signal),
    })
    if (errorType === '' && log.enabled('debug'))
      log.debug('batch exported', {
        endpoint,
        [itemNames[signal]]: items,
        latency_ms: Math.round(latencyMs),
      })
  }
}

/**
 * A sender rejects with a `SendError`. Any other error is a bug, not caused by the data, and must not be retried for
 * ever.
 */
function asSendError(error: unknown): SendError {
  if (error instanceof SendError) return error
  return new SendError(`cannot send a batch: ${String(error)}`, {
    type: 'internal',
    retryable: false,
    cause: error,
  })
}
