import type { Signal } from '../model/signal.ts'

/** Endpoints that are counted by name; beyond them the one that was idle longest becomes part of `other`. */
const maxEndpoints = 16
const other = 'other'

/**
 * The balance of one signal, in items. At every moment `collected` + `recovered` is `exported` + `rejected` + dropped +
 * queued: an item is entered once, when it is taken in, and leaves by exactly one of the other columns.
 */
export class Account {
  /** Taken in since the start. */
  collected = 0
  /** Found in the queue on disk, where a former process had left them. */
  recovered = 0
  /** Acknowledged by the receiver. */
  exported = 0
  /** Refused by the receiver for good, out of batches that it took (partial success). */
  rejected = 0
  /** Lost, by reason. */
  readonly dropped = new Map<string, number>()
  /** `exported` by the endpoint that acknowledged, the one that was used last at the end. */
  readonly exportedBy = new Map<string, number>()
  #droppedTotal = 0

  /** Counts items that an endpoint acknowledged; with 0 it is listed at the least. */
  deliver(endpoint: string, items: number): void {
    this.exported += items
    this.#add(endpoint, items)
    const named = this.exportedBy.size - (this.exportedBy.has(other) ? 1 : 0)
    if (named <= maxEndpoints) return
    for (const [name, total] of this.exportedBy) {
      if (name === other) continue
      this.exportedBy.delete(name)
      this.#add(other, total)
      return
    }
  }

  /** Counts items that were collected and are lost. */
  drop(reason: string, items: number): void {
    if (items === 0) return
    this.#droppedTotal += items
    this.dropped.set(reason, (this.dropped.get(reason) ?? 0) + items)
  }

  /** Counts items that are lost before they reach the pipeline. */
  miss(reason: string, items: number): void {
    this.collected += items
    this.drop(reason, items)
  }

  get droppedTotal(): number {
    return this.#droppedTotal
  }

  #add(endpoint: string, items: number): void {
    const total = (this.exportedBy.get(endpoint) ?? 0) + items
    this.exportedBy.delete(endpoint)
    this.exportedBy.set(endpoint, total)
  }

  /** What the other columns leave: items that wait or are under way. */
  get queued(): number {
    return this.collected + this.recovered - this.exported - this.rejected - this.#droppedTotal
  }
}

export type Ledger = Readonly<Record<Signal, Account>>

export function openLedger(): Ledger {
  return { traces: new Account(), metrics: new Account(), logs: new Account(), profiles: new Account() }
}
