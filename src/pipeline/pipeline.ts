import { errorText, type Logger } from '../foundation/lib/logger.ts'
import type { Sender } from '../foundation/model/batch.ts'
import type { LogRecord } from '../foundation/model/log.ts'
import type { Metric } from '../foundation/model/metric.ts'
import type { PreparedIntake } from '../foundation/model/prepared-metric.ts'
import type { Profile } from '../foundation/model/profile.ts'
import { bySignal, type Signal, signals } from '../foundation/model/signal.ts'
import type { SignalTypeName } from '../foundation/model/signal-types.ts'
import type { Span } from '../foundation/model/span.ts'
import type { BatchQueue, Dropped } from './batch-queue.ts'
import type { Builder, EncodedWatcher, Intake, ItemProcessor, Watcher } from './batcher.ts'
import type { RetryOptions } from './destination-state.ts'
import { type Ledger, openLedger } from './ledger.ts'
import { MemoryQueue } from './memory-queue.ts'
import type { ExportRequest, Halve, SendSettings } from './send-loop.ts'
import { SignalQueue, type SignalQueueSettings, type SignalQueueState } from './signal-queue.ts'
import { TypedIntake, TypedPrepared, type TypeOf } from './typed-intake.ts'

/** Item type of each signal. */
export interface Items {
  traces: Span
  metrics: Metric
  logs: LogRecord
  profiles: Profile
}

/**
 * Settings that may change at run time. A sender belongs to the pipeline, which closes it when it is no longer used.
 */
export interface PipelineSettings {
  readonly queues: Readonly<Record<Signal, SignalQueueSettings>>
  /** Processing of items before encoding. */
  readonly chains?: { readonly [S in Signal]?: ItemProcessor<Items[S]> | undefined }
  readonly retry: RetryOptions
  readonly onAuthError: 'park' | 'drop'
}

/** Queues that survive the process. */
export interface DurableQueues {
  open(signal: Signal, settings: SignalQueueSettings, dropped: Dropped, ready: () => void): BatchQueue
  /** Sets the limits of a queue that was opened here. */
  limit(queue: BatchQueue, settings: SignalQueueSettings): void
  /** Called when all its queues are closed. */
  close(): Promise<void>
}

export interface PipelineOptions {
  readonly settings: PipelineSettings
  readonly builders: { readonly [S in Signal]: Builder<Items[S]> }
  readonly log: Logger
  /** Undefined for queues in memory. */
  readonly queues?: DurableQueues | undefined
  readonly halve?: Halve
  /** Called after each export request. Must not throw. */
  readonly observe?: (request: ExportRequest) => void
}

export type { SignalQueueSettings, SignalQueueState }

/** Result of draining, by signal. */
export interface DrainResult {
  /** Acknowledged while draining. */
  readonly exported: Record<Signal, number>
  /** Dropped with the reason `shutdown`. */
  readonly dropped: Record<Signal, number>
  /** Kept in the disk queue for the next process. */
  readonly kept: Record<Signal, number>
}

/** Result of a flush, in items by signal. */
export interface FlushResult {
  readonly acknowledged: Record<Signal, number>
  /** Still waiting or in flight when time was up. */
  readonly left: Record<Signal, number>
}

/** Batches, queues and sends the four signals, each in its own queue, and keeps the balance of all items. */
export class Pipeline {
  readonly ledger: Ledger = openLedger()
  readonly #queues: { readonly [S in Signal]: SignalQueue<Items[S]> }
  readonly #log: Logger
  readonly #durable: DurableQueues | undefined
  #senders: ReadonlySet<Sender>
  #draining: Promise<DrainResult> | undefined

