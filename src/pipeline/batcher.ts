import type { Batch } from '../foundation/model/batch.ts'
import type { DropReasonName } from '../foundation/model/drop-reasons.ts'
import type { PreparedMetric, Sent } from '../foundation/model/prepared-metric.ts'
import type { Resource, Scope } from '../foundation/model/resource.ts'
import type { EncodedItem, RequestBuilder } from './exporters/otlp/request.ts'
import type { Account } from './ledger.ts'
import { Prepared } from './prepared.ts'

/** Entry of telemetry into the pipeline. Items are not kept after the call, so the caller may reuse them. */
export interface Intake<T> {
  add(resource: Resource, scope: Scope, item: T): void
}

/** Called with each item after all processing, whether it is sent or not. Must not throw. */
export type Watcher<T> = (resource: Resource, item: T, scope: Scope) => void

/**
 * Called with each item after all processing and with its bytes, whether it is sent or not, unless it cannot be encoded
 * or is too large. The bytes are valid during the call. Must not throw.
 */
export type EncodedWatcher<T> = (resource: Resource, item: T, encoded: EncodedItem) => void

/** Output of a processor. */
export interface Sink<T> {
  add(resource: Resource, scope: Scope, item: T): void
  /** Counts dropped items, as receivers count them. */
  drop(reason: DropReasonName, items: number): void
}

/** Processing of items before encoding. It may change them, and must not throw. */
export interface ItemProcessor<T> {
  run(resource: Resource, scope: Scope, item: T, out: Sink<T>): void
  /**
   * As `run`, for a recurring item whose numbers are not known yet. Undefined if the result depends on them or on other
   * items; all calls of `out` are then void. If omitted, that is the case for all items.
   */
  prepare?(resource: Resource, scope: Scope, item: T, out: Sink<T>): Lasting | undefined
  /** Reason to drop an item with this number of points this time; '' to pass it. */
  again?(items: number): DropReasonName | ''
}

/** Validity of a preparation. */
export interface Lasting {
  readonly forMs: number
  /** Whether `again` must be called each time the item recurs. */
  readonly asksAgain: boolean
}

/** Encodes items into one request. The OTLP exporter has one for each signal. */
export type Builder<T> = Pick<
  RequestBuilder<T>,
  | 'items'
  | 'add'
  | 'last'
  | 'encodeApart'
  | 'template'
  | 'addEncoded'
  | 'aloneBytes'
  | 'undo'
  | 'take'
  | 'keptBytes'
  | 'rest'
>

export interface BatchLimits {
  /** A batch is cut at this many items, */
  readonly maxItems: number
  /** before it would be larger than this, */
  readonly maxBytes: number
  /** or this long after its first item. */
  readonly timeoutMs: number
  /** Maximum size of an item above `maxBytes`, which is sent alone; if omitted, such an item is dropped. */
  readonly aloneBytes?: number
}

export interface BatcherOptions<T> {
  readonly builder: Builder<T>
  readonly account: Account
  /** Number of items that the receiver counts in one. */
  readonly count: (item: T) => number
  /** Halves an item that counts as several; undefined if that is impossible. */
  readonly divide?: ((item: T) => readonly [T, T] | undefined) | undefined
  readonly out: (batch: Batch) => void
  /** Maximum requests per full batch, so that they can be sent concurrently. */
  readonly parts?: () => number
  /** Called after all parts of a batch were passed on. */
  readonly cut?: () => void
}

/** Time after which unused memory for requests is freed, in milliseconds. */
const restMs = 20_000

const always: Lasting = { forMs: Number.POSITIVE_INFINITY, asksAgain: false }

/** Collects items of one signal into batches. Items before the first `accept` are dropped as `no_endpoint`. */
export class Batcher<T> implements Intake<T> {
  readonly #builder: Builder<T>
  readonly #account: Account
  readonly #count: (item: T) => number
  readonly #divide: (item: T) => readonly [T, T] | undefined
  readonly #out: (batch: Batch) => void
  readonly #parts: () => number
  readonly #sink: Sink<T>
  #watchers: readonly Watcher<T>[] = []
  #encodedWatcher: EncodedWatcher<T> | undefined
  /** Passes items that are not sent to watchers. */
  readonly #show: Sink<T>
  readonly #cut: () => void
  readonly #wasCut: () => void
  #timer: NodeJS.Timeout | undefined
  #resting: NodeJS.Timeout | undefined
  /** Time of the first item of the batch, by `performance.now()`. */
  #sinceMs = 0
  #firstItem = 0
  #bytes = 0
  #limits: BatchLimits = { maxItems: 1, maxBytes: 0, timeoutMs: 0 }
  /** Reason why items are dropped immediately; '' while they are accepted. */
  #refusal: DropReasonName | '' = 'no_endpoint'
  #processor: ItemProcessor<T> | undefined
  /** Incremented at each change of the fields above, which invalidates earlier preparations. */
  #epoch = 0
  readonly #droppedAtIntake: (items: number, reason: DropReasonName) => void

