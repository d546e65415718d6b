import type { Batch } from '../model/batch.ts'

export interface QueueLimits {
  /** Bound for all batches together, those being sent included. */
  readonly limitBytes: number
  /** Batches older than this are dropped; 0: never. */
  readonly maxAgeMs: number
}

/** A batch in the queue. Times are milliseconds of `performance.now()`, which no clock change touches. */
export interface Entry {
  readonly batch: Batch
  /** Position in the order of arrival. */
  readonly number: number
  readonly queuedAt: number
  /** 0 before the first attempt. */
  firstTriedAt: number
  attempts: number
}

/** What an entry costs beside its body, so that a flood of tiny batches is bounded too. */
const entryBytes = 256

/**
 * First in, first out, bounded by bytes. When it is full the oldest batch goes that is not being sent. A batch
 * leaves by `settle`, or is dropped with a reason.
 */
export class Queue {
  #limits: QueueLimits
  readonly #dropped: (reason: string, items: number) => void
  readonly #sending = new Set<Entry>()
  /** Waiting entries from `#head` on, in order of their numbers. */
  #waiting: Entry[] = []
  #head = 0
  #next = 1
  #items = 0
  #bytes = 0
  #seenItems = 0
  #seenBytes = 0

  constructor(limits: QueueLimits, dropped: (reason: string, items: number) => void) {
    this.#limits = limits
    this.#dropped = dropped
  }

  /** Waiting and being sent. */
  get items(): number {
    return this.#items
  }

  get bytes(): number {
    return this.#bytes
  }

  get capacityBytes(): number {
    return this.#limits.limitBytes
  }

  /** Items that fit at the mean size of those seen so far; 0 before the first. */
  get capacityItems(): number {
    if (this.#seenItems === 0) return 0
    return Math.floor((this.#limits.limitBytes * this.#seenItems) / this.#seenBytes)
  }

  /** How long the oldest batch has been here, in milliseconds; 0 when the queue is empty. */
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

  /** The number of the last batch that came. */
  get lastNumber(): number {
    return this.#next - 1
  }

  /** The least number that is still here; infinite when the queue is empty. */
  get oldestNumber(): number {
    let oldest = this.#waiting[this.#head]?.number ?? Number.POSITIVE_INFINITY
    for (const entry of this.#sending) oldest = Math.min(oldest, entry.number)
    return oldest
  }

  /** Items of the batches up to a number that are still here. */
  itemsUpTo(number: number): number {
    let items = 0
    for (const entry of this.#sending) if (entry.number <= number) items += entry.batch.items
    for (let at = this.#head; at < this.#waiting.length; at++) {
      const entry = this.#waiting[at]!
      if (entry.number > number) break
      items += entry.batch.items
    }
    return items
  }

  /** Sets other bounds. What no longer fits is dropped at once, the oldest first. */
  limit(limits: QueueLimits): void {
    this.#limits = limits
    this.#expire()
    this.#makeRoom(0)
  }

  push(batch: Batch): void {
    const cost = costOf(batch)
    this.#seenItems += batch.items
    this.#seenBytes += cost
    this.#expire()
    // For what can never fit nothing else has to go.
    if (cost <= this.#limits.limitBytes) this.#makeRoom(cost)
    const number = this.#next++
    if (this.#bytes + cost > this.#limits.limitBytes) {
      this.#dropped('queue_full', batch.items)
      return
    }
    this.#items += batch.items
    this.#bytes += cost
    this.#waiting.push({ batch, number, queuedAt: performance.now(), firstTriedAt: 0, attempts: 0 })
  }

  /** The oldest batch that waits, which then counts as being sent. */
  take(): Entry | undefined {
    this.#expire()
    const entry = this.#shift()
    if (!entry) return undefined
    this.#sending.add(entry)
    entry.firstTriedAt ||= performance.now()
    entry.attempts++
    return entry
  }

  /** Puts a batch that was not delivered back to its place in the order. */
  putBack(entry: Entry): void {
    if (!this.#sending.delete(entry)) return
    let at = this.#head
    while (at < this.#waiting.length && this.#waiting[at]!.number < entry.number) at++
    this.#waiting.splice(at, 0, entry)
    this.#makeRoom(0) // the bound may have become smaller in the meantime
  }

  /** Takes a batch that was being sent out of the books. False when it was given up before. */
  settle(entry: Entry): boolean {
    if (!this.#sending.delete(entry)) return false
    this.#leave(entry)
    return true
  }

  /** Drops all there is, what is being sent included. */
  clear(reason: string): void {
    const items = this.#items
    this.#waiting = []
    this.#head = 0
    this.#sending.clear()
    this.#items = 0
    this.#bytes = 0
    this.#dropped(reason, items)
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
      this.#dropped('expired', oldest.batch.items)
    }
  }

  /** Drops the oldest that wait until so many bytes more would fit. */
  #makeRoom(bytes: number): void {
    while (this.#bytes + bytes > this.#limits.limitBytes) {
      const oldest = this.#shift()
      if (!oldest) return
      this.#leave(oldest)
      this.#dropped('queue_full', oldest.batch.items)
    }
  }

  #leave(entry: Entry): void {
    this.#items -= entry.batch.items
    this.#bytes -= costOf(entry.batch)
  }

  #shift(): Entry | undefined {
    const entry = this.#waiting[this.#head]
    if (!entry) return undefined
    this.#head++
    // Array.shift moves all the rest each time; so the array is cut when half of it is empty.
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
