import { fieldKey, varintSize, WireType, Writer } from '../../../foundation/lib/protobuf.ts'
import { type Batch, plainBatch } from '../../../foundation/model/batch.ts'
import type { MetricTemplate } from '../../../foundation/model/prepared-metric.ts'
import type { Resource, Scope } from '../../../foundation/model/resource.ts'
import type { Signal } from '../../../foundation/model/signal.ts'
import {
  resourceBytes,
  resourceOrderKey,
  schemaUrlBytes,
  scopeBytes,
  scopeSchemaUrlBytes,
} from './encode-attributes.ts'

/** Wire format of the items of one signal. */
export interface Encoding<T> {
  readonly signal: Signal
  /**
   * Writes an item as one field 2 of its scope's message (`spans`, `metrics`, `log_records`, `profiles`) and returns
   * the number of items that the receiver counts in it. With 0 it must not write anything.
   */
  encode(out: Writer, item: T): number
  /**
   * Encodes an item with placeholders for its numbers; undefined if it has no such form. If omitted, no item has one.
   */
  readonly template?: (item: T) => MetricTemplate | undefined
  /** Data shared by the items of a request, sent once per request. */
  readonly dictionary?: Dictionary
}

export interface Dictionary {
  /** Upper bound of the bytes that `write` would write now. */
  readonly bytes: number
  /** Saves the current state for `undo`. */
  mark(): void
  undo(): void
  clear(): void
  /** Writes the field of the request. */
  write(out: Writer): void
}

/** Where the bytes of an item are. */
export interface EncodedItem {
  readonly buffer: Buffer
  readonly start: number
  readonly end: number
}

const none = Buffer.alloc(0)
/** The only one: it is read at once. */
const lastItem: { -readonly [Key in keyof EncodedItem]: EncodedItem[Key] } = {
  buffer: none,
  start: 0,
  end: 0,
}

interface ScopeGroup {
  readonly resource: Resource
  readonly scope: Scope
  readonly parent: ResourceGroup
  readonly header: Uint8Array
  /** Follows the items. */
  readonly schemaUrl: Uint8Array
  readonly items: Writer
}

interface ResourceGroup {
  readonly header: Uint8Array
  /** One of 32 order keys. */
  readonly orderKey: number
  readonly scopes: Map<Scope, ScopeGroup>
  /** Items of all scopes. */
  items: number
  itemBytes: number
}

/** The same numbers in all four signals: `resource_*` of the request, `scope_*` of the resource's message. */
const resourceField = fieldKey(1, WireType.bytes)
const scopeField = fieldKey(2, WireType.bytes)

/** Maximum key and length of a resource's or scope's message: one byte and five bytes. */
const varintRoom = 6
const envelope = varintRoom + schemaUrlBytes.length

/** Buffers of large requests are multiples of this; */
const requestStep = 64 * 1024
/** smaller ones have the exact size, because they may be queued and the queue counts only their content. */
const leastSpareRequest = 4 * requestStep
/** Maximum buffer that is kept for the next request. */
const mostSpareRequest = 1.25 * 1024 * 1024

/** Maximum buffer that is kept for items that are not sent. */
const mostApart = 64 * 1024

/** Default of `keepBytes`: twice the buffers of a typical request. There are five builders. */
const defaultKeepBytes = 2 * 1024 * 1024

/**
 * Collects items of one signal into OTLP export requests (Export*ServiceRequest, opentelemetry-proto 1.11). An item
 * is encoded when it is added, into the buffer of its resource and scope, and not kept. Buffers
 * are reused by the next request; at most `keepBytes` of them are kept.
 */
export class RequestBuilder<T> {
  readonly #encoding: Encoding<T>
  readonly #keepBytes: number
  readonly #resources = new Map<Resource, ResourceGroup>()
  readonly #spare: Writer[] = []
  #spareBytes = 0
  /** Minimum of spare buffers since the last `rest`: those were not needed. */
  #leastSpare = 0
  /** Buffer of a request that has been compressed. */
  #spareRequest: Writer | undefined
  #spareRequestRested = false
  #current: ScopeGroup | undefined
  #itemCount = 0
  #groupBytes = 0
  #undoLength = 0
  #undoItems = 0
  #undoGroupBytes = 0
  #undoItemBytes = 0
  #undoResourceItems = 0
  /** For items that no request takes. */
  #apart: Writer | undefined

  constructor(encoding: Encoding<T>, options: { keepBytes?: number } = {}) {
    this.#encoding = encoding
    this.#keepBytes = options.keepBytes ?? defaultKeepBytes
  }