  constructor(options: BatcherOptions<T>) {
    this.#builder = options.builder
    this.#account = options.account
    this.#count = options.count
    this.#divide = options.divide ?? (() => undefined)
    this.#droppedAtIntake = (items, reason) => this.#account.dropAtIntake(reason, items)
    this.#out = options.out
    this.#parts = options.parts ?? (() => 1)
    this.#cut = () => this.cut()
    this.#wasCut = options.cut ?? (() => {})
    this.#show = {
      add: (resource, scope, item) => this.#showUnsent(resource, scope, item),
      drop: () => undefined,
    }
    this.#sink = {
      add: (resource, scope, item) => this.#take(resource, scope, item),
      drop: (reason, items) => this.#account.dropAtIntake(reason, items),
    }
  }

  /** Items in the current batch. */
  get items(): number {
    return this.#builder.items
  }

  /** Upper bound of the size of their request. */
  get bytes(): number {
    return this.#bytes
  }

  /** Number of items passed on so far, which is the number of the first one that waits. */
  get firstItem(): number {
    return this.#firstItem
  }

  /** Age of the first of them, in milliseconds; 0 for none. */
  get waitingMs(): number {
    return this.#timer === undefined ? 0 : performance.now() - this.#sinceMs
  }

  add(resource: Resource, scope: Scope, item: T): void {
    if (this.#refusal !== '') {
      this.#account.dropAtIntake(this.#refusal, this.#count(item))
      if (this.#watchers.length > 0 || this.#encodedWatcher !== undefined)
        this.#run(resource, scope, item, this.#show)
    } else if (this.#processor === undefined) this.#take(resource, scope, item)
    else this.#run(resource, scope, item, this.#sink)
  }

  /** Passes every item to the watcher from now on, until the returned function is called. */
  watch(watcher: Watcher<T>): () => void {
    // Prepared items bypass watchers, so watchers need whole items.
    if (this.#watchers.length === 0) this.#epoch++
    this.#watchers = [...this.#watchers, watcher]
    return () => {
      this.#watchers = this.#watchers.filter(each => each !== watcher)
    }
  }

  /** Has one watcher see the bytes of items from now on. Prepared items bypass it. */
  watchEncoded(watcher: EncodedWatcher<T>): void {
    this.#encodedWatcher = watcher
  }

  /** Passes on the current batch. */
  cut(parts = 1): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#bytes = 0
    const { items } = this.#builder
    for (const batch of this.#builder.take(parts)) this.#out(batch)
    // Only now, as the parts of a batch do not have its items in order.
    this.#firstItem += items
    this.#restLater()
    this.#wasCut()
  }

  /** Passes on the current batch; later items are processed and collected with these settings. */
  accept(limits: BatchLimits, processor?: ItemProcessor<T>): void {
    this.cut()
    const { maxBytes } = this.#limits
    if (this.#refusal !== '' || processor !== this.#processor || limits.maxBytes < maxBytes) this.#epoch++
    this.#limits = limits
    this.#processor = processor
    this.#refusal = ''
  }

  /** Passes on the current batch; later items are dropped with the reason, and processed only for watchers. */
  refuse(reason: DropReasonName, processor?: ItemProcessor<T>): void {
    this.cut()
    this.#processor = processor
    this.#refusal = reason
  }

  /** See `PreparedIntake`. */
  prepare(resource: Resource, scope: Scope, item: T): PreparedMetric | undefined {
    // Watchers need whole items each time.
    if (this.#watchers.length > 0) return undefined
    const prepared = new Prepared(this.#count(item), this.#epoch)
    // Until that changes it is only counted.
    if (this.#refusal !== '') return prepared
    let isWhole = true
    const out: Sink<T> = {
      add: (of, within, some) => {
        isWhole &&= this.#prepare(prepared, of, within, some)
      },
      drop: (reason, items) => prepared.drop(reason, items),
    }
    const lasting = this.#passOnce(resource, scope, item, out)
    if (lasting === undefined || !isWhole) return undefined
    prepared.lastFor(lasting.forMs)
    prepared.asksAgain = lasting.asksAgain
    return prepared
  }

  /** See `PreparedIntake`. `prepared` is from this intake. */
  send(prepared: PreparedMetric, values: Float64Array, timeUs: number): Sent {
    const own = prepared as Prepared
    if (own.epoch !== this.#epoch) return 'old'
    if (this.#refusal !== '') {
      this.#account.dropAtIntake(this.#refusal, own.points)
      return 'sent'
    }
    if (own.isOld) return 'old'
    if (!own.fill(values, timeUs)) return 'unfit'
    if (own.asksAgain) {
      const verdict = this.#processor?.again?.(own.points) ?? ''
      if (verdict !== '') {
        this.#account.dropAtIntake(verdict, own.points)
        return 'sent'
      }
    }
    const { parts, dropped } = own
    for (let i = 0; i < parts.length; i++) {
      const { resource, scope, template, filled } = parts[i]!
      this.#gatherEncoded(resource, scope, filled!, template.points)
    }
    if (dropped.size > 0) dropped.forEach(this.#droppedAtIntake)
    return 'sent'
  }

  #restLater(): void {
    if (this.#resting !== undefined || this.#builder.keptBytes === 0) return
    this.#resting = setTimeout(() => {
      this.#resting = undefined
      this.#builder.rest()
      this.#restLater()
    }, restMs)
    this.#resting.unref()
  }

  #passOnce(resource: Resource, scope: Scope, item: T, out: Sink<T>): Lasting | undefined {
    const processor = this.#processor
    try {
      if (processor !== undefined) return processor.prepare?.(resource, scope, item, out)
      out.add(resource, scope, item)
      return always
    } catch {
      // The item is then sent as a whole, where the exception is counted.
      return undefined
    }
  }

  /** Makes templates of an item, in parts within the request size. False if it has none. */
  #prepare(prepared: Prepared, resource: Resource, scope: Scope, item: T): boolean {
    if (this.#count(item) === 0) return true
    const template = this.#builder.template(item)
    if (template === undefined) return false
    const isTooLarge = this.#builder.aloneBytes(resource, scope, template.sizeBytes) > this.#limits.maxBytes
    const halves = isTooLarge ? this.#divide(item) : undefined
    if (halves !== undefined) return halves.every(half => this.#prepare(prepared, resource, scope, half))
    prepared.parts.push({ resource, scope, template, filled: undefined })
    return true
  }

  #run(resource: Resource, scope: Scope, item: T, sink: Sink<T>): void {
    if (this.#processor === undefined) {
      sink.add(resource, scope, item)
      return
    }
    try {
      this.#processor.run(resource, scope, item, sink)
    } catch {
      // After an exception in a processor the item is dropped: it may not be fully processed or redacted.
      sink.drop('processor', this.#count(item))
    }
  }

  /** Shows an item to watchers. */
  #notify(resource: Resource, scope: Scope, item: T): void {
    for (const watcher of this.#watchers) watcher(resource, item, scope)
  }

  #showUnsent(resource: Resource, scope: Scope, item: T): void {
    this.#notify(resource, scope, item)
    if (this.#encodedWatcher === undefined) return
    let encoded: EncodedItem
    try {
      encoded = this.#builder.encodeApart(item)
    } catch {
      return // nor would it be sent
    }
    this.#encodedWatcher(resource, item, encoded)
    this.#restLater()
  }

  /** Shows the bytes of the item that was added last. */
  #showEncoded(resource: Resource, item: T): void {
    const { last } = this.#builder
    if (last !== undefined) this.#encodedWatcher?.(resource, item, last)
  }

  /** Adds a fully processed item to the batch. */
  #take(resource: Resource, scope: Scope, item: T): void {
    this.#notify(resource, scope, item)
    this.#gather(resource, scope, item)
  }

  #gather(resource: Resource, scope: Scope, item: T): void {
    const builder = this.#builder
    const limits = this.#limits
    const before = builder.items
    let bytes: number
    try {
      bytes = builder.add(resource, scope, item)
    } catch {
      // An item that cannot be encoded must not stop the others; it has its own drop reason.
      builder.undo()
      this.#account.dropAtIntake('encode', this.#count(item))
      return
    }
    const added = builder.items - before
    if (added === 0) return
    if (bytes > limits.maxBytes) {
      this.#overflow(resource, scope, item, added, bytes)
      return
    }
    if (this.#encodedWatcher !== undefined) this.#showEncoded(resource, item)
    this.#gathered(added, bytes)
  }

  #gatherEncoded(resource: Resource, scope: Scope, encoded: Uint8Array, items: number): void {
    const builder = this.#builder
    const { maxBytes, aloneBytes = 0 } = this.#limits
    let bytes = builder.addEncoded(resource, scope, encoded, items)
    if (bytes > maxBytes && builder.items > items) {
      builder.undo()
      this.cut(this.#parts())
      bytes = builder.addEncoded(resource, scope, encoded, items)
    }
    if (bytes <= maxBytes) this.#gathered(items, bytes)
    else if (bytes <= aloneBytes) {
      this.#account.collected += items
      this.cut()
    } else {
      builder.undo()
      this.#account.dropAtIntake('too_large', items)
    }
  }

  /** Keeps the last added item in the batch. */
  #gathered(items: number, bytes: number): void {
    const { maxItems, timeoutMs } = this.#limits
    this.#account.collected += items
    this.#bytes = bytes
    if (this.#builder.items >= maxItems) this.cut(this.#parts())
    else if (this.#timer === undefined) {
      this.#sinceMs = performance.now()
      this.#timer = setTimeout(this.#cut, timeoutMs)
    }
  }

  /** The last added item exceeds the batch: it starts the next batch, or is sent in halves or alone. */
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
      if (this.#encodedWatcher !== undefined) this.#showEncoded(resource, item)
      this.#account.collected += items
      this.cut()
      return
    }
    builder.undo()
    if (halves === undefined) this.#account.dropAtIntake('too_large', items)
    else for (const half of halves) this.#gather(resource, scope, half)
  }
}
