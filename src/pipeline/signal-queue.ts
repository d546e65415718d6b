import { within } from '../foundation/lib/within.ts'
import type { Batch, Sender } from '../foundation/model/batch.ts'
import type { Signal } from '../foundation/model/signal.ts'
import type { BatchQueue, Dropped } from './batch-queue.ts'
import {
  Batcher,
  type Builder,
  type EncodedWatcher,
  type Intake,
  type ItemProcessor,
  type Watcher,
} from './batcher.ts'
import { type Compress, Compressor } from './compressor.ts'
import type { Destination } from './destination-state.ts'
import type { Account } from './ledger.ts'
import { Milestones } from './milestones.ts'
import { type Flushed, SendLoop, type SendLoopOptions, type SendSettings } from './send-loop.ts'

/** Settings for the export of one signal. */
export interface SignalQueueSettings {
  /** Undefined without a destination; items are then dropped with the reason `no_endpoint`. */
  readonly sender: Sender | undefined
  /** Compresses a request before it is queued; undefined for no compression. */
  readonly compress?: Compress | undefined
  readonly batchItems: number
  /** Target size of requests before compression. A quarter of the queue's memory is another limit. */
  readonly batchBytes: number
  /** Maximum request before compression: a single item may be larger than `batchBytes`, and is then sent alone. */
  readonly requestBytes: number
  readonly batchTimeoutMs: number
  readonly queueBytes: number
  /** Maximum age of a batch, in milliseconds; 0 for no limit. */
  readonly maxAgeMs: number
  readonly concurrency: number
}

/** State of one signal, in items unless noted otherwise. */
export interface SignalQueueState {
  readonly collected: number
  /** Recovered from the disk queue at the start. */
  readonly recovered: number
  readonly exported: number
  /** `exported` by endpoint; `other` sums all but the last 16. */
  readonly exportedBy: ReadonlyMap<string, number>
  readonly rejected: number
  readonly dropped: ReadonlyMap<string, number>
  readonly droppedTotal: number
  /** Collected, waiting and in flight: `collected` and `recovered` minus the three above. */
  readonly queued: number
  readonly queuedBytes: number
  /** Passed to the queue so far. */
  readonly accepted: number
  /** Batches waiting and in flight. */
  readonly queuedBatches: number
  /** Wait of the oldest item for its batch, in milliseconds. */
  readonly batchingMs: number
  /** Age of the oldest batch without an acknowledgement, in milliseconds. */
  readonly oldestMs: number
  /** See `BatchQueue.capacityItems`. */
  readonly capacity: number
  /** See `BatchQueue.capacityBytes`. */
  readonly capacityBytes: number
  /** Whether queued data survives the processor. */
  readonly durable: boolean
  readonly requestsInFlight: number
  /** Finished export requests. */
  readonly requests: number
  /** Failed export requests. */
  readonly failedRequests: number
  /** Retried batches. */
  readonly retries: number
  /** Undefined if the signal is not exported. */
  readonly destination: Destination | undefined
}

export interface SignalQueueOptions<T> extends Omit<SendLoopOptions, 'queue' | 'learned'> {
  readonly signal: Signal
  readonly account: Account
  readonly builder: Builder<T>
  /** Number of items that the receiver counts in one. */
  readonly count: (item: T) => number
  /** Halves an item that counts as several; undefined if that is impossible. */
  readonly divide?: ((item: T) => readonly [T, T] | undefined) | undefined
  /** Opens the queue. It calls `ready` when a batch becomes available without a call by the queue. */
  readonly queue: (dropped: Dropped, ready: () => void) => BatchQueue
  /** Sets the limits of the queue. */
  readonly limit: (queue: BatchQueue, settings: SignalQueueSettings) => void
}

/** Result of draining a queue, in items. */
export interface SignalQueueEnd {
  /** Acknowledged while draining. */
  readonly exported: number
  /** Dropped. */
  readonly dropped: number
  /** Kept in the disk queue for the next processor. */
  readonly kept: number
}

/** Maximum wait for a receiver that accepts nothing, in milliseconds, with a disk queue. */
const patienceMs = 1500
/**
 * Time to compress collected items even after the deadline, in milliseconds: it is short unless the thread pool is
 * blocked.
 */
