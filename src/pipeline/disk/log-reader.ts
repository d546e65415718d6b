import type { Files, Stored } from './log.ts'
import type { LogBooks, Segment } from './log-books.ts'
import { RecentTimes } from './recent-times.ts'
import { recordHeadBytes } from './record-format.ts'
import { SegmentReader } from './segment-reader.ts'
import { SegmentWalk } from './segment-walk.ts'

export interface LogReaderOptions {
  readonly books: LogBooks
  readonly files: Files
  readonly kind: number
  /** Called when the file of a segment is gone; its records must be written off. */
  readonly gone: (segment: Segment) => void
}

/** Read attempts of a record before it counts as damaged. */
const mostUnreadable = 3

/**
 * Reads the records of a log in order. Keeps its position in one open segment, so that the next record costs two reads.
 */
export class LogReader {
  readonly #options: LogReaderOptions
  readonly #books: LogBooks
  readonly #times = new RecentTimes()
  #walk: SegmentWalk | undefined
  #unreadableSeq = 0
  #unreadableTimes = 0

  constructor(options: LogReaderOptions) {
    this.#options = options
    this.#books = options.books
  }

  /** See `RecordLog`. */
  get oldestTimeMs(): number {
    const seq = this.#books.oldestSeq
    if (seq === Number.POSITIVE_INFINITY) return 0
    return this.#times.of(seq) ?? this.#findTime(seq)
  }

  /** Caches the write time of a record, so that it need not be read. */
  noteTime(seq: number, timeMs: number): void {
    this.#times.note(seq, timeMs)
  }

  /** See `RecordLog`. */
  readFrom(seq: number): Stored | undefined {
    const { segments, settled } = this.#books
    for (let target = settled.next(seq); target <= this.#books.lastSeq; target = settled.next(target)) {
      const segment = segments[this.#books.indexOf(target)]
      const stored = segment && this.#readIn(segment, target)
      if (stored) return stored
      // Numbers below the first segment have no records.
      if (!segment) settled.add(target, (segments[0]?.first ?? this.#books.lastSeq + 1) - 1)
    }
    return undefined
  }

  /** Closes the open file, or only that of the given segment. */
  rest(segment = this.#walk?.segment): void {
    if (!this.#walk || this.#walk.segment !== segment) return
    this.#walk.close()
    this.#walk = undefined
  }

  /** First unsettled record of a segment at or after `target`. */
  #readIn(segment: Segment, target: number): Stored | undefined {
    try {
      const walk = this.#walkTo(segment, target)
      for (let head = walk.next(); head; head = walk.next()) {
        if (head.seq < target || this.#books.settled.has(head.seq)) continue
        const { seq, items, plainBytes, orderKeys, encoding, timeMs } = head
        const body = walk.reader.readBody(walk.offset, head)
        walk.reader.tolerant = false
        this.#times.note(seq, timeMs)
        if (body) return { seq, items, plainBytes, orderKeys, encoding, timeMs, body }
        this.#books.lose(segment, seq, seq, items, recordHeadBytes + head.bodyBytes)
      }
    } catch (error) {
      this.#fail(segment, target, error as NodeJS.ErrnoException)
    }
    return undefined
  }

  #fail(segment: Segment, target: number, error: NodeJS.ErrnoException): void {
    this.rest()
    if (error.code === 'ENOENT') {
      this.#options.gone(segment)
      return
    }
    this.#unreadableTimes = this.#unreadableSeq === target ? this.#unreadableTimes + 1 : 1
    this.#unreadableSeq = target
    throw error
  }

  #walkTo(segment: Segment, target: number): SegmentWalk {
    if (this.#walk?.segment === segment && this.#walk.seq < target) return this.#walk
    this.rest()
    const walk = new SegmentWalk(this.#books, segment, this.#options.files, this.#options.kind)
    walk.reader.tolerant = this.#unreadableSeq === target && this.#unreadableTimes >= mostUnreadable
    this.#walk = walk
    return walk
  }

  #findTime(seq: number): number {
    const segment = this.#books.segments[this.#books.indexOf(seq)]
    if (!segment) return 0
    const { files, kind } = this.#options
    let timeMs = segment.createdMs
    try {
      const reader = new SegmentReader({ files, path: segment.path, kind, ascending: true })
      try {
        for (
          let found = reader.next(segment.size, seq);
          found?.record;
          found = reader.next(segment.size, seq)
        ) {
          if (found.record.seq > seq) break
          timeMs = found.record.timeMs
        }
      } finally {
        reader.close()
      }
    } catch {
      // The creation time of the segment is close enough.
    }
    this.#times.note(seq, timeMs)
    return timeMs
  }
}
