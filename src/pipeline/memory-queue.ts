import { type Batch, plainBatch } from '../foundation/model/batch.ts'
import type { DropReasonName } from '../foundation/model/drop-reasons.ts'
import type { Signal } from '../foundation/model/signal.ts'
import type { BatchQueue, Dropped, Entry } from './batch-queue.ts'
import { ItemSize } from './item-size.ts'

export interface QueueLimits {
  /** Limit for all batches together, those in flight included, in bytes. */
  readonly limitBytes: number
  /** Maximum age of a batch, in milliseconds; 0 for no limit. */
  readonly maxAgeMs: number
}

/** Memory of an entry without its body, in bytes, so that a flood of tiny batches is limited too. */
const entryBytes = 256
/** Maximum waiting batches checked for one with free order keys. */
const maxLooks = 64

/** Marks the slot of a removed entry. */
const gone: Entry = {
  batch: plainBatch('traces', 0, new Uint8Array(0), 0),
  number: 0,
  queuedAt: 0,
  firstTriedAt: 0,
  attempts: 0,
  left: 0,
}

/** A queue in memory, limited in bytes. When it is full, the oldest waiting batch is dropped. */
export class MemoryQueue implements BatchQueue {
  readonly durable = false
  readonly recoveredItems = 0

  #limits: QueueLimits
  readonly #dropped: Dropped
  readonly #sending = new Set<Entry>()
  /** Waiting entries from `#head` on, in order of their numbers. */
  #waiting: Entry[] = []
  #head = 0
  #number = 1
  #items = 0
  #bytes = 0
  readonly #itemSize: ItemSize
  /** First batch dropped at shutdown. */
  #lostFrom = Number.POSITIVE_INFINITY
  /** Order keys of batches in flight. */
  #orderKeys = 0

  constructor(signal: Signal, limits: QueueLimits, dropped: Dropped) {
    this.#itemSize = new ItemSize(signal)
    this.#limits = limits
    this.#dropped = dropped
  }

  get items(): number {
    return this.#items
  }

  get bytes(): number {
    return this.#bytes
  }

  get capacityBytes(): number {
    return this.#limits.limitBytes
  }

  get capacityItems(): number {
    return this.#itemSize.fitting(this.#limits.limitBytes)
  }