const compressMs = 1000

/** One signal from the intake to the receiver. */
export class SignalQueue<T> {
  readonly #options: SignalQueueOptions<T>
  readonly #batcher: Batcher<T>
  readonly #queue: BatchQueue
  readonly #loop: SendLoop
  #settings: SignalQueueSettings
  #processor: ItemProcessor<T> | undefined
  #closed = false
  readonly #compressor = new Compressor(batch => this.#enqueue(batch))
  readonly #milestones: Milestones
  #unknownTimer: NodeJS.Timeout | undefined

  constructor(
    options: SignalQueueOptions<T>,
    settings: SignalQueueSettings,
    send: SendSettings,
    processor: ItemProcessor<T> | undefined,
  ) {
    const { account, builder, count, divide } = options
    this.#options = options
    this.#settings = settings
    this.#processor = processor
    const queue = options.queue(
      (reason, items) => account.drop(reason, items),
      () => this.#loop.pump(),
    )
    this.#queue = queue
    account.recovered = queue.recoveredItems
    this.#loop = new SendLoop(
      { ...options, queue, learned: () => this.#updateIntake(), pumped: () => this.#milestones.look() },
      send,
    )
    const batcher = new Batcher({
      builder,
      account,
      count,
      divide,
      out: batch => this.#compress(batch),
      // Splitting a request by resources is useful only while others are in flight.
      parts: () => (queue.sending > 0 ? this.#settings.concurrency : 1),
      cut: () => this.#milestones.look(),
    })
    this.#batcher = batcher
    const compressor = this.#compressor
    this.#milestones = new Milestones({
      get taken() {
        return batcher.firstItem + batcher.items
      },
      get handedOn() {
        return compressor.firstItem ?? batcher.firstItem
      },
      get lastNumber() {
        return queue.lastNumber
      },
      get securedNumber() {
        return queue.securedNumber
      },
    })
    this.#updateIntake()
    this.#loop.pump()
  }

  get intake(): Intake<T> {
    return this.#batcher
  }

  /** Intake of items that recur with different numbers. */
  get prepared(): Pick<Batcher<T>, 'prepare' | 'send'> {
    return this.#batcher
  }

  watch(watcher: Watcher<T>): () => void {
    return this.#batcher.watch(watcher)
  }

  watchEncoded(watcher: EncodedWatcher<T>): void {
    this.#batcher.watchEncoded(watcher)
  }

  get queuedMemory(): number {
    return this.#queue.memory
  }

  /** See `BatchQueue`. */
  shed(bytes: number): number {
    return bytes > 0 ? this.#queue.shed(bytes) : 0
  }

  get state(): SignalQueueState {
    const { collected, recovered, exported, exportedBy, rejected, dropped, droppedTotal } =
      this.#options.account
    const queue = this.#queue
    const { requests, failed, retries } = this.#loop.counts
    return {
      collected,
      recovered,
      exported,
      exportedBy,
      rejected,
      dropped,
      droppedTotal,
      queued: this.#batcher.items + this.#compressor.items + queue.items,
      queuedBytes: queue.bytes + this.#compressor.bytes,
      accepted: queue.pushedItems,
      queuedBatches: queue.waiting + queue.sending,
      batchingMs: this.#batcher.waitingMs,
      oldestMs: Math.max(queue.oldestMs, this.#batcher.waitingMs),
      capacity: queue.capacityItems,
      capacityBytes: queue.capacityBytes,
      durable: queue.durable,
      requestsInFlight: queue.sending,
      requests,
      failedRequests: failed,
      retries,
      destination: this.#loop.destination,
    }
  }

  /** Fill level of the signal, from 0 to 1; at 1 it loses items. */
  get fill(): number {
    const before = this.#batcher.bytes + this.#compressor.bytes
    return Math.min(1, this.#queue.fill + before / this.#settings.queueBytes)
  }

  /** See `Pipeline.secured`. */
  secured(): Promise<void> {
    // Items that arrived after the end may be among them.
    if (this.#closed && this.#options.account.dropped.has('shutdown')) return Promise.reject(this.#ended())
    return this.#milestones.next()
  }

  change(settings: SignalQueueSettings, send: SendSettings, processor: ItemProcessor<T> | undefined): void {
    this.#settings = settings
    this.#processor = processor
    this.#loop.change(send)
    this.#options.limit(this.#queue, settings)
    this.#updateIntake()
    this.#loop.pump()
  }

  /** Sends all current items and resolves when they are gone, time is up, or `stop` is raised. */
  async flush(timeoutMs: number, stop?: AbortSignal): Promise<Flushed> {
    const until = performance.now() + timeoutMs
    this.#batcher.cut()
    const isCompressed = await this.#compressed(Math.max(timeoutMs, compressMs))
    const uncompressed = isCompressed ? 0 : this.#compressor.items
    const { acknowledged, left } = await this.#loop.flush(Math.max(0, until - performance.now()), stop)
    return { acknowledged, left: left + uncompressed }
  }

  /** Closes the intake, and sends the rest for at most `timeoutMs`; durable data is left in the queue sooner. */
  async drain(timeoutMs: number): Promise<SignalQueueEnd> {
    this.#closed = true
    this.#batcher.refuse('shutdown', this.#processor)
    clearTimeout(this.#unknownTimer)
    const until = performance.now() + timeoutMs
    if (!(await this.#compressed(compressMs))) this.#compressor.handOn()
    const stop = new AbortController()
    const watch = this.#queue.durable ? this.#watch(stop) : undefined
    const { acknowledged: exported } = await this.flush(Math.max(0, until - performance.now()), stop.signal)
    clearInterval(watch)
    await this.#loop.stop()
    const left = this.#queue.items
    const kept = await this.#queue.close()
    this.#milestones.end(this.#ended())
    return { exported, dropped: left - kept, kept }
  }

  #ended(): Error {
    const { signal } = this.#options
    return new Error(`cannot secure ${signal}: the pipeline stopped before they were sent or on disk`)
  }

  /** Whether all batches cut so far reach the queue within this time, in milliseconds. */
  async #compressed(ms: number): Promise<boolean> {
    return (
      this.#compressor.items === 0 ||
      within(
        ms,
        this.#compressor.done.then(() => true),
        () => false,
      )
    )
  }

  /** Raises `stop` if the receiver fails, or accepts nothing for a while. */
  #watch(stop: AbortController): NodeJS.Timeout {
    const { account } = this.#options
    let { exported } = account
    let since = performance.now()
    return setInterval(() => {
      if (account.exported > exported) {
        exported = account.exported
        since = performance.now()
      }
      if (this.#loop.failing || performance.now() - since > patienceMs) stop.abort()
    }, 50)
  }

  #compress(batch: Batch): void {
    const { compress, queueBytes } = this.#settings
    if (this.#compressor.bytes + batch.plainBytes > queueBytes)
      this.#options.account.drop('queue_full', batch.items)
    else this.#compressor.add(batch, compress, this.#batcher.firstItem)
  }

  #enqueue(batch: Batch): void {
    this.#queue.push(batch)
    this.#loop.pump()
  }

  /** Makes the batcher accept or refuse items, by the settings and the receiver. */
  #updateIntake(): void {
    clearTimeout(this.#unknownTimer)
    if (this.#closed) return
    const { sender, batchItems, batchBytes, requestBytes, batchTimeoutMs, queueBytes } = this.#settings
    const { unknownMs } = this.#loop
    if (!sender) this.#batcher.refuse('no_endpoint', this.#processor)
    else if (unknownMs > 0) {
      this.#batcher.refuse('unimplemented', this.#processor)
      this.#unknownTimer = setTimeout(() => this.#updateIntake(), unknownMs)
      this.#unknownTimer.unref()
    } else {
      // The queue must have room for several batches, or the first failure would already lose data.
      const aloneBytes = Math.min(requestBytes, queueBytes / 4)
      // The receiver's limit may be a guess, or apply after compression, so the receiver decides about a single item
      // above it.
      const maxBytes = Math.min(batchBytes, aloneBytes, this.#loop.limitBytes * limitShare)
      const limits = { maxItems: batchItems, maxBytes, aloneBytes, timeoutMs: batchTimeoutMs }
      this.#batcher.accept(limits, this.#processor)
    }
  }
}

/** Share of the receiver's limit; the rest is for transport overhead. */
const limitShare = 15 / 16
