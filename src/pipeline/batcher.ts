import type { RequestBuilder } from '../exporters/otlp/request.ts'
import type { Batch } from '../model/batch.ts'
import type { DropReasonName } from '../model/drop-reasons.ts'
import type { PreparedMetric, Sent } from '../model/prepared-metric.ts'
import type { Resource, Scope } from '../model/resource.ts'
import type { Account } from './ledger.ts'
import { Prepared } from './prepared.ts'

/** Where telemetry enters the pipeline. Nothing of an item is kept after the call, so the caller may reuse it. */
export interface Intake<T> {
  add(resource: Resource, scope: Scope, item: T): void
}

/** Told of items as they are when all is done that is to be done to them, whether they are sent or not. Must not throw. */
export type Watcher<T> = (resource: Resource, item: T, scope: Scope) => void

/** Where a process puts what is left of items. */
export interface Sink<T> {
  add(resource: Resource, scope: Scope, item: T): void
  /** Items that go no further, counted as receivers count them. */
  miss(reason: string, items: number): void
}

/** What is done to items before they are encoded. It may change them, and must not throw. */
export interface Process<T> {
  run(resource: Resource, scope: Scope, item: T, out: Sink<T>): void
  /**
   * As `run`, for an item that will come again and again and whose numbers are not known. Undefined: what becomes of it
   * depends on them, or on what else comes, and nothing that `out` was told counts. Left out: so it is with all.
   */
  prepare?(resource: Resource, scope: Scope, item: T, out: Sink<T>): Lasting | undefined
  /** Why an item that counts as so many goes no further this time; '' lets it pass. */
  again?(items: number): string
}

/** For how long a preparation told the truth. */
export interface Lasting {
  readonly forMs: number
  /** `again` is to be asked each time that the item comes. */
  readonly asksAgain: boolean
}

/** Encodes items into one request. The OTLP exporter brings one for each signal. */
export type Builder<T> = Pick<
  RequestBuilder<T>,
  'items' | 'add' | 'template' | 'addEncoded' | 'aloneBytes' | 'undo' | 'take' | 'keptBytes' | 'rest'
>

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
  /** In how many requests a full batch may go, so that they can be under way beside each other. */
  readonly parts?: () => number
  /** Called when all parts of a batch were handed on. */
  readonly cut?: () => void
}

/** Memory for requests that was not needed for so long, in milliseconds, is let go. */
const restMs = 20_000

const always: Lasting = { forMs: Number.POSITIVE_INFINITY, asksAgain: false }

/** Gathers items of one signal into batches. Until it is told to accept them, they are dropped as `no_endpoint`. */
export class Batcher<T> implements Intake<T> {
  readonly #builder: Builder<T>
  readonly #account: Account
  readonly #count: (item: T) => number
  readonly #divide: (item: T) => readonly [T, T] | undefined
  readonly #out: (batch: Batch) => void
  readonly #parts: () => number
  readonly #sink: Sink<T>
  #watchers: readonly Watcher<T>[] = []
  /** Shows what is not sent. */
  readonly #show: Sink<T>
  readonly #cut: () => void
  readonly #wasCut: () => void
  #timer: NodeJS.Timeout | undefined
  #resting: NodeJS.Timeout | undefined
  /** When the first item of the batch came; of `performance.now()`. */
  #sinceMs = 0
  #firstItem = 0
  #bytes = 0
  #limits: BatchLimits = { maxItems: 1, maxBytes: 0, timeoutMs: 0 }
  /** Why items are dropped at once; '' while they are accepted. */
  #refusal: DropReasonName | '' = 'no_endpoint'
  #process: Process<T> | undefined
  /** Grows with each change of what stands above; what was prepared before is void. */
  #epoch = 0
  readonly #missed: (items: number, reason: string) => void

