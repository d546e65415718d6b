import { SpanRecord } from './span-record.ts'
import type { SpanRing } from './span-ring.ts'

/** Approximate number of the newest records to read in each ring: 10 ms of work. */
export const mostRecords = 32_768
/** Maximum number of records in a page of the ring, which is always read as a whole. */
const mostOfPage = 1024
/** Odd and random: clients that choose trace IDs cannot force collisions. */
const factors = new Uint32Array(4).map(() => (Math.random() * 2 ** 32) | 1)

/** The newest records of some rings grouped by trace, for the duration of one query. Traces and records are numbers. */
export class TraceTable {
  /** Number of traces. */
  traces = 0
  spans = 0
  /** By record: its ring, its offset there, and the next record of its trace; -1: none. */
  readonly ring: Uint8Array
  readonly at: Int32Array
  readonly next: Int32Array
  /** By trace: one of its records, and the totals. */
  readonly first: Int32Array
  readonly count: Uint32Array
  readonly errors: Uint32Array
  readonly startUs: Float64Array
  readonly endUs: Float64Array
  readonly #rings: readonly SpanRing[]
  readonly #slots: Int32Array
  readonly #shift: number
  readonly #record = new SpanRecord()
  readonly #other = new SpanRecord()

  /** Ignores spans that ended before `sinceUs`. */
  constructor(rings: readonly SpanRing[], sinceUs: number) {
    let most = 0
    for (const ring of rings) most += Math.min(ring.records, mostRecords + mostOfPage)
    this.#rings = rings
    this.ring = new Uint8Array(most)
    this.at = new Int32Array(most)
    this.next = new Int32Array(most)
    this.first = new Int32Array(most)
    this.count = new Uint32Array(most)
    this.errors = new Uint32Array(most)
    this.startUs = new Float64Array(most)
    this.endUs = new Float64Array(most)
    const bits = Math.max(1, Math.ceil(Math.log2(2 * most + 1)))
    this.#slots = new Int32Array(2 ** bits).fill(-1)
    this.#shift = 32 - bits
    for (const [number, ring] of rings.entries())
      ring.each(at => {
        if (this.#record.of(ring, at).endUs >= sinceUs) this.#enter(number, at)
      }, mostRecords)
  }

  #enter(ring: number, at: number): void {
    const record = this.#record
    const { startUs, endUs } = record
    const i = this.spans++
    this.ring[i] = ring
    this.at[i] = at
    const slot = this.#slotOf(record)
    let trace = this.#slots[slot]!
    if (trace < 0) {
      trace = this.#slots[slot] = this.traces++
      this.first[trace] = -1
      this.startUs[trace] = startUs
      this.endUs[trace] = endUs
    }
    this.next[i] = this.first[trace]!
    this.first[trace] = i
    this.count[trace]!++
    if (record.failed) this.errors[trace]!++
    if (startUs < this.startUs[trace]!) this.startUs[trace] = startUs
    if (endUs > this.endUs[trace]!) this.endUs[trace] = endUs
  }

  /** The slot of the record's trace, or the free one for it. */
  #slotOf(record: SpanRecord): number {
    const mask = this.#slots.length - 1
    const hash =
      Math.imul(record.trace(0), factors[0]!) +
      Math.imul(record.trace(1), factors[1]!) +
      Math.imul(record.trace(2), factors[2]!) +
      Math.imul(record.trace(3), factors[3]!)
    for (let slot = (hash >>> this.#shift) & mask; ; slot = (slot + 1) & mask) {
      const trace = this.#slots[slot]!
      if (trace < 0 || this.#isOf(record, trace)) return slot
    }
  }

  #isOf(record: SpanRecord, trace: number): boolean {
    const i = this.first[trace]!
    const other = this.#other.of(this.#rings[this.ring[i]!]!, this.at[i]!)
    return (
      record.trace(3) === other.trace(3) &&
      record.trace(2) === other.trace(2) &&
      record.trace(1) === other.trace(1) &&
      record.trace(0) === other.trace(0)
    )
  }
}
