import type { Logger } from '../lib/logger.ts'
import { type Batch, type ExportCall, type Receipt, SendError, type Sender } from '../model/batch.ts'
import type { Signal } from '../model/signal.ts'
import type { BatchQueue, Entry } from './batch-queue.ts'
import type { Account } from './ledger.ts'
import { type Destination, Outlet, type RetryOptions } from './outlet.ts'

/** One export request that ended. `errorType` is '' where the receiver took the batch. */
export interface ExportRequest {
  readonly endpoint: string
  readonly signal: Signal
  readonly errorType: string
  readonly latencySeconds: number
  readonly items: number
  readonly call: ExportCall
  /** Of the answer, where there was one over HTTP. */
  readonly httpStatus: number | undefined
}

/** How a signal is sent; may change at any time. */
export interface SendSettings {
  /** Undefined: nowhere, and what is queued in memory is dropped with the reason `no_endpoint`. */
  readonly sender: Sender | undefined
  /** Requests under way at a time. */
  readonly concurrency: number
  readonly retry: RetryOptions
  /** Refused for who we are: `park` keeps the data and asks again once per `retry.maxMs`, `drop` drops it. */
  readonly onAuthError: 'park' | 'drop'
}

/** Divides a request in two that hold its items in order; undefined where that cannot be done. */
export type Halve = (batch: Batch) => Promise<readonly [Batch, Batch] | undefined>

export interface SendLoopOptions {
  readonly signal: Signal
  readonly queue: BatchQueue
  readonly account: Account
  readonly log: Logger
  readonly halve?: Halve | undefined
  /** Called after each request. Must not throw. */
  readonly observe?: ((request: ExportRequest) => void) | undefined
  /** Called when the receiver's limit, or whether it takes the signal at all, has become known. */
  readonly learned?: (() => void) | undefined
  /** Called after each `pump`. */
  readonly pumped?: (() => void) | undefined
}

/** A refused request is divided this often at most in search of the items that are to blame. */
const maxSearches = 32
/** The same for one that is too large; the receiver's limit ends it long before. */
const maxCuts = 256

const authErrors = new Set(['unauthenticated', 'permission_denied'])
/** Errors that are the data's fault, so that a part of it may be taken. */
const dataErrors = new Set(['invalid_argument', 'http_400', 'http_422', 'too_large'])

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
  /** Items that the queue had been given when it began. */
  readonly pushed: number
  acknowledged: number
  /** Items of later batches that are gone already. */
  later: number
  readonly done: () => void
}

/** How often a batch was divided for each cause. */
interface Divisions {
  searches: number
  cuts: number
}

/**
 * Sends the batches of one signal's queue, several at a time. After a failure that may pass, the batch goes
 * back to its place, the whole signal waits, and one request at a time tries until one succeeds. Where the sender
 * changes, requests under way end at the old one, and what it does not take goes to the new one. A batch that is
 * refused for what is in it goes in halves, so that only the part to blame is lost.
 */
