import type { Batch } from '../model/batch.ts'
import type { Resource, Scope } from '../model/resource.ts'
import type { Account } from './ledger.ts'

/** Where telemetry enters the pipeline. Nothing of an item is kept after the call, so the caller may reuse it. */
export interface Intake<T> {
  add(resource: Resource, scope: Scope, item: T): void
}

/** Where a process puts what is left of items. */
export interface Sink<T> {
  add(resource: Resource, scope: Scope, item: T): void
  /** Items that go no further, counted as receivers count them. */
  miss(reason: string, items: number): void
}

/** What is done to items before they are encoded. It may change them, and must not throw. */
export interface Process<T> {
  run(resource: Resource, scope: Scope, item: T, out: Sink<T>): void
}

/** Encodes items into one request. The OTLP exporter brings one for each signal. */
export interface Builder<T> {
  /** Items as receivers count them: spans, data points, log records, profiles. */
  readonly items: number
  /** Returns an upper bound of the request's size in bytes. */
  add(resource: Resource, scope: Scope, item: T): number
  /** Takes back the last `add`. */
  undo(): void
  /** All that was added, in `parts` requests at most that share no resource. */
  take(parts?: number): Batch[]
}

export interface BatchLimits {
  /** A batch is cut at this many items, */
  readonly maxItems: number
  /** before it would be larger than this, */
  readonly maxBytes: number
  /** or this long after its first item. */
  readonly timeoutMs: number
  /** An item that is above `maxBytes` by itself goes alone up to this size; left out: it is dropped. */
  readonly aloneBytes?: number
}

export interface BatcherOptions<T> {
  readonly builder: Builder<T>
  readonly account: Account
  /** How many items the receiver would count in one. */
  readonly count: (item: T) => number
  /** Halves what counts as several items; undefined where that cannot be done. */
  readonly divide?: ((item: T) => readonly [T, T] | undefined) | undefined
  readonly out: (batch: Batch) => void
  /** Told of each item as it is when all is done that is to be done to it, whether it is sent or not. Must not throw. */
  readonly seen?: ((resource: Resource, item: T) => void) | undefined
  /** In how many requests a full batch may go, so that they can be under way beside each other. */
  readonly parts?: () => number
  /** Called when all parts of a batch were handed on. */
  readonly cut?: () => void
}

/** Gathers items of one signal into batches. Until it is told to accept them, they are dropped as `no_endpoint`. */
export class Batcher<T> implements Intake<T> {
  readonly #builder: Builder<T>
  readonly #account: Account
  readonly #count: (item: T) => number
  readonly #divide: (item: T) => readonly [T, T] | undefined
  readonly #out: (batch: Batch) => void
  readonly #parts: () => number
  readonly #sink: Sink<T>
  readonly #seen: ((resource: Resource, item: T) => void) | undefined
  /** Shows what is not sent. */
  readonly #show: Sink<T>
  readonly #cut: () => void
  readonly #wasCut: () => void
  #timer: NodeJS.Timeout | undefined
  /** When the first item of the batch came; of `performance.now()`. */
  #sinceMs = 0
  #firstItem = 0
  #bytes = 0
  #limits: BatchLimits = { maxItems: 1, maxBytes: 0, timeoutMs: 0 }
  /** Why items are dropped at once; '' while they are accepted. */
  #refusal = 'no_endpoint'
  #process: Process<T> | undefined

  constructor(options: BatcherOptions<T>) {
    this.#builder = options.builder
    this.#account = options.account
    this.#count = options.count
    this.#divide = options.divide ?? (() => undefined)
    this.#out = options.out
    this.#parts = options.parts ?? (() => 1)
    this.#cut = () => this.cut()
    this.#wasCut = options.cut ?? (() => {})
    this.#seen = options.seen
    this.#show = { add: (resource, _scope, item) => this.#seen?.(resource, item), miss: () => undefined }
    this.#sink = {
      add: (resource, scope, item) => {
        this.#seen?.(resource, item)
        this.#gather(resource, scope, item)
      },
      miss: (reason, items) => this.#account.miss(reason, items),
    }
  }

  /** Items that wait for the batch to be full. */
  get items(): number {
    return this.#builder.items
  }

  /** An upper bound of the size of their request. */
  get bytes(): number {
    return this.#bytes
  }

  /** How many items were handed on so far: the number of the first one that waits. */
  get firstItem(): number {
    return this.#firstItem
  }

  /** How long the first of them has waited, in milliseconds; 0 where there is none. */
  get waitingMs(): number {
    return this.#timer === undefined ? 0 : performance.now() - this.#sinceMs
  }

  add(resource: Resource, scope: Scope, item: T): void {
    if (this.#refusal !== '') {
      this.#account.miss(this.#refusal, this.#count(item))
      if (this.#seen !== undefined) this.#run(resource, scope, item, this.#show)
    } else this.#run(resource, scope, item, this.#sink)
  }

  /** Hands on what there is. */
  cut(parts = 1): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#bytes = 0
    const { items } = this.#builder
    for (const batch of this.#builder.take(parts)) this.#out(batch)
    // Only now, for the parts of a batch do not hold its items in their order.
    this.#firstItem += items
    this.#wasCut()
  }

  /** Hands on what there is; whatever comes later is processed so, and gathered within these bounds. */
  accept(limits: BatchLimits, process?: Process<T>): void {
    this.cut()
    this.#limits = limits
    this.#process = process
    this.#refusal = ''
  }

  /** Hands on what there is; whatever comes later is dropped with the reason, and processed only to be seen. */
  refuse(reason: string, process?: Process<T>): void {
    this.cut()
    this.#process = process
    this.#refusal = reason
  }

  #run(resource: Resource, scope: Scope, item: T, sink: Sink<T>): void {
    if (this.#process === undefined) {
      sink.add(resource, scope, item)
      return
    }
    try {
      this.#process.run(resource, scope, item, sink)
    } catch {
      // Not even a fault in a processor lets an item through that it has not seen to the end.
      sink.miss('processor', this.#count(item))
    }
  }

  #gather(resource: Resource, scope: Scope, item: T): void {
    const builder = this.#builder
    const limits = this.#limits
    const before = builder.items
    let bytes: number
    try {
      bytes = builder.add(resource, scope, item)
    } catch {
      // One item that the encoder cannot take must not stop the others; its kind of loss has its own reason.
      builder.undo()
      this.#account.miss('encode', this.#count(item))
      return
    }
    const added = builder.items - before
    if (added === 0) return
    if (bytes > limits.maxBytes) {
      this.#overflow(resource, scope, item, added, bytes)
      return
    }
    this.#account.collected += added
    this.#bytes = bytes
    if (builder.items >= limits.maxItems) this.cut(this.#parts())
    else if (this.#timer === undefined) {
      this.#sinceMs = performance.now()
      this.#timer = setTimeout(this.#cut, limits.timeoutMs)
    }
  }

  /** The item that was added last found no room: it begins the next batch, or goes in halves, or alone. */
  #overflow(resource: Resource, scope: Scope, item: T, items: number, bytes: number): void {
    const builder = this.#builder
    if (builder.items > items) {
      builder.undo()
      this.cut(this.#parts())
      this.#gather(resource, scope, item)
      return
    }
    const halves = this.#divide(item)
    if (halves === undefined && bytes <= (this.#limits.aloneBytes ?? 0)) {
      this.#account.collected += items
      this.cut()
      return
    }
    builder.undo()
    if (halves === undefined) this.#account.miss('too_large', items)
    else for (const half of halves) this.#gather(resource, scope, half)
  }
}
