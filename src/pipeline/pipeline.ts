import { errorText, type Logger } from '../lib/logger.ts'
import type { Sender } from '../model/batch.ts'
import type { LogRecord } from '../model/log.ts'
import type { Metric } from '../model/metric.ts'
import type { PreparedIntake } from '../model/prepared-metric.ts'
import type { Profile } from '../model/profile.ts'
import { bySignal, type Signal, signals } from '../model/signal.ts'
import type { SignalTypeName } from '../model/signal-types.ts'
import type { Span } from '../model/span.ts'
import type { BatchQueue, Dropped } from './batch-queue.ts'
import type { Builder, Intake, Process, Watcher } from './batcher.ts'
import { Lane, type LaneSettings, type LaneState } from './lane.ts'
import { type Ledger, openLedger } from './ledger.ts'
import { MemoryQueue } from './memory-queue.ts'
import type { RetryOptions } from './outlet.ts'
import type { ExportRequest, Halve, SendSettings } from './send-loop.ts'
import { TypedIntake, TypedPrepared, type TypeOf } from './typed-intake.ts'

/** What an item of each signal is. */
export interface Items {
  traces: Span
  metrics: Metric
  logs: LogRecord
  profiles: Profile
}

/** What may change while the pipeline runs. A sender belongs to the pipeline, which closes it when it is done with it. */
export interface PipelineSettings {
  readonly lanes: Readonly<Record<Signal, LaneSettings>>
  /** What is done to items before they are encoded. */
  readonly processes?: { readonly [S in Signal]?: Process<Items[S]> | undefined }
  readonly retry: RetryOptions
  readonly onAuthError: 'park' | 'drop'
}

/** Queues that outlive the process. */
export interface DurableQueues {
  open(signal: Signal, settings: LaneSettings, dropped: Dropped, ready: () => void): BatchQueue
  /** Other bounds for a queue that was opened here. */
  limit(queue: BatchQueue, settings: LaneSettings): void
  /** Called when all its queues are closed. */
  close(): Promise<void>
}

export interface PipelineOptions {
  readonly settings: PipelineSettings
  readonly builders: { readonly [S in Signal]: Builder<Items[S]> }
  readonly log: Logger
  /** Undefined: batches wait in memory. */
  readonly queues?: DurableQueues | undefined
  readonly halve?: Halve
  /** Called after each export request. Must not throw. */
  readonly observe?: (request: ExportRequest) => void
}

export type { LaneSettings, LaneState }

/** What became of the items at the end. */
export interface DrainResult {
  /** Acknowledged while draining. */
  readonly exported: Record<Signal, number>
  /** Given up, reason `shutdown`. */
  readonly dropped: Record<Signal, number>
  /** Left in the queue on disk, for the next process. */
  readonly kept: Record<Signal, number>
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
  readonly #queues: DurableQueues | undefined
  #senders: ReadonlySet<Sender>
  #draining: Promise<DrainResult> | undefined