export class SendLoop {
  readonly #options: SendLoopOptions
  readonly #stop = new AbortController()
  readonly #flushes = new Set<Flush>()
  readonly #divisions = new WeakMap<Entry, Divisions>()
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
    return this.#outlet?.destination
  }

  /** Largest request that the receiver is known to take, in bytes before compression; infinite: not known. */
  get limitBytes(): number {
    return this.#outlet?.limitBytes ?? Number.POSITIVE_INFINITY
  }

  /** For how long the receiver, which said that it does not know this signal, is left alone, in milliseconds. */
  get unknownMs(): number {
    return this.#outlet?.unknownMs ?? 0
  }

  /** The last request failed, and what waits will be tried again. */
  get failing(): boolean {
    return this.#outlet === undefined || this.#outlet.failingSince > 0 || this.#outlet.unknownMs > 0
  }

  /** Sends by other settings from now on. A `pump` has to follow. */
  change(settings: SendSettings): void {
    const { sender, retry } = settings
    this.#settings = settings
    const outlet = this.#outlet
    if (outlet && outlet.sender === sender) {
      outlet.retryBy(retry)
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
        this.#send(outlet, entry).catch(error => log.error('cannot report an export request', { error }))
      }
    } else if (this.#underWay === 0 && !this.#stop.signal.aborted && !queue.durable)
      queue.clear('no_endpoint')
    const oldest = this.#flushes.size > 0 ? queue.oldestNumber : 0
    for (const flush of this.#flushes) if (oldest > flush.last) flush.done()
    this.#options.pumped?.()
  }

  /**
   * Sends without the wait of its own backoff, but keeps the one that the server asked for. Resolves with
   * what became of the items queued now, when the last has left the queue, time is up, or `stop` is raised.
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
      this.#outlet?.hurry()
      this.pump()
      if (stop?.aborted) flush.done()
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

  #mayStart(outlet: Outlet): boolean {
    const most = outlet.probing ? 1 : this.#settings.concurrency
    if (this.#stop.signal.aborted || outlet.underWay >= most) return false
    const wait = outlet.waitMs
    if (wait <= 0) return true
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.pump(), Math.ceil(wait))
    return false
  }

  /** Sends a batch, or what is left of it, until it is dealt with or has to wait. */
  async #send(outlet: Outlet, entry: Entry): Promise<void> {
    try {
      while (await this.#sendPart(outlet, entry));
    } finally {
      this.#underWay--
      outlet.underWay--
      if (this.#underWay === 0) this.#stopped?.()
      this.pump()
    }
  }

  /** Sends the next part of a batch. Resolves with true where another part is to follow at once. */
  async #sendPart(outlet: Outlet, entry: Entry): Promise<boolean> {
    const batch = entry.parts?.at(-1) ?? entry.batch
    const { round } = outlet
    const startedAt = performance.now()
    let errorType = ''
    let httpStatus: number | undefined
    let more = false
    try {
      const receipt = await outlet.sender.send(batch, this.#stop.signal)
      httpStatus = receipt.httpStatus
      more = this.#accepted(outlet, entry, batch, receipt)
    } catch (cause) {
      const error = asSendError(cause)
      errorType = error.type
      httpStatus = error.httpStatus
      // What a former sender did not take is for the present one to judge.
      if (this.#isFormer(outlet)) this.#options.queue.putBack(entry)
      else more = await this.#failed(outlet, entry, batch, error, round)
    }
    this.counts.requests++
    if (errorType !== '') this.counts.failed++
    this.#report(outlet.sender, batch, { errorType, httpStatus }, performance.now() - startedAt)
    if (!more || !this.#isFormer(outlet)) return more
    this.#options.queue.putBack(entry)
    return false
  }

  /** Whether it is no longer the one by which anything is sent. */
  #isFormer(outlet: Outlet): boolean {
    return this.#stop.signal.aborted || outlet !== this.#outlet
  }

  /** Returns whether another part of the batch is to follow. */
  #accepted(outlet: Outlet, entry: Entry, batch: Batch, receipt: Receipt): boolean {
    const { account, signal, log } = this.#options
    const { endpoint } = outlet.sender
    const rejected = Math.min(Math.max(receipt.rejected, 0), batch.items)
    const exported = batch.items - rejected
    const more = this.#dealtWith(entry, batch)
    if (more === undefined) return false
    account.deliver(endpoint, exported)
    account.rejected += rejected
    for (const flush of this.#flushes) if (entry.number <= flush.last) flush.acknowledged += exported

    if (outlet.failingSince > 0) {
      const seconds = Math.round((performance.now() - outlet.failingSince) / 1000)
      log.info('export works again', { signal, endpoint, after_seconds: seconds })
    }
    outlet.succeed()
    if (outlet === this.#outlet && outlet.widen()) this.#options.learned?.()
    if (rejected === 0 && receipt.message === '') return more
    outlet.lastWarning = receipt.message || `${rejected} items rejected`
    const fields = { signal, endpoint, rejected, of: batch.items }
    const level = rejected > 0 ? 'error' : 'warn'
    const sentence = rejected > 0 ? 'the receiver rejected items' : 'the receiver sent a warning'
    outlet.repeat(level, `partial ${level}`, sentence, { ...fields, message: receipt.message })
    return more
  }

  /**
   * Takes a part, or the whole, of a batch out of the books. Returns whether another part is left; undefined where the
   * batch was given up before.
   */
  #dealtWith(entry: Entry, batch: Batch): boolean | undefined {
    const { queue } = this.#options
    for (const flush of this.#flushes) if (entry.number > flush.last) flush.later += batch.items
    const { parts } = entry
    parts?.pop()
    if (parts === undefined || parts.length === 0) return queue.settle(entry) ? false : undefined
    return queue.settlePart(entry, batch.items) ? true : undefined
  }

  /** Decides what becomes of a batch that was not taken. Resolves with true where a part of it is to be sent at once. */
  async #failed(
    outlet: Outlet,
    entry: Entry,
    batch: Batch,
    error: SendError,
    round: number,
  ): Promise<boolean> {
    const { queue } = this.#options
    const { retry, onAuthError } = this.#settings
    outlet.failed(error)
    const park = onAuthError === 'park' && authErrors.has(error.type)
    if (error.type === 'too_large') this.#learn(outlet, batch, error)
    if (!error.retryable && !park) {
      const divisible = batch.items > 1 && this.#options.halve !== undefined && dataErrors.has(error.type)
      if (divisible && (await this.#divide(entry, batch, error))) return true
      if (divisible && this.#isFormer(outlet)) {
        queue.putBack(entry)
        return false
      }
      const more = this.#drop(outlet, entry, batch, error, error.type)
      // The receiver has judged this batch alone, except where it judged the whole signal.
      if (error.type !== 'unimplemented') return more
      if (more) queue.putBack(entry)
      outlet.leave()
      this.#options.learned?.()
      return false
    }
    const given = retry.maxElapsedMs > 0 && performance.now() - entry.firstTriedAt >= retry.maxElapsedMs
    if (given) {
      if (this.#drop(outlet, entry, batch, error, 'retry_timeout')) queue.putBack(entry)
    } else queue.putBack(entry)
    this.#wait(outlet, error, park, round)
    return false
  }

  /** Drops a part of a batch, or all of it. Returns whether another part is left. */
  #drop(outlet: Outlet, entry: Entry, batch: Batch, error: SendError, reason: string): boolean {
    const { account, queue, signal } = this.#options
    const more = this.#dealtWith(entry, batch)
    if (more === undefined) return false
    queue.bury(batch, error.message)
    account.drop(reason, batch.items)
    outlet.repeat('error', `drop ${reason}`, 'batch dropped', {
      signal,
      endpoint: outlet.sender.endpoint,
      error: error.message,
      items: batch.items,
    })
    return more
  }

  /** Puts two halves in the place of a part of a batch. False where it is not to be, or cannot be, divided further. */
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

  /** Requests are to be smaller from now on. */
  #learn(outlet: Outlet, batch: Batch, { limitBytes }: SendError): void {
    const { items, plainBytes } = batch
    // Of a single item nothing is learned but that the limit is below it.
    const guess = items > 1 ? plainBytes / 2 : plainBytes
    if (outlet.limit(limitBytes > 0 && limitBytes < plainBytes ? limitBytes : guess))
      this.#options.learned?.()
  }

  /** The whole signal waits. */
  #wait(outlet: Outlet, error: SendError, park: boolean, round: number): void {
    const serverDelay = outlet.obey(error)
    if (round !== outlet.round) return
    const delay = outlet.backOff(park ? this.#settings.retry.maxMs : undefined)
    outlet.parked = park
    if (outlet.failingSince > 0) return
    outlet.failingSince = performance.now()
    const sentence = park
      ? 'the receiver rejected our credentials; data is queued and svc retries'
      : 'export failed; queued for retry'
    outlet.repeat('warn', park ? 'park' : 'retry', sentence, {
      signal: this.#options.signal,
      endpoint: outlet.sender.endpoint,
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

/** A sender rejects with a `SendError`. Anything else is its fault and not the data's, yet would repeat for ever. */
function asSendError(error: unknown): SendError {
  if (error instanceof SendError) return error
  return new SendError(`cannot send a batch: ${String(error)}`, {
    type: 'internal',
    retryable: false,
    cause: error,
  })
}
