import { errorText, type Logger } from '../lib/logger.ts'
import type { Sender } from '../model/batch.ts'
import type { LogRecord } from '../model/log.ts'
import type { Metric } from '../model/metric.ts'
import type { Profile } from '../model/profile.ts'
import { type Signal, signals } from '../model/signal.ts'
import type { Span } from '../model/span.ts'
import { Batcher, type Builder, type Intake } from './batcher.ts'
import { type Account, type Ledger, openLedger } from './ledger.ts'
import { Queue, type QueueLimits } from './queue.ts'
import {
  type Destination,
  type ExportRequest,
  type Flushed,
  type RetryOptions,
  SendLoop,
  type SendSettings,
} from './send-loop.ts'

/** What an item of each signal is. */
export interface Items {
  traces: Span
  metrics: Metric
  logs: LogRecord
  profiles: Profile
}

/** One signal's way out. */
export interface LaneSettings {
  /** Undefined: nothing is sent, and the items are counted as dropped with the reason `no_endpoint`. */
  readonly sender: Sender | undefined
  readonly batchItems: number
  /** Largest request before compression. A quarter of the queue's memory is the other bound. */
  readonly batchBytes: number
  readonly batchTimeoutMs: number
  readonly queueBytes: number
  /** 0: no limit. */
  readonly maxAgeMs: number
  readonly concurrency: number
}

/** What may change while the pipeline runs. A sender belongs to the pipeline, which closes it when it is done with it. */
export interface PipelineSettings {
  readonly lanes: Readonly<Record<Signal, LaneSettings>>
  readonly retry: RetryOptions
  readonly onAuthError: 'park' | 'drop'
}

export interface PipelineOptions {
  readonly settings: PipelineSettings
  readonly builders: { readonly [S in Signal]: Builder<Items[S]> }
  readonly log: Logger
  /** Called after each export request. Must not throw. */
  readonly observe?: (request: ExportRequest) => void
}

/** The state of one signal, in items where nothing else is said. */
export interface LaneState {
  readonly collected: number
  readonly exported: number
  /** `exported` by the endpoint that acknowledged; `other` stands for all but the last 16. */
  readonly exportedBy: ReadonlyMap<string, number>
  readonly rejected: number
  readonly dropped: ReadonlyMap<string, number>
  readonly droppedTotal: number
  /** Gathered, waiting and under way: `collected` less the three above. */
  readonly queued: number
  readonly queuedBytes: number
  /** Waiting and under way. */
  readonly queuedBatches: number
  /** How long the oldest item has waited for its batch, in milliseconds. */
  readonly batchingMs: number
  /** How long the oldest batch has waited to be acknowledged, in milliseconds. */
  readonly oldestMs: number
  /** What fits at the mean size of an item so far. */
  readonly capacity: number
  readonly capacityBytes: number
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

/** What became of the items at the end. */
export interface DrainResult {
  /** Acknowledged while draining. */
  readonly exported: Record<Signal, number>
  /** Given up, reason `shutdown`. */
  readonly dropped: Record<Signal, number>
}

/** What a flush came to, in items by signal. */
export interface FlushResult {
  readonly acknowledged: Record<Signal, number>
  /** Still waiting or under way when time was up. */
  readonly left: Record<Signal, number>
}

/** Batches, queues and sends the four signals, each on its own lane, and keeps the balance of every item. */
export class Pipeline {
  readonly ledger: Ledger = openLedger()
  readonly #lanes: { readonly [S in Signal]: Lane<Items[S]> }
  readonly #log: Logger
  #senders: ReadonlySet<Sender>
  #draining: Promise<DrainResult> | undefined

  constructor(options: PipelineOptions) {
    const lane = <S extends Signal>(signal: S, count: (item: Items[S]) => number): Lane<Items[S]> =>
      new Lane(signal, this.ledger[signal], options, options.builders[signal] as Builder<Items[S]>, count)
    this.#lanes = {
      traces: lane('traces', () => 1),
      metrics: lane('metrics', metric => metric.points.length),
      logs: lane('logs', () => 1),
      profiles: lane('profiles', () => 1),
    }
    this.#log = options.log
    this.#senders = sendersOf(options.settings)
  }

  /** Where the items of a signal enter. The intake stays the same for the pipeline's life. */
  intake<S extends Signal>(signal: S): Intake<Items[S]> {
    return this.#lanes[signal].intake
  }

  state(signal: Signal): LaneState {
    return this.#lanes[signal].state
  }