  get signal(): Signal {
    return this.#encoding.signal
  }

  /** Number of items as receivers count them in a partial success: spans, data points, log records, profiles. */
  get items(): number {
    return this.#itemCount
  }

  /** Upper bound of the size of the request, in bytes. */
  get bytes(): number {
    return this.#groupBytes + (this.#encoding.dictionary?.bytes ?? 0)
  }

  /** Bytes of memory kept for the next request. */
  get keptBytes(): number {
    return this.#spareBytes + (this.#spareRequest?.capacity ?? 0) + (this.#apart?.capacity ?? 0)
  }

  /** Frees the kept memory that no request has used since the last call. */
  rest(): void {
    for (const { capacity } of this.#spare.splice(0, this.#leastSpare)) this.#spareBytes -= capacity
    this.#leastSpare = this.#spare.length
    if (this.#spareRequestRested) this.#spareRequest = undefined
    this.#apart = undefined
    lastItem.buffer = none
    this.#spareRequestRested = true
  }

  /** Adds an item, which is not kept, and returns the new `bytes`. An empty item adds nothing. */
  add(resource: Resource, scope: Scope, item: T): number {
    const group = this.#begin(resource, scope)
    return this.#end(group, this.#encoding.encode(group.items, item))
  }

  /** The bytes of the last item that was added: its field in the message of its scope. Valid until the next call. */
  get last(): EncodedItem | undefined {
    const group = this.#current
    if (group === undefined) return undefined
    lastItem.buffer = group.items.buffer
    lastItem.start = this.#undoLength
    lastItem.end = group.items.length
    return lastItem
  }

  /** Encodes an item that is not sent, as `last` gives it. */
  encodeApart(item: T): EncodedItem {
    this.#apart ??= new Writer()
    this.#apart.clear(mostApart)
    this.#encoding.encode(this.#apart, item)
    lastItem.buffer = this.#apart.buffer
    lastItem.start = 0
    lastItem.end = this.#apart.length
    return lastItem
  }

  /** Encodes an item with placeholders for its numbers, for `addEncoded`; undefined if it has no such form. */
  template(item: T): MetricTemplate | undefined {
    return this.#encoding.template?.(item)
  }

  /** Adds an encoded item that counts as `items`. Otherwise as `add`. */
  addEncoded(resource: Resource, scope: Scope, bytes: Uint8Array, items: number): number {
    const group = this.#begin(resource, scope)
    group.items.raw(bytes)
    return this.#end(group, items)
  }

  /** Size that `addEncoded` would return for an item of this size in an empty builder. */
  aloneBytes(resource: Resource, scope: Scope, bytes: number): number {
    const ofScope = varintRoom + scopeBytes(scope).length + scopeSchemaUrlBytes(scope).length
    return envelope + resourceBytes(resource).length + ofScope + bytes
  }

  /** Group for items of this resource and scope. Saves the state for `undo`. */
  #begin(resource: Resource, scope: Scope): ScopeGroup {
    let group = this.#current
    if (group === undefined || group.resource !== resource || group.scope !== scope) {
      this.#current = undefined // if this throws, `undo` has nothing to undo
      group = this.#group(resource, scope)
      this.#current = group
    }
    const { items, parent } = group
    this.#undoLength = items.length
    this.#undoItems = this.#itemCount
    this.#undoGroupBytes = this.#groupBytes
    this.#undoItemBytes = parent.itemBytes
    this.#undoResourceItems = parent.items
    this.#encoding.dictionary?.mark()
    return group
  }

  /** Adds what was written since `#begin` to the counts. */
  #end({ items, parent, header, schemaUrl }: ScopeGroup, count: number): number {
    this.#itemCount += count
    parent.items += count
    const before = this.#undoLength
    const added = items.length - before
    if (added === 0) return this.bytes
    if (before === 0) this.#groupBytes += varintRoom + header.length + schemaUrl.length
    if (parent.itemBytes === 0) this.#groupBytes += envelope + parent.header.length
    parent.itemBytes += added
    this.#groupBytes += added
    return this.bytes
  }

