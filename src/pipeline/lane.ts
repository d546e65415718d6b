import type { Batch, Sender } from '../model/batch.ts'
import type { Signal } from '../model/signal.ts'
import type { BatchQueue, Dropped } from './batch-queue.ts'
import { Batcher, type Builder, type Intake, type Process, type Watcher } from './batcher.ts'
import type { Account } from './ledger.ts'
import { Milestones } from './milestones.ts'
import type { Destination } from './outlet.ts'
import { type Pack, Packer } from './packer.ts'
import { type Flushed, SendLoop, type SendLoopOptions, type SendSettings } from './send-loop.ts'

/** One signal's way out. */
export interface LaneSettings {
  /** Undefined: nothing is sent, and the items are counted as dropped with the reason `no_endpoint`. */
  readonly sender: Sender | undefined
  /** Compresses a request, before it is queued. Undefined: it goes as it is. */
  readonly pack?: Pack | undefined
  readonly batchItems: number
  /** Requests are cut at this size before compression. A quarter of the queue's memory is another bound. */
  readonly batchBytes: number
  /** Largest request before compression: a single item may be larger than `batchBytes`, and then goes alone. */
  readonly requestBytes: number
  readonly batchTimeoutMs: number
  readonly queueBytes: number
  /** 0: no limit. */
  readonly maxAgeMs: number
  readonly concurrency: number
}

/** The state of one signal, in items where nothing else is said. */
export interface LaneState {
  readonly collected: number
  /** Left by a former process in the queue on disk, and found there at the start. */
  readonly recovered: number
  readonly exported: number
  /** `exported` by the endpoint that acknowledged; `other` stands for all but the last 16. */
  readonly exportedBy: ReadonlyMap<string, number>
  readonly rejected: number
  readonly dropped: ReadonlyMap<string, number>
  readonly droppedTotal: number
  /** Gathered, waiting and under way: `collected` and `recovered` less the three above. */
  readonly queued: number
  readonly queuedBytes: number
  /** Handed to the queue so far: on disk where it is there. */
  readonly accepted: number
  /** Waiting and under way. */
  readonly queuedBatches: number
  /** How long the oldest item has waited for its batch, in milliseconds. */
  readonly batchingMs: number
  /** How long the oldest batch has waited to be acknowledged, in milliseconds. */
  readonly oldestMs: number
  /** As `BatchQueue.capacityItems`. */
  readonly capacity: number
  /** As `BatchQueue.capacityBytes`. */
  readonly capacityBytes: number
  /** What waits outlives the process. */
  readonly durable: boolean
  readonly requestsUnderWay: number
  /** Export requests that have ended. */
  readonly requests: number
  /** Those of them that did not succeed. */
  readonly failedRequests: number
  /** Batches that were sent once more. */
  readonly retries: number
  /** Undefined where the signal is not sent. */
  readonly destination: Destination | undefined
}

export interface LaneOptions<T> extends Omit<SendLoopOptions, 'queue' | 'learned'> {
  readonly signal: Signal
  readonly account: Account
  readonly builder: Builder<T>
  /** How many items the receiver would count in one. */
  readonly count: (item: T) => number
  /** Halves what counts as several items; undefined where that cannot be done. */
  readonly divide?: ((item: T) => readonly [T, T] | undefined) | undefined
  /** Opens the queue. `ready` is to be called when a batch may be taken without a call of the lane's. */
  readonly queue: (dropped: Dropped, ready: () => void) => BatchQueue
  /** Tells the queue other bounds. */
  readonly limit: (queue: BatchQueue, settings: LaneSettings) => void
}

/** What the end of a lane came to, in items. */
export interface LaneEnd {
  /** Acknowledged while draining. */
  readonly exported: number
  /** Given up. */
  readonly dropped: number
  /** Left in the queue on disk, for the next process. */
  readonly kept: number
}

/** A queue on disk is not worth waiting for where the receiver takes nothing for this long. */
const patienceMs = 1500
/** What was gathered is compressed even where no time is left: it takes milliseconds, unless the thread pool is blocked. */
const packMs = 1000

/** One signal from the intake to the receiver. */
export class Lane<T> {
  readonly #options: LaneOptions<T>
  readonly #batcher: Batcher<T>
  readonly #queue: BatchQueue
  readonly #loop: SendLoop
  #settings: LaneSettings
  #process: Process<T> | undefined
  #closed = false
  readonly #packer = new Packer(batch => this.#enqueue(batch))
  readonly #milestones: Milestones
  #unknownTimer: NodeJS.Timeout | undefined