  constructor(options: PipelineOptions) {
    const { settings, queues } = options
    const open = <S extends Signal>(
      signal: S,
      count: (item: Items[S]) => number,
      divide?: (item: Items[S]) => readonly [Items[S], Items[S]] | undefined,
    ): SignalQueue<Items[S]> =>
      new SignalQueue<Items[S]>(
        {
          ...options,
          signal,
          account: this.ledger[signal],
          builder: options.builders[signal] as Builder<Items[S]>,
          count,
          divide,
          queue: (dropped, ready) => {
            const own = settings.queues[signal]
            return (
              queues?.open(signal, own, dropped, ready) ?? new MemoryQueue(signal, memoryLimits(own), dropped)
            )
          },
          limit: (queue, own) => {
            if (queue instanceof MemoryQueue) queue.limit(memoryLimits(own))
            else queues?.limit(queue, own)
          },
        },
        settings.queues[signal],
        sendSettings(settings, signal),
        settings.chains?.[signal] as ItemProcessor<Items[S]> | undefined,
      )
    this.#queues = {
      traces: open('traces', () => 1),
      metrics: open('metrics', metric => metric.points.length, halves),
      logs: open('logs', () => 1),
      profiles: open('profiles', () => 1),
    }
    this.#log = options.log
    this.#durable = queues
    this.#senders = sendersOf(settings)
  }

  /**
   * Intake of a signal, valid for the life of the pipeline. `type`: the signal type by
   * which items are counted; the tracer counts spans itself, as some wait before the pipeline.
   */
  intake<S extends Signal>(signal: S, type?: TypeOf<Items[S]>): Intake<Items[S]> {
    const { intake } = this.#queues[signal]
    return type === undefined ? intake : new TypedIntake(intake, this.ledger[signal], type)
  }

  /** Intake of metrics of one type that recur with different numbers, valid for the life of the pipeline. */
  prepared(type: SignalTypeName): PreparedIntake {
    return new TypedPrepared(this.#queues.metrics.prepared, this.ledger.metrics, type)
  }

  /**
   * Passes the items of a signal to the watcher after all processing, whether they are sent or not, until the returned
   * function is called. Until then metrics cannot be prepared and come whole, which costs CPU.
   */
  watch<S extends Signal>(signal: S, watcher: Watcher<Items[S]>): () => void {
    return this.#queues[signal].watch(watcher)
  }

  /** The same with the bytes of each item, for one watcher of a signal and for good. */
  watchEncoded<S extends Signal>(signal: S, watcher: EncodedWatcher<Items[S]>): void {
    this.#queues[signal].watchEncoded(watcher)
  }

  state(signal: Signal): SignalQueueState {
    return this.#queues[signal].state
  }

  /** Frees about this many bytes of memory of all queues; returns how many. See `BatchQueue`. */
  shed(bytes: number): number {
    let held = 0
    for (const signal of signals) held += this.#queues[signal].queuedMemory
    let freed = 0
    for (const signal of signals) {
      const queue = this.#queues[signal]
      if (held > 0) freed += queue.shed((bytes * queue.queuedMemory) / held)
    }
    return freed
  }

  /** Bytes of memory of all queues. */
  get queuedMemory(): number {
    let bytes = 0
    for (const signal of signals) bytes += this.#queues[signal].queuedMemory
    return bytes
  }

  /**
   * Resolves when all items that have entered the signal's intake are secured. With a disk queue: written and synced,
   * so that they survive a loss of power. In memory: acknowledged, rejected or dropped, which without a receiver
   * takes until there is one. Refused and dropped items delay nothing. Rejects if the
   * pipeline ends before. Neither cuts nor hurries batches.
   */
  secured(signal: Signal): Promise<void> {
    return this.#queues[signal].secured()
  }

  /**
   * Fill level of a signal, from 0 to 1: its waiting data relative to its limit; at 1 it loses items. On
   * disk the signals share one limit, and the one with the most data drops its oldest.
   */
  fill(signal: Signal): number {
    return this.#queues[signal].fill
  }

  /**
   * Applies new settings without losing an item: queued batches go to the new senders, and so do batches in flight that
   * an old sender does not deliver. Unused senders are closed. Queued batches of a signal without a sender are dropped,
   * once requests in flight have ended.
   */
  change(settings: PipelineSettings): void {
    const before = this.#senders
    const after = sendersOf(settings)
    if (!this.#draining) {
      this.#senders = after
      for (const signal of signals) this.#change(signal, settings)
    }
    const [unused, used] = this.#draining ? [after, before] : [before, after]
    for (const sender of unused) {
      if (used.has(sender)) continue
      sender.close().catch(error => this.#log.warn('cannot close a connection', { error: errorText(error) }))
    }
  }

  /** Sends all current items, unbatched ones included, and resolves when they are gone or time is up. */
  async flush(timeoutMs: number): Promise<FlushResult> {
    const results = await each(signal => this.#queues[signal].flush(timeoutMs))
    return {
      acknowledged: bySignal(signal => results[signal].acknowledged),
      left: bySignal(signal => results[signal].left),
    }
  }

  /**
   * Closes the intake, sends the rest, and drops what is left after `timeoutMs`. A further call waits
   * for the first.
   */
  drain(timeoutMs: number): Promise<DrainResult> {
    this.#draining ??= this.#drain(timeoutMs)
    return this.#draining
  }

  /** Closes without sending the rest. */
  async close(): Promise<void> {
    await this.drain(0)
  }

  #change<S extends Signal>(signal: S, settings: PipelineSettings): void {
    const processor = settings.chains?.[signal] as ItemProcessor<Items[S]> | undefined
    this.#queues[signal].change(settings.queues[signal], sendSettings(settings, signal), processor)
  }

  async #drain(timeoutMs: number): Promise<DrainResult> {
    const ends = await each(signal => this.#queues[signal].drain(timeoutMs))
    await this.#durable?.close()
    await Promise.allSettled([...this.#senders].map(sender => sender.close()))
    return {
      exported: bySignal(signal => ends[signal].exported),
      dropped: bySignal(signal => ends[signal].dropped),
      kept: bySignal(signal => ends[signal].kept),
    }
  }
}

/** Splits a metric into two with half of the points each. */
function halves(metric: Metric): readonly [Metric, Metric] | undefined {
  const { points } = metric
  if (points.length < 2) return undefined
  const half = points.length >> 1
  const part = (from: number, to: number) => ({ ...metric, points: points.slice(from, to) }) as Metric
  return [part(0, half), part(half, points.length)]
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

function sendersOf({ queues }: PipelineSettings): ReadonlySet<Sender> {
  return new Set(signals.map(signal => queues[signal].sender).filter(sender => sender !== undefined))
}

function memoryLimits({ queueBytes, maxAgeMs }: SignalQueueSettings) {
  return { limitBytes: queueBytes, maxAgeMs }
}

function sendSettings({ queues, retry, onAuthError }: PipelineSettings, signal: Signal): SendSettings {
  const { sender, concurrency } = queues[signal]
  return { sender, concurrency, retry, onAuthError }
}
