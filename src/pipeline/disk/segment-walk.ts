import type { Files } from './log.ts'
import type { LogBooks, Segment } from './log-books.ts'
import type { RecordHead } from './record-format.ts'
import { SegmentReader } from './segment-reader.ts'

/** Reads the records of a segment's range in order, and writes off missing ones. */
export class SegmentWalk {
  readonly segment: Segment
  readonly reader: SegmentReader
  readonly #books: LogBooks
  readonly #counted: boolean
  #seq: number
  #items: number | undefined
  /** Offset of the record returned by `next`. */
  offset = 0

  /** `counted`: whether the items of the segment are already in the accounts, so that missing ones must be removed. */
  constructor(books: LogBooks, segment: Segment, files: Files, kind: number, counted = true) {
    this.#books = books
    this.#counted = counted
    this.segment = segment
    this.reader = new SegmentReader({ files, path: segment.path, kind, ascending: true })
    this.#seq = segment.first - 1
    this.#items = segment.itemsBefore
  }

  /** Number reached so far. */
  get seq(): number {
    return this.#seq
  }

  /** Throws the error of the system call. */
  next(): RecordHead | undefined {
    const books = this.#books
    const index = books.indexOf(this.segment.first)
    const end = books.endOf(index)
    let skippedBytes = 0
    for (;;) {
      const found = this.reader.next(this.segment.size, end)
      const record = found?.record
      skippedBytes += found?.skippedBytes ?? 0
      // Records of an abandoned segment outside its range are also in the next one.
      if (!found || !record || record.seq > end) {
        this.#pass(end, books.itemsBeforeEndOf(index), skippedBytes)
        return undefined
      }
      if (record.seq <= this.#seq) continue // a copy of another segment under this name
      this.#pass(record.seq - 1, record.itemsBefore, skippedBytes)
      this.#seq = record.seq
      this.#items = record.itemsBefore + record.items
      this.offset = found.offset
      return record
    }
  }

  close(): void {
    this.reader.close()
  }

  /** Writes off all numbers up to `to`, which have no readable record. */
  #pass(to: number, itemsBefore: number, skippedBytes: number): void {
    const count = to - this.#seq
    if (count > 0) {
      const items = this.#items === undefined ? 0 : Math.max(0, itemsBefore - this.#items)
      const missing = this.#books.settled.missing(this.#seq + 1, to)
      if (this.#counted && missing > 0 && missing < count) this.#passMixed(skippedBytes)
      else this.#books.lose(this.#counted ? this.segment : undefined, this.#seq + 1, to, items, skippedBytes)
    }
    this.#seq = Math.max(this.#seq, to)
    this.#items = itemsBefore
  }

  /**
   * Some missing numbers are settled, and their items are already out of the accounts: the lost items are those that
   * the readable records leave of the segment's items. All its missing numbers are written off at once.
   */
  #passMixed(skippedBytes: number): void {
    const books = this.#books
    const { segment, reader } = this
    const end = books.endOf(books.indexOf(segment.first))
    const missing: [from: number, to: number][] = []
    let lost = segment.items
    let seq = segment.first - 1
    const whole = reader.fromStart()
    try {
      for (let found = whole.next(segment.size, end); found?.record; found = whole.next(segment.size, end)) {
        const { record } = found
        if (record.seq > end) break
        if (record.seq <= seq) continue
        if (record.seq > seq + 1) missing.push([seq + 1, record.seq - 1])
        if (!books.settled.has(record.seq)) lost -= record.items
        seq = record.seq
      }
    } finally {
      whole.close()
    }
    if (seq < end) missing.push([seq + 1, end])
    books.loseRanges(segment, missing, lost, skippedBytes)
  }
}