  /** Undoes the last `add` or `addEncoded`, once: for a request that is now too large, or after an exception. */
  undo(): void {
    const group = this.#current
    if (group === undefined) return
    group.parent.itemBytes = this.#undoItemBytes
    group.parent.items = this.#undoResourceItems
    group.items.truncate(this.#undoLength)
    this.#itemCount = this.#undoItems
    this.#groupBytes = this.#undoGroupBytes
    this.#encoding.dictionary?.undo()
    this.#current = undefined
  }

  /**
   * Returns the requests with all items, and empties the builder; none if there is nothing to send. At most `parts`
   * requests, which share no resource, so that they can be sent concurrently.
   */
  take(parts = 1): Batch[] {
    const batches: Batch[] = []
    // A dictionary cannot be divided.
    const most = this.#encoding.dictionary === undefined ? parts : 1
    if (this.#itemCount > 0)
      for (let part = 0; part < most; part++) {
        const batch = this.#concatenate(part, most)
        if (batch !== undefined) batches.push(batch)
      }
    this.#reset()
    return batches
  }

  #group(resource: Resource, scope: Scope): ScopeGroup {
    let parent = this.#resources.get(resource)
    if (parent === undefined) {
      const orderKey = resourceOrderKey(resource)
      parent = { header: resourceBytes(resource), orderKey, scopes: new Map(), items: 0, itemBytes: 0 }
      this.#resources.set(resource, parent)
    }
    let group = parent.scopes.get(scope)
    if (group === undefined) {
      const header = scopeBytes(scope)
      const schemaUrl = scopeSchemaUrlBytes(scope)
      group = { resource, scope, parent, header, schemaUrl, items: this.#writer() }
      parent.scopes.set(scope, group)
    }
    return group
  }

  #writer(): Writer {
    const writer = this.#spare.pop()
    if (writer === undefined) return new Writer()
    this.#spareBytes -= writer.capacity
    this.#leastSpare = Math.min(this.#leastSpare, this.#spare.length)
    return writer
  }

  #concatenate(part: number, parts: number): Batch | undefined {
    let size = this.#encoding.dictionary?.bytes ?? 0
    let items = 0
    let orderKeys = 0
    for (const resource of this.#resources.values()) {
      if (resource.itemBytes === 0 || resource.orderKey % parts !== part) continue
      size += varintRoom + resourceSize(resource)
      items += resource.items
      orderKeys |= 1 << resource.orderKey
    }
    if (items === 0) return undefined
    const out = this.#requestWriter(size)
    for (const resource of this.#resources.values()) {
      if (resource.itemBytes === 0 || resource.orderKey % parts !== part) continue
      out.header(resourceField, resourceSize(resource))
      out.raw(resource.header)
      for (const group of resource.scopes.values()) {
        if (group.items.length === 0) continue
        out.header(scopeField, scopeSize(group))
        out.raw(group.header)
        out.raw(group.items.written())
        out.raw(group.schemaUrl)
      }
      out.raw(schemaUrlBytes)
    }
    this.#encoding.dictionary?.write(out)
    const batch = plainBatch(this.#encoding.signal, items, out.written(), orderKeys >>> 0)
    const isSpare = size >= leastSpareRequest && out.capacity <= mostSpareRequest
    return isSpare ? { ...batch, free: () => this.#spareAgain(out) } : batch
  }

  /**
   * Buffer for a request. The size of a large one is rounded up, so that the next request of about that size can reuse
   * it. It is never much larger than the request, which may be queued as it is.
   */
  #requestWriter(size: number): Writer {
    if (size < leastSpareRequest) return new Writer(size)
    const spare = this.#spareRequest
    if (spare === undefined || spare.capacity < size || spare.capacity > 2 * size)
      return new Writer(Math.ceil(size / requestStep) * requestStep)
    this.#spareRequest = undefined
    this.#spareRequestRested = false
    return spare
  }

  #spareAgain(out: Writer): void {
    out.clear()
    this.#spareRequest = out
    this.#spareRequestRested = false
  }

  #reset(): void {
    for (const resource of this.#resources.values()) {
      for (const { items } of resource.scopes.values()) {
        if (this.#spareBytes + items.capacity > this.#keepBytes) continue
        items.clear()
        this.#spare.push(items)
        this.#spareBytes += items.capacity
      }
    }
    this.#resources.clear()
    this.#encoding.dictionary?.clear()
    this.#current = undefined
    this.#itemCount = 0
    this.#groupBytes = 0
  }
}

function scopeSize(group: ScopeGroup): number {
  return group.header.length + group.items.length + group.schemaUrl.length
}

function resourceSize(resource: ResourceGroup): number {
  let size = resource.header.length + schemaUrlBytes.length
  for (const group of resource.scopes.values()) {
    if (group.items.length === 0) continue
    const scope = scopeSize(group)
    size += 1 + varintSize(scope) + scope
  }
  return size
}