  constructor(options: PipelineOptions) {
    const { settings, queues } = options
    const lane = <S extends Signal>(
      signal: S,
      count: (item: Items[S]) => number,
      divide?: (item: Items[S]) => readonly [Items[S], Items[S]] | undefined,
    ): Lane<Items[S]> =>
      new Lane<Items[S]>(
        {
          ...options,
          signal,
          account: this.ledger[signal],
          builder: options.builders[signal] as Builder<Items[S]>,
          count,
          divide,
          queue: (dropped, ready) => {
            const own = settings.lanes[signal]
            return (
              queues?.open(signal, own, dropped, ready) ?? new MemoryQueue(signal, memoryLimits(own), dropped)
            )
          },
          limit: (queue, own) => {
            if (queue instanceof MemoryQueue) queue.limit(memoryLimits(own))
            else queues?.limit(queue, own)
          },
        },
        settings.lanes[signal],
        sendSettings(settings, signal),
        settings.processes?.[signal] as Process<Items[S]> | undefined,
      )
    this.#lanes = {
      traces: lane('traces', () => 1),
      metrics: lane('metrics', metric => metric.points.length, halves),
      logs: lane('logs', () => 1),
      profiles: lane('profiles', () => 1),
    }
    this.#log = options.log
    this.#queues = queues
    this.#senders = sendersOf(settings)
  }

  /**
   * Where the items of a signal enter. The intake stays good for the pipeline's life. `type`: what they are told of, by
   * which the books count them; spans have it from the tracer, which sees also those that wait before the pipeline.
   */
  intake<S extends Signal>(signal: S, type?: TypeOf<Items[S]>): Intake<Items[S]> {
    const { intake } = this.#lanes[signal]
    return type === undefined ? intake : new TypedIntake(intake, this.ledger[signal], type)
  }

  /** Where metrics of a type enter that come again and again with other numbers. It stays good for the pipeline's life. */
  prepared(type: SignalTypeName): PreparedIntake {
    return new TypedPrepared(this.#lanes.metrics.prepared, this.ledger.metrics, type)
  }

  /**
   * Shows the items of a signal as they are when all is done that is to be done to them, whether they are sent or not,
   * until the function that it returns is called. Metrics that come prepared then come whole, which costs.
   */
  watch<S extends Signal>(signal: S, watcher: Watcher<Items[S]>): () => void {
    return this.#lanes[signal].watch(watcher)
  }

  state(signal: Signal): LaneState {
    return this.#lanes[signal].state
  }

  /** Gives back about so many bytes of memory of all queues; returns how many. See `BatchQueue`. */
  shed(bytes: number): number {
    let held = 0
    for (const signal of signals) held += this.#lanes[signal].queuedMemory
    let freed = 0
    for (const signal of signals) {
      const lane = this.#lanes[signal]
      if (held > 0) freed += lane.shed((bytes * lane.queuedMemory) / held)
    }
    return freed
  }

  /** Bytes of memory of all queues. */
  get queuedMemory(): number {
    let bytes = 0
    for (const signal of signals) bytes += this.#lanes[signal].queuedMemory
    return bytes
  }

  /**
   * Resolves when every item that came to the signal's intake so far is secured. On a queue on disk: written and forced
   * to it, so that it outlives a loss of power. In memory: acknowledged, rejected or dropped, which without a receiver
   * takes until one comes. What the intake refused, or what was dropped and counted, holds up nothing. Rejects where the
   * pipeline ends, and some of the items with it. It neither cuts batches nor hurries them.
   */
  secured(signal: Signal): Promise<void> {
    return this.#lanes[signal].secured()
  }

  /**
   * How near a signal is to losing items for want of room, from 0 to 1: what it has waiting over what it may have. On
   * disk signals share one bound, and the one that takes most gives way.
   */
  fill(signal: Signal): number {
    return this.#lanes[signal].fill
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
      for (const signal of signals) this.#change(signal, settings)
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
      acknowledged: bySignal(signal => results[signal].acknowledged),
      left: bySignal(signal => results[signal].left),
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

  #change<S extends Signal>(signal: S, settings: PipelineSettings): void {
    const process = settings.processes?.[signal] as Process<Items[S]> | undefined
    this.#lanes[signal].change(settings.lanes[signal], sendSettings(settings, signal), process)
  }

  async #drain(timeoutMs: number): Promise<DrainResult> {
    const ends = await each(signal => this.#lanes[signal].drain(timeoutMs))
    await this.#queues?.close()
    await Promise.allSettled([...this.#senders].map(sender => sender.close()))
    return {
      exported: bySignal(signal => ends[signal].exported),
      dropped: bySignal(signal => ends[signal].dropped),
      kept: bySignal(signal => ends[signal].kept),
    }
  }
}

/** A metric with half of the points, and one with the others. */
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

function sendersOf({ lanes }: PipelineSettings): ReadonlySet<Sender> {
  return new Set(signals.map(signal => lanes[signal].sender).filter(sender => sender !== undefined))
}

function memoryLimits({ queueBytes, maxAgeMs }: LaneSettings) {
  return { limitBytes: queueBytes, maxAgeMs }
}

function sendSettings({ lanes, retry, onAuthError }: PipelineSettings, signal: Signal): SendSettings {
  const { sender, concurrency } = lanes[signal]
  return { sender, concurrency, retry, onAuthError }
}
