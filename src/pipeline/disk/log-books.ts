import { type Cursor, mostHoles } from './cursor.ts'
import type { Damage } from './log.ts'
import { SettledRanges } from './settled-ranges.ts'

/** A segment. Its range is the numbers from `first` up to the next segment. */
export interface Segment {
  readonly first: number
  readonly path: string
  readonly createdMs: number
  /** Total of items appended before it; undefined if neither its header nor a record has it. */
  readonly itemsBefore: number | undefined
  /** Bytes of the file that may contain records. */
  size: number
  /** Unsettled items. */
  items: number
}

/** Range of numbers, both included, of a file that is left unchanged. */
export interface Reserved {
  readonly from: number
  readonly to: number
  readonly bytes: number
}

/** Accounts of a log: segments, settled and lost records. Without file access. */
export class LogBooks {
  /** Ascending. */
  readonly segments: Segment[] = []
  readonly settled = new SettledRanges()
  /** Ranges settled here but not in the cursor, for a version that can read them. */
  readonly reserved: Reserved[] = []
  /** Unsettled items, see `RecordLog`. */
  items = 0
  lastSeq = 0
  /** Total of items appended. */
  total = 0
  torn = 0
  /** Called when numbers have no readable record. */
  lost: () => void = () => {}
  #damagedRecords = 0
  #damagedItems = 0
  #skippedBytes = 0
  #untoldItems = 0

  /** Unsettled records. */
  get records(): number {
    return this.lastSeq - this.settled.acked - this.settled.inHoles
  }

  get oldestSeq(): number {
    const oldest = this.settled.acked + 1
    return oldest <= this.lastSeq ? oldest : Number.POSITIVE_INFINITY
  }

  get damage(): Damage {
    return {
      records: this.#damagedRecords,
      items: this.#damagedItems,
      skippedBytes: this.#skippedBytes,
      torn: this.torn,
    }
  }

  takeDamagedItems(): number {
    const items = this.#untoldItems
    this.#untoldItems = 0
    return items
  }

  /** Index of the segment whose range contains a number; -1 below the first. */
  indexOf(seq: number): number {
    let low = 0
    let high = this.segments.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.segments[middle] as Segment).first <= seq) low = middle + 1
      else high = middle
    }
    return low - 1
  }

  /** Last assigned number of a segment's range. */
  endOf(index: number): number {
    const next = this.segments[index + 1]
    return next ? next.first - 1 : this.lastSeq
  }

  /** Total of items appended before the end of a segment's range. */
  itemsBeforeEndOf(index: number): number {
    for (let after = index + 1; after < this.segments.length; after++) {
      const items = this.segments[after]?.itemsBefore
      if (items !== undefined) return items
    }
    return this.total
  }

  /** Whether a segment is fully settled. */
  isSettled(index: number): boolean {
    return this.settled.covers(this.segments[index]?.first ?? 0, this.endOf(index))
  }

  /** Settled numbers, without those of files that are left unchanged. */
  cursor(): Cursor {
    let ranges: (readonly [from: number, to: number])[] = [[1, this.settled.acked], ...this.settled.holes()]
    for (const { from, to } of this.reserved)
      ranges = ranges.flatMap(([low, high]): (readonly [number, number])[] => [
        [low, Math.min(high, from - 1)],
        [Math.max(low, to + 1), high],
      ])
    ranges = ranges.filter(([low, high]) => low <= high)
    const acked = ranges[0]?.[0] === 1 ? ranges[0][1] : 0
    const holes = acked > 0 ? ranges.slice(1) : ranges
    return { acked, holes: holes.slice(0, mostHoles) }
  }

  /** Inserts a segment; replaces one with the same first number. */
  insert(segment: Segment): void {
    const index = this.indexOf(segment.first)
    const replaced = this.segments[index]?.first === segment.first
    this.segments.splice(replaced ? index : index + 1, replaced ? 1 : 0, segment)
  }

  /** Settles a record. False if it was settled before, or never existed. */
  settle(seq: number, items: number): boolean {
    if (seq > this.lastSeq || this.settled.has(seq)) return false
    this.settled.add(seq, seq)
    this.#subtract(this.segments[this.indexOf(seq)], items)
    return true
  }

  /**
   * Writes off numbers without a readable record, after a segment was read past them. Numbers without missing items
   * were never used.
   */
  lose(segment: Segment | undefined, from: number, to: number, items: number, skippedBytes: number): void {
    this.loseRanges(segment, [[from, to]], items, skippedBytes)
  }

  /** The same for several ranges with a known total of items. */
  loseRanges(
    segment: Segment | undefined,
    ranges: readonly (readonly [from: number, to: number])[],
    items: number,
    skippedBytes: number,
  ): void {
    let missing = 0
    for (const [from, to] of ranges) {
      missing += this.settled.missing(from, to)
      this.settled.add(from, to)
    }
    if (missing === 0) return
    this.lost()
    this.#skippedBytes += skippedBytes
    if (items <= 0) return
    this.#damagedRecords += missing
    this.#damagedItems += items
    this.#untoldItems += items
    this.#subtract(segment, items)
  }

  /** Removes a segment, and returns its lost items. */
  drop(index: number): number {
    const segment = this.segments[index]
    if (!segment) return 0
    const { items } = segment
    this.settled.add(segment.first, this.endOf(index))
    this.segments.splice(index, 1)
    this.items -= items
    return items
  }

  /** Removes a settled segment. Items left by the totals had no readable record. */
  retire(index: number): void {
    const items = this.drop(index)
    this.#damagedItems += items
    this.#untoldItems += items
  }

  #subtract(segment: Segment | undefined, items: number): void {
    const known = Math.min(items, segment?.items ?? 0)
    if (segment) segment.items -= known
    this.items -= known
  }
}
