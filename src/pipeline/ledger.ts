import type { SendFault } from '../model/batch.ts'
import type { DropReasonName } from '../model/drop-reasons.ts'
import type { Signal } from '../model/signal.ts'
import type { SignalTypeName } from '../model/signal-types.ts'

/** Endpoints that are counted by name; beyond them the one that was idle longest becomes part of `other`. */
const maxEndpoints = 16
const other = 'other'

/** Of what is collected that which is of one type; `collected` has it too. */
export interface TypeCount {
  items: number
}

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
  readonly #types = new Map<string, TypeCount>()
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
  drop(reason: DropReasonName | SendFault, items: number): void {
    this.#lose(reason, items)
  }

  /** Counts items that are lost before they reach the pipeline. `type`: what they are told of, where that is known. */
  miss(reason: string, items: number, type?: SignalTypeName): void {
    this.collected += items
    if (type !== undefined) this.typed(type).items += items
    this.#lose(reason, items)
  }

  /** What is collected of a type, to be counted by whoever knows it. There are few, and none is forgotten. */
  typed(type: string): TypeCount {
    let count = this.#types.get(type)
    if (count === undefined) {
      count = { items: 0 }
      this.#types.set(type, count)
    }
    return count
  }

  /** `collected` by type; `unknown` is what nobody has told the type of. */
  eachType(emit: (type: string, items: number) => void): void {
    let unknown = this.collected
    for (const [type, { items }] of this.#types) {
      unknown -= items
      if (items > 0) emit(type, items)
    }
    if (unknown > 0) emit('unknown', unknown)
  }

  get droppedTotal(): number {
    return this.#droppedTotal
  }

  #lose(reason: string, items: number): void {
    if (items === 0) return
    this.#droppedTotal += items
    this.dropped.set(reason, (this.dropped.get(reason) ?? 0) + items)
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