  constructor(options: BatcherOptions<T>) {
    this.#builder = options.builder
    this.#account = options.account
    this.#count = options.count
    this.#divide = options.divide ?? (() => undefined)
    this.#missed = (items, reason) => this.#account.miss(reason, items)
    this.#out = options.out
    this.#parts = options.parts ?? (() => 1)
    this.#cut = () => this.cut()
    this.#wasCut = options.cut ?? (() => {})
    this.#show = {
      add: (resource, scope, item) => this.#notify(resource, scope, item),
      miss: () => undefined,
    }
    this.#sink = {
      add: (resource, scope, item) => this.#take(resource, scope, item),
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
      if (this.#watchers.length > 0) this.#run(resource, scope, item, this.#show)
    } else if (this.#process === undefined) this.#take(resource, scope, item)
    else this.#run(resource, scope, item, this.#sink)
  }

  /** Shows every item that comes from now on, until the function that it returns is called. */
  watch(watcher: Watcher<T>): () => void {
    // What was prepared is not shown.
    if (this.#watchers.length === 0) this.#epoch++
    this.#watchers = [...this.#watchers, watcher]
    return () => {
      this.#watchers = this.#watchers.filter(each => each !== watcher)
    }
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
    this.#restLater()
    this.#wasCut()
  }

  /** Hands on what there is; whatever comes later is processed so, and gathered within these bounds. */
  accept(limits: BatchLimits, process?: Process<T>): void {
    this.cut()
    const { maxBytes } = this.#limits
    if (this.#refusal !== '' || process !== this.#process || limits.maxBytes < maxBytes) this.#epoch++
    this.#limits = limits
    this.#process = process
    this.#refusal = ''
  }

  /** Hands on what there is; whatever comes later is dropped with the reason, and processed only to be seen. */
  refuse(reason: DropReasonName, process?: Process<T>): void {
    this.cut()
    this.#process = process
    this.#refusal = reason
  }

  /** As `PreparedIntake` has it. */
  prepare(resource: Resource, scope: Scope, item: T): PreparedMetric | undefined {
    // What is to be seen must come whole each time.
    if (this.#watchers.length > 0) return undefined
    const prepared = new Prepared(this.#count(item), this.#epoch)
    // Until something changes it is only counted.
    if (this.#refusal !== '') return prepared
    let isWhole = true
    const out: Sink<T> = {
      add: (of, within, some) => {
        isWhole &&= this.#prepare(prepared, of, within, some)
      },
      miss: (reason, items) => prepared.lose(reason, items),
    }
    const lasting = this.#passOnce(resource, scope, item, out)
    if (lasting === undefined || !isWhole) return undefined
    prepared.lastFor(lasting.forMs)
    prepared.asksAgain = lasting.asksAgain
    return prepared
  }

  /** As `PreparedIntake` has it. `prepared` is of this intake. */
  send(prepared: PreparedMetric, values: Float64Array, timeUs: number): Sent {
    const own = prepared as Prepared
    if (own.epoch !== this.#epoch) return 'old'
    if (this.#refusal !== '') {
      this.#account.miss(this.#refusal, own.points)
      return 'sent'
    }
    if (own.isOld) return 'old'
    if (!own.fill(values, timeUs)) return 'unfit'
    if (own.asksAgain) {
      const verdict = this.#process?.again?.(own.points) ?? ''
      if (verdict !== '') {
        this.#account.miss(verdict, own.points)
        return 'sent'
      }
    }
    const { parts, lost } = own
    for (let i = 0; i < parts.length; i++) {
      const { resource, scope, template, filled } = parts[i]!
      this.#gatherEncoded(resource, scope, filled!, template.points)
    }
    if (lost.size > 0) lost.forEach(this.#missed)
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
    const process = this.#process
    try {
      if (process !== undefined) return process.prepare?.(resource, scope, item, out)
      out.add(resource, scope, item)
      return always
    } catch {
      // Coming whole it is dropped, and counted, by whoever cannot take it.
      return undefined
    }
  }

  /** Makes templates of an item, in parts that fit a request. False: it has none. */
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

  /** Shows an item to watchers. */
  #notify(resource: Resource, scope: Scope, item: T): void {
    for (const watcher of this.#watchers) watcher(resource, item, scope)
  }

  /** Nothing more is to be done to the item. */
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
      this.#account.miss('too_large', items)
    }
  }

  /** The item that was added last stays in the batch. */
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
