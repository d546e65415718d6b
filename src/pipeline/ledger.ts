import type { SendFault } from '../foundation/model/batch.ts'
import type { DropReasonName } from '../foundation/model/drop-reasons.ts'
import type { Signal } from '../foundation/model/signal.ts'
import type { SignalTypeName } from '../foundation/model/signal-types.ts'

/** Maximum endpoints counted by name; above it, the one idle longest is added to `other`. */
const maxEndpoints = 16
const other = 'other'

/** Collected items of one type; also included in `collected`. */
export interface TypeCount {
  items: number
}

/**
 * Balance of one signal, in items. At any time `collected` + `recovered` is `exported` + `rejected` + dropped +
 * queued: an item is counted once at intake, and leaves by exactly one of the other columns.
 */
export class Account {
  /** Items received since the start. */
  collected = 0
  /** Items found in the disk queue, left by an earlier process. */
  recovered = 0
  /** Acknowledged by the receiver. */
  exported = 0
  /** Rejected by the receiver in accepted batches (partial success). */
  rejected = 0
  /** Dropped items by reason. */
  readonly dropped = new Map<DropReasonName | SendFault, number>()
  /** `exported` by endpoint, the last used one at the end. */
  readonly exportedBy = new Map<string, number>()
  readonly #types = new Map<string, TypeCount>()
  #droppedTotal = 0

  /** Counts items acknowledged by an endpoint; with 0 items only lists the endpoint. */
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

  /** Counts collected items that are lost. */
  drop(reason: DropReasonName | SendFault, items: number): void {
    this.#countDropped(reason, items)
  }

  /** Counts items lost before they enter a batch: they are collected and dropped. `type`: their signal type, if known. */
  dropAtIntake(reason: DropReasonName, items: number, type?: SignalTypeName): void {
    this.collected += items
    if (type !== undefined) this.typed(type).items += items
    this.#countDropped(reason, items)
  }

  /** Counter of a type, for callers that know the type. There are few types, and all are kept. */
  typed(type: string): TypeCount {
    let count = this.#types.get(type)
    if (count === undefined) {
      count = { items: 0 }
      this.#types.set(type, count)
    }
    return count
  }

  /** `collected` by type; `unknown` for items without a type. */
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

  #countDropped(reason: DropReasonName | SendFault, items: number): void {
    if (items === 0) return
    this.#droppedTotal += items
    this.dropped.set(reason, (this.dropped.get(reason) ?? 0) + items)
  }

  #add(endpoint: string, items: number): void {
    const total = (this.exportedBy.get(endpoint) ?? 0) + items
    this.exportedBy.delete(endpoint)
    this.exportedBy.set(endpoint, total)
  }

  /** Items waiting or in flight, from the other columns. */
  get queued(): number {
    return this.collected + this.recovered - this.exported - this.rejected - this.#droppedTotal
  }
}

export type Ledger = Readonly<Record<Signal, Account>>

export function openLedger(): Ledger {
  return { traces: new Account(), metrics: new Account(), logs: new Account(), profiles: new Account() }
}