  /**
   * Goes on with other settings, without losing an item: what is queued goes to the new senders, and so does what an
   * old one has under way and does not take. A sender that is not used any more is closed. What is queued where there
   * is no sender any more is dropped, once requests under way have ended.
   */
  change(settings: PipelineSettings): void {
    const before = this.#senders
    const after = sendersOf(settings)
    if (!this.#draining) {
      this.#senders = after
      for (const signal of signals) this.#lanes[signal].change(settings)
    }
    const [unused, used] = this.#draining ? [after, before] : [before, after]
    for (const sender of unused) {
      if (used.has(sender)) continue
      sender.close().catch(error => this.#log.warn('Cannot close a connection.', { error: errorText(error) }))
    }
  }

  /** Sends what there is now, what waits to be batched included, and resolves when it is gone or time is up. */
  async flush(timeoutMs: number): Promise<FlushResult> {
    const results = await each(signal => this.#lanes[signal].flush(timeoutMs))
    return {
      acknowledged: record(signal => results[signal].acknowledged),
      left: record(signal => results[signal].left),
    }
  }

  /**
   * Takes in nothing more, sends what there is, and after `timeoutMs` gives up the rest. A further call waits
   * for the first.
   */
  drain(timeoutMs: number): Promise<DrainResult> {
    this.#draining ??= this.#drain(timeoutMs)
    return this.#draining
  }

  /** Ends without sending what is left. */
  async close(): Promise<void> {
    await this.drain(0)
  }

  async #drain(timeoutMs: number): Promise<DrainResult> {
    for (const signal of signals) this.#lanes[signal].closeIntake()
    const { acknowledged } = await this.flush(timeoutMs)
    const dropped = await each(signal => this.#lanes[signal].stop())
    await Promise.allSettled([...this.#senders].map(sender => sender.close()))
    return { exported: acknowledged, dropped }
  }
}

function record<V>(of: (signal: Signal) => V): Record<Signal, V> {
  return { traces: of('traces'), metrics: of('metrics'), logs: of('logs'), profiles: of('profiles') }
}

async function each<V>(of: (signal: Signal) => Promise<V>): Promise<Record<Signal, V>> {
  const [traces, metrics, logs, profiles] = await Promise.all([
    of('traces'),
    of('metrics'),
    of('logs'),
    of('profiles'),
  ])
  return { traces, metrics, logs, profiles }
}

function sendersOf({ lanes }: PipelineSettings): ReadonlySet<Sender> {
  return new Set(signals.map(signal => lanes[signal].sender).filter(sender => sender !== undefined))
}

class Lane<T> {
  readonly #signal: Signal
  readonly #account: Account
  readonly #batcher: Batcher<T>
  readonly #queue: Queue
  readonly #loop: SendLoop

  constructor(
    signal: Signal,
    account: Account,
    { settings, log, observe }: PipelineOptions,
    builder: Builder<T>,
    count: (item: T) => number,
  ) {
    this.#signal = signal
    this.#account = account
    const queue = new Queue(queueLimits(settings.lanes[signal]), (reason, items) =>
      account.drop(reason, items),
    )
    const loop = new SendLoop({ signal, queue, account, log, observe }, sendSettings(settings, signal))
    this.#queue = queue
    this.#loop = loop
    this.#batcher = new Batcher({
      builder,
      account,
      count,
      out: batch => {
        queue.push(batch)
        loop.pump()
      },
    })
    this.#gather(settings.lanes[signal])
  }

  get intake(): Intake<T> {
    return this.#batcher
  }

  get state(): LaneState {
    const { collected, exported, exportedBy, rejected, dropped, droppedTotal } = this.#account
    const queue = this.#queue
    const { requests, failed, retries } = this.#loop.counts
    return {
      collected,
      exported,
      exportedBy,
      rejected,
      dropped,
      droppedTotal,
      queued: this.#batcher.items + queue.items,
      queuedBytes: queue.bytes,
      queuedBatches: queue.waiting + queue.sending,
      batchingMs: this.#batcher.waitingMs,
      oldestMs: Math.max(queue.oldestMs, this.#batcher.waitingMs),
      capacity: queue.capacityItems,
      capacityBytes: queue.capacityBytes,
      requestsUnderWay: queue.sending,
      requests,
      failedRequests: failed,
      retries,
      destination: this.#loop.destination,
    }
  }

  change(settings: PipelineSettings): void {
    const lane = settings.lanes[this.#signal]
    this.#loop.change(sendSettings(settings, this.#signal))
    this.#queue.limit(queueLimits(lane))
    this.#gather(lane)
    this.#loop.pump()
  }

  flush(timeoutMs: number): Promise<Flushed> {
    this.#batcher.cut()
    return this.#loop.flush(timeoutMs)
  }

  closeIntake(): void {
    this.#batcher.refuse('shutdown')
  }

  /** Resolves with the number of items that were given up. */
  async stop(): Promise<number> {
    await this.#loop.stop()
    const left = this.#queue.items
    this.#queue.clear('shutdown')
    return left
  }

  #gather({ sender, batchItems, batchBytes, batchTimeoutMs, queueBytes }: LaneSettings): void {
    if (!sender) {
      this.#batcher.refuse('no_endpoint')
      return
    }
    this.#batcher.accept({
      maxItems: batchItems,
      // Several batches must fit the queue, or the first failure would already cost data.
      maxBytes: Math.min(batchBytes, queueBytes / 4),
      timeoutMs: batchTimeoutMs,
    })
  }
}

function queueLimits({ queueBytes, maxAgeMs }: LaneSettings): QueueLimits {
  return { limitBytes: queueBytes, maxAgeMs }
}

function sendSettings({ lanes, retry, onAuthError }: PipelineSettings, signal: Signal): SendSettings {
  const { sender, concurrency } = lanes[signal]
  return { sender, concurrency, retry, onAuthError }
}