  get oldestMs(): number {
    let oldest = this.#waiting[this.#head]?.queuedAt ?? Number.POSITIVE_INFINITY
    for (const entry of this.#sending) oldest = Math.min(oldest, entry.queuedAt)
    return oldest === Number.POSITIVE_INFINITY ? 0 : performance.now() - oldest
  }

  get sending(): number {
    return this.#sending.size
  }

  get waiting(): number {
    return this.#waiting.length - this.#head
  }

  get lastNumber(): number {
    return this.#number - 1
  }

  get oldestNumber(): number {
    let oldest = this.#waiting[this.#head]?.number ?? Number.POSITIVE_INFINITY
    for (const entry of this.#sending) oldest = Math.min(oldest, entry.number)
    return oldest
  }

  get securedNumber(): number {
    return Math.min(this.oldestNumber, this.#lostFrom) - 1
  }

  get fill(): number {
    return Math.min(1, this.#bytes / this.#limits.limitBytes)
  }

  get pushedItems(): number {
    return this.#itemSize.items
  }

  /** Sets the limits. Batches over them are dropped immediately, the oldest first. */
  limit(limits: QueueLimits): void {
    this.#limits = limits
    this.#expire()
    this.#makeRoom(0)
  }

  push(batch: Batch): void {
    const cost = costOf(batch)
    this.#itemSize.add(batch.items, cost)
    this.#expire()
    // A batch that can never fit must not evict others.
    if (cost <= this.#limits.limitBytes) this.#makeRoom(cost)
    const number = this.#number++
    if (this.#bytes + cost > this.#limits.limitBytes) {
      this.#dropped('queue_full', batch.items)
      return
    }
    this.#items += batch.items
    this.#bytes += cost
    const { items: left } = batch
    this.#waiting.push({ batch, number, queuedAt: performance.now(), firstTriedAt: 0, attempts: 0, left })
  }

  take(): Entry | undefined {
    this.#expire()
    const entry = this.#next()
    if (!entry) return undefined
    this.#sending.add(entry)
    this.#orderKeys |= entry.batch.orderKeys
    entry.firstTriedAt ||= performance.now()
    entry.attempts++
    return entry
  }

  putBack(entry: Entry): void {
    if (!this.#end(entry)) return
    let at = this.#head
    while (at < this.#waiting.length && this.#waiting[at]!.number < entry.number) at++
    this.#waiting.splice(at, 0, entry)
    this.#makeRoom(0) // the limit may have been lowered during the push
  }

  settlePart(entry: Entry, items: number): boolean {
    if (!this.#sending.has(entry)) return false
    entry.left -= items
    this.#items -= items
    return true
  }

  settle(entry: Entry): boolean {
    if (!this.#end(entry)) return false
    this.#leave(entry)
    return true
  }

  /** No dead letters in memory. */
  bury(): void {}

  clear(reason: DropReasonName): void {
    const items = this.#items
    this.#waiting = []
    this.#head = 0
    this.#sending.clear()
    this.#orderKeys = 0
    this.#items = 0
    this.#bytes = 0
    this.#dropped(reason, items)
  }

  async close(): Promise<number> {
    this.#lostFrom = Math.min(this.#lostFrom, this.oldestNumber)
    this.clear('shutdown')
    return 0
  }

  /** Removes the oldest batch with free order keys. */
  #next(): Entry | undefined {
    const end = Math.min(this.#waiting.length, this.#head + maxLooks)
    let taken = this.#orderKeys
    for (let at = this.#head; at < end; at++) {
      const entry = this.#waiting[at]!
      const { orderKeys } = entry.batch
      if ((orderKeys & taken) === 0) {
        if (at === this.#head) return this.#shift()
        this.#waiting.splice(at, 1)
        return entry
      }
      taken |= orderKeys
    }
    return undefined
  }

  /** Marks a batch as no longer in flight; false if it was not. */
  #end(entry: Entry): boolean {
    if (!this.#sending.delete(entry)) return false
    this.#orderKeys = 0
    for (const { batch } of this.#sending) this.#orderKeys |= batch.orderKeys
    return true
  }

  #expire(): void {
    const { maxAgeMs } = this.#limits
    if (maxAgeMs === 0) return
    const born = performance.now() - maxAgeMs
    for (;;) {
      const oldest = this.#waiting[this.#head]
      if (!oldest || oldest.queuedAt >= born) return
      this.#shift()
      this.#leave(oldest)
      this.#dropped('expired', oldest.left)
    }
  }

  get memory(): number {
    return this.#bytes
  }

  shed(bytes: number): number {
    const before = this.#bytes
    while (before - this.#bytes < bytes) {
      const oldest = this.#shift()
      if (!oldest) break
      this.#leave(oldest)
      this.#dropped('memory_limit', oldest.left)
    }
    return before - this.#bytes
  }

  /** Drops the oldest waiting batches until there is room for `bytes`. */
  #makeRoom(bytes: number): void {
    while (this.#bytes + bytes > this.#limits.limitBytes) {
      const oldest = this.#shift()
      if (!oldest) return
      this.#leave(oldest)
      this.#dropped('queue_full', oldest.left)
    }
  }

  #leave(entry: Entry): void {
    this.#items -= entry.left
    this.#bytes -= costOf(entry.batch)
  }

  #shift(): Entry | undefined {
    const entry = this.#waiting[this.#head]
    if (!entry) return undefined
    // Lets the garbage collector free the removed entry.
    this.#waiting[this.#head++] = gone
    // Array.shift would move the rest each time; the array is cut when half of it is empty.
    if (this.#head * 2 > this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#head)
      this.#head = 0
    }
    return entry
  }
}

function costOf(batch: Batch): number {
  return batch.body.byteLength + entryBytes
}