  constructor(
    options: LaneOptions<T>,
    settings: LaneSettings,
    send: SendSettings,
    process: Process<T> | undefined,
  ) {
    const { account, builder, count, divide } = options
    this.#options = options
    this.#settings = settings
    this.#process = process
    const queue = options.queue(
      (reason, items) => account.drop(reason, items),
      () => this.#loop.pump(),
    )
    this.#queue = queue
    account.recovered = queue.recoveredItems
    this.#loop = new SendLoop(
      { ...options, queue, learned: () => this.#gather(), pumped: () => this.#milestones.look() },
      send,
    )
    const batcher = new Batcher({
      builder,
      account,
      count,
      divide,
      out: batch => this.#pack(batch),
      // Dividing a request by resources is of use only while others are under way.
      parts: () => (queue.sending > 0 ? this.#settings.concurrency : 1),
      cut: () => this.#milestones.look(),
    })
    this.#batcher = batcher
    const packer = this.#packer
    this.#milestones = new Milestones({
      get taken() {
        return batcher.firstItem + batcher.items
      },
      get handedOn() {
        return packer.firstItem ?? batcher.firstItem
      },
      get lastNumber() {
        return queue.lastNumber
      },
      get securedNumber() {
        return queue.securedNumber
      },
    })
    this.#gather()
    this.#loop.pump()
  }

  get intake(): Intake<T> {
    return this.#batcher
  }

  /** Where items enter that come again and again with other numbers. */
  get prepared(): Pick<Batcher<T>, 'prepare' | 'send'> {
    return this.#batcher
  }

  watch(watcher: Watcher<T>): () => void {
    return this.#batcher.watch(watcher)
  }

  get queuedMemory(): number {
    return this.#queue.memory
  }

  /** See `BatchQueue`. */
  shed(bytes: number): number {
    return bytes > 0 ? this.#queue.shed(bytes) : 0
  }

  get state(): LaneState {
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
      queued: this.#batcher.items + this.#packer.items + queue.items,
      queuedBytes: queue.bytes + this.#packer.bytes,
      accepted: queue.pushedItems,
      queuedBatches: queue.waiting + queue.sending,
      batchingMs: this.#batcher.waitingMs,
      oldestMs: Math.max(queue.oldestMs, this.#batcher.waitingMs),
      capacity: queue.capacityItems,
      capacityBytes: queue.capacityBytes,
      durable: queue.durable,
      requestsUnderWay: queue.sending,
      requests,
      failedRequests: failed,
      retries,
      destination: this.#loop.destination,
    }
  }

  /** How near the signal is to losing items for want of room: 0 to 1. */
  get fill(): number {
    const before = this.#batcher.bytes + this.#packer.bytes
    return Math.min(1, this.#queue.fill + before / this.#settings.queueBytes)
  }

  /** As `Pipeline.secured`. */
  secured(): Promise<void> {
    // What came after the end may be among what is asked for.
    if (this.#closed && this.#options.account.dropped.has('shutdown')) return Promise.reject(this.#ended())
    return this.#milestones.next()
  }

  change(settings: LaneSettings, send: SendSettings, process: Process<T> | undefined): void {
    this.#settings = settings
    this.#process = process
    this.#loop.change(send)
    this.#options.limit(this.#queue, settings)
    this.#gather()
    this.#loop.pump()
  }

  /** Sends what there is now and resolves when it is gone, time is up, or `stop` is raised. */
  async flush(timeoutMs: number, stop?: AbortSignal): Promise<Flushed> {
    const until = performance.now() + timeoutMs
    this.#batcher.cut()
    const packed = await this.#packed(Math.max(timeoutMs, packMs))
    const unpacked = packed ? 0 : this.#packer.items
    const { acknowledged, left } = await this.#loop.flush(Math.max(0, until - performance.now()), stop)
    return { acknowledged, left: left + unpacked }
  }

  /** Takes in nothing more, and sends what there is for `timeoutMs` at most; what can outlive the process is left sooner. */
  async drain(timeoutMs: number): Promise<LaneEnd> {
    this.#closed = true
    this.#batcher.refuse('shutdown', this.#process)
    clearTimeout(this.#unknownTimer)
    const until = performance.now() + timeoutMs
    if (!(await this.#packed(packMs))) this.#packer.handOn()
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

  /** Whether all that was cut so far is in the queue within so many milliseconds. */
  async #packed(ms: number): Promise<boolean> {
    return this.#packer.items === 0 || within(this.#packer.done, ms)
  }

  /** Raises `stop` where the receiver fails, or takes nothing for a while. */
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

  #pack(batch: Batch): void {
    const { pack, queueBytes } = this.#settings
    if (this.#packer.bytes + batch.plainBytes > queueBytes)
      this.#options.account.drop('queue_full', batch.items)
    else this.#packer.add(batch, pack, this.#batcher.firstItem)
  }

  #enqueue(batch: Batch): void {
    this.#queue.push(batch)
    this.#loop.pump()
  }

  /** Has the batcher gather, or refuse, as settings and receiver want it now. */
  #gather(): void {
    clearTimeout(this.#unknownTimer)
    if (this.#closed) return
    const { sender, batchItems, batchBytes, requestBytes, batchTimeoutMs, queueBytes } = this.#settings
    const { unknownMs } = this.#loop
    if (!sender) this.#batcher.refuse('no_endpoint', this.#process)
    else if (unknownMs > 0) {
      this.#batcher.refuse('unimplemented', this.#process)
      this.#unknownTimer = setTimeout(() => this.#gather(), unknownMs)
      this.#unknownTimer.unref()
    } else {
      // Several batches must fit the queue, or the first failure would already cost data.
      const aloneBytes = Math.min(requestBytes, queueBytes / 4)
      // The receiver's limit may be a guess, or hold after compression: what one item is above it, it judges itself.
      const maxBytes = Math.min(batchBytes, aloneBytes, this.#loop.limitBytes * limitShare)
      const limits = { maxItems: batchItems, maxBytes, aloneBytes, timeoutMs: batchTimeoutMs }
      this.#batcher.accept(limits, this.#process)
    }
  }
}

/** Of the receiver's limit; the rest is for what the transport adds. */
const limitShare = 15 / 16

/** Whether a promise settles within so many milliseconds. */
async function within(promise: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>(resolve => {
    timer = setTimeout(resolve, ms, false)
  })
  const found = await Promise.race([promise.then(() => true), late])
  clearTimeout(timer)
  return found
}
