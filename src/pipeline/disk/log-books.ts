import { type Cursor, mostHoles } from './cursor.ts'
import type { Damage } from './log.ts'
import { SettledRanges } from './settled-ranges.ts'

/** A segment, as the log knows it. The numbers from `first` to the next segment's are its range. */
export interface Segment {
  readonly first: number
  readonly path: string
  readonly createdMs: number
  /** All items that were appended before it; undefined where neither its head nor a record tells. */
  readonly itemsBefore: number | undefined
  /** Bytes of the file that records may be in. */
  size: number
  /** Not settled yet. */
  items: number
}

/** A range of numbers that belongs to a file which is left alone, both included. */
export interface Reserved {
  readonly from: number
  readonly to: number
  readonly bytes: number
}

/** What is in a log: its segments, what of them is settled, and what was lost. No files here. */
export class LogBooks {
  /** Ascending. */
  readonly segments: Segment[] = []
  readonly settled = new SettledRanges()
  /** Settled here, but not in the cursor: whoever can read them will. */
  readonly reserved: Reserved[] = []
  /** Items not settled, as in `RecordLog`. */
  items = 0
  lastSeq = 0
  /** Items ever appended. */
  total = 0
  torn = 0
  /** Called when numbers turned out to have no record that can be read. */
  lost: () => void = () => {}
  #damagedRecords = 0
  #damagedItems = 0
  #skippedBytes = 0
  #untoldItems = 0

  /** Not settled. */
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

  /** The index of the segment whose range holds a number; -1 below the first. */
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

  /** The last number of a segment's range, as far as numbers were given out. */
  endOf(index: number): number {
    const next = this.segments[index + 1]
    return next ? next.first - 1 : this.lastSeq
  }

  /** All items that were appended before the end of a segment's range. */
  itemsBeforeEndOf(index: number): number {
    for (let after = index + 1; after < this.segments.length; after++) {
      const items = this.segments[after]?.itemsBefore
      if (items !== undefined) return items
    }
    return this.total
  }

  /** Whether nothing in a segment is needed any longer. */
  isSettled(index: number): boolean {
    return this.settled.covers(this.segments[index]?.first ?? 0, this.endOf(index))
  }

  /** What is settled, without the numbers of files that are left alone. */
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

  /** Puts a segment to its place; one that begins with the same number goes. */
  insert(segment: Segment): void {
    const index = this.indexOf(segment.first)
    const replaced = this.segments[index]?.first === segment.first
    this.segments.splice(replaced ? index : index + 1, replaced ? 1 : 0, segment)
  }

  /** False when it was settled before, or never was. */
  settle(seq: number, items: number): boolean {
    if (seq > this.lastSeq || this.settled.has(seq)) return false
    this.settled.add(seq, seq)
    this.#subtract(this.segments[this.indexOf(seq)], items)
    return true
  }

  /**
   * Numbers without a record that can be read, after a segment was read over them. Those that no record was missing
   * for were never used.
   */
  lose(segment: Segment | undefined, from: number, to: number, items: number, skippedBytes: number): void {
    this.loseRanges(segment, [[from, to]], items, skippedBytes)
  }

  /** The same for several ranges, of which it is only known what they hold together. */
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

  /** Takes a segment out, and gives the items that nobody will get. */
  drop(index: number): number {
    const segment = this.segments[index]
    if (!segment) return 0
    const { items } = segment
    this.settled.add(segment.first, this.endOf(index))
    this.segments.splice(index, 1)
    this.items -= items
    return items
  }

  /** Takes a settled segment out. Items that were left of it by the totals had no record that could be read. */
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
