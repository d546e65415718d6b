import type { Batch } from '../model/batch.ts'
import type { Resource, Scope } from '../model/resource.ts'
import type { Account } from './ledger.ts'

/** Where telemetry enters the pipeline. Nothing of an item is kept after the call, so the caller may reuse it. */
export interface Intake<T> {
  add(resource: Resource, scope: Scope, item: T): void
}

/** Encodes items into one request. The OTLP exporter brings one for each signal. */
export interface Builder<T> {
  /** Items as receivers count them: spans, data points, log records, profiles. */
  readonly items: number
  /** Returns an upper bound of the request's size in bytes. */
  add(resource: Resource, scope: Scope, item: T): number
  /** Takes back the last `add`. */
  undo(): void
  take(): Batch | undefined
}

export interface BatcherOptions<T> {
  readonly builder: Builder<T>
  readonly account: Account
  /** A batch is cut at this many items, */
  readonly maxItems: number
  /** before it would be larger than this, */
  readonly maxBytes: number
  /** or this long after its first item. */
  readonly timeoutMs: number
  readonly out: (batch: Batch) => void
}

/** Gathers items of one signal into batches. */
export class Batcher<T> implements Intake<T> {
  readonly #builder: Builder<T>
  readonly #account: Account
  readonly #options: BatcherOptions<T>
  readonly #cut: () => void
  #timer: NodeJS.Timeout | undefined
  /** When the first item of the batch came; of `performance.now()`. */
  #sinceMs = 0
  #closed = false

  constructor(options: BatcherOptions<T>) {
    this.#builder = options.builder
    this.#account = options.account
    this.#options = options
    this.#cut = () => this.cut()
  }

  /** Items that wait for the batch to be full. */
  get items(): number {
    return this.#builder.items
  }

  /** How long the first of them has waited, in milliseconds; 0 where there is none. */
  get waitingMs(): number {
    return this.#timer === undefined ? 0 : performance.now() - this.#sinceMs
  }

  add(resource: Resource, scope: Scope, item: T): void {
    const builder = this.#builder
    const before = builder.items
    let bytes: number
    try {
      bytes = builder.add(resource, scope, item)
    } catch {
      // One item that the encoder cannot take must not stop the others; its kind of loss has its own reason.
      builder.undo()
      this.#account.miss('encode', 1)
      return
    }
    const added = builder.items - before
    if (added === 0) return
    if (this.#closed) {
      builder.undo()
      this.#account.miss('shutdown', added)
      return
    }
    if (bytes > this.#options.maxBytes) {
      builder.undo()
      this.#overflow(resource, scope, item, added)
      return
    }
    this.#account.collected += added
    if (builder.items >= this.#options.maxItems) this.cut()
    else if (this.#timer === undefined) {
      this.#sinceMs = performance.now()
      this.#timer = setTimeout(this.#cut, this.#options.timeoutMs)
    }
  }

  /** Hands on what there is. */
  cut(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const batch = this.#builder.take()
    if (batch) this.#options.out(batch)
  }

  /** Hands on what there is; whatever comes later is dropped with the reason `shutdown`. */
  close(): void {
    this.cut()
    this.#closed = true
  }

  /** The item found no room: it begins the next batch, unless it is too large for any. */
  #overflow(resource: Resource, scope: Scope, item: T, items: number): void {
    if (this.#builder.items > 0) {
      this.cut()
      this.add(resource, scope, item)
    } else this.#account.miss('too_large', items)
  }
}

/** The intake of a signal that goes nowhere: counts its items as dropped and does not encode them. */
export class Discard<T> implements Intake<T> {
  readonly #account: Account
  readonly #reason: string
  readonly #count: (item: T) => number

  constructor(account: Account, reason: string, count: (item: T) => number) {
    this.#account = account
    this.#reason = reason
    this.#count = count
  }

  add(_resource: Resource, _scope: Scope, item: T): void {
    this.#account.miss(this.#reason, this.#count(item))
  }
}
