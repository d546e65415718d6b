import type { Logger } from '../lib/logger.ts'
import type { Sender } from '../model/batch.ts'
import type { LogRecord } from '../model/log.ts'
import type { Metric } from '../model/metric.ts'
import type { Profile } from '../model/profile.ts'
import { type Signal, signals } from '../model/signal.ts'
import type { Span } from '../model/span.ts'
import { Batcher, type Builder, Discard, type Intake } from './batcher.ts'
import { type Account, type Ledger, openLedger } from './ledger.ts'
import { Queue } from './queue.ts'
import { type Destination, type ExportRequest, type RetryOptions, SendLoop } from './send-loop.ts'

/** What an item of each signal is. */
export interface Items {
  traces: Span
  metrics: Metric
  logs: LogRecord
  profiles: Profile
}

/** One signal's way out. */
export interface LaneOptions<T> {
  /** Undefined: nothing is sent, and the items are counted as dropped with the reason `no_endpoint`. */
  readonly sender: Sender | undefined
  readonly builder: Builder<T>
  readonly batchItems: number
  /** Largest request before compression. A quarter of the queue's memory is the other bound. */
  readonly batchBytes: number
  readonly batchTimeoutMs: number
  readonly queueBytes: number
  /** 0: no limit. */
  readonly maxAgeMs: number
  readonly concurrency: number
}

export interface PipelineOptions {
  readonly lanes: { readonly [S in Signal]: LaneOptions<Items[S]> }
  readonly retry: RetryOptions
  readonly onAuthError: 'park' | 'drop'
  readonly log: Logger
  /** Called after each export request. Must not throw. */
  readonly observe?: (request: ExportRequest) => void
}

/** The state of one signal, in items where nothing else is said. */
export interface LaneState {
  readonly collected: number
  readonly exported: number
  readonly rejected: number
  readonly dropped: ReadonlyMap<string, number>
  readonly droppedTotal: number
  /** Gathered, waiting and under way: `collected` less the three above. */
  readonly queued: number
  readonly queuedBytes: number
  /** How long the oldest item has waited for its batch, in milliseconds. */
  readonly batchingMs: number
  /** What fits at the mean size of an item so far. */
  readonly capacity: number
  readonly capacityBytes: number
  readonly requestsUnderWay: number
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

/** Batches, queues and sends the four signals, each on its own lane, and keeps the balance of every item. */
export class Pipeline {
  readonly ledger: Ledger = openLedger()
  readonly #lanes: { readonly [S in Signal]: Lane<Items[S]> }
  readonly #senders: ReadonlySet<Sender>
  #draining: Promise<DrainResult> | undefined

  constructor(options: PipelineOptions) {
    const lane = <S extends Signal>(signal: S, count: (item: Items[S]) => number): Lane<Items[S]> =>
      new Lane(signal, options.lanes[signal] as LaneOptions<Items[S]>, this.ledger[signal], options, count)
    this.#lanes = {
      traces: lane('traces', () => 1),
      metrics: lane('metrics', metric => metric.points.length),
      logs: lane('logs', () => 1),
      profiles: lane('profiles', () => 1),
    }
    const senders = signals.map(signal => options.lanes[signal].sender)
    this.#senders = new Set(senders.filter(sender => sender !== undefined))
  }

  /** Where the items of a signal enter. The intake stays the same for the pipeline's life. */
  intake<S extends Signal>(signal: S): Intake<Items[S]> {
    return this.#lanes[signal].intake
  }

  state(signal: Signal): LaneState {
    return this.#lanes[signal].state
  }

  /** Sends what there is now. Resolves with the items that receivers acknowledged of it, in time. */
  flush(timeoutMs: number): Promise<Record<Signal, number>> {
    return this.#each(signal => this.#lanes[signal].flush(timeoutMs))
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
    const exported = await this.flush(timeoutMs)
    const dropped = await this.#each(signal => this.#lanes[signal].stop())
    await Promise.allSettled([...this.#senders].map(sender => sender.close()))
    return { exported, dropped }
  }

  async #each(of: (signal: Signal) => Promise<number>): Promise<Record<Signal, number>> {
    const [traces, metrics, logs, profiles] = await Promise.all([
      of('traces'),
      of('metrics'),
      of('logs'),
      of('profiles'),
    ])
    return { traces, metrics, logs, profiles }
  }
}

class Lane<T> {
  readonly intake: Intake<T>
  readonly #account: Account
  readonly #batcher: Batcher<T> | undefined
  readonly #queue: Queue
  readonly #loop: SendLoop | undefined

  constructor(
    signal: Signal,
    options: LaneOptions<T>,
    account: Account,
    { retry, onAuthError, log, observe }: PipelineOptions,
    count: (item: T) => number,
  ) {
    const { sender, builder, queueBytes, maxAgeMs, concurrency } = options
    this.#account = account
    this.#queue = new Queue({ limitBytes: queueBytes, maxAgeMs }, (reason, items) =>
      account.drop(reason, items),
    )
    if (!sender) {
      this.intake = new Discard(account, 'no_endpoint', count)
      return
    }
    const queue = this.#queue
    const loop = new SendLoop({
      signal,
      sender,
      queue,
      account,
      concurrency,
      retry,
      onAuthError,
      log,
      observe,
    })
    this.#loop = loop
    this.#batcher = new Batcher({
      builder,
      account,
      maxItems: options.batchItems,
      // Several batches must fit the queue, or the first failure would already cost data.
      maxBytes: Math.min(options.batchBytes, queueBytes / 4),
      timeoutMs: options.batchTimeoutMs,
      out: batch => {
        queue.push(batch)
        loop.pump()
      },
    })
    this.intake = this.#batcher
  }

  get state(): LaneState {
    const { collected, exported, rejected, dropped, droppedTotal } = this.#account
    const queue = this.#queue
    return {
      collected,
      exported,
      rejected,
      dropped,
      droppedTotal,
      queued: (this.#batcher?.items ?? 0) + queue.items,
      queuedBytes: queue.bytes,
      batchingMs: this.#batcher?.waitingMs ?? 0,
      capacity: queue.capacityItems,
      capacityBytes: queue.capacityBytes,
      requestsUnderWay: queue.sending,
      destination: this.#loop?.destination,
    }
  }

  async flush(timeoutMs: number): Promise<number> {
    this.#batcher?.cut()
    return (await this.#loop?.flush(timeoutMs)) ?? 0
  }

  closeIntake(): void {
    this.#batcher?.close()
  }

  /** Resolves with the number of items that were given up. */
  async stop(): Promise<number> {
    await this.#loop?.stop()
    const left = this.#queue.items
    this.#queue.clear('shutdown')
    return left
  }
}
