// Recovers the content of a directory when a log is opened. Content never makes this fail: unreadable data is counted
// or left unchanged. Only the ends of a backlog are scanned, so that it takes about the same time for any size.

import { join } from 'node:path'
import { readCursors } from './cursor.ts'
import type { Files } from './log.ts'
import { LogBooks, type Segment } from './log-books.ts'
import {
  firstSeqOf,
  type RecordHead,
  recordHeadBytes,
  type SegmentHead,
  segmentHeadBytes,
  segmentName,
} from './record-format.ts'
import { SegmentReader } from './segment-reader.ts'
import { SegmentWalk } from './segment-walk.ts'

export interface RecoverOptions {
  readonly directory: string
  readonly files: Files
  readonly kind: number
  readonly fault: (what: string, error: Error) => void
}

export interface Recovered {
  readonly books: LogBooks
  /** Whether more records may follow in the last segment. */
  readonly isTailSound: boolean
}

/** Assumed size of a segment that cannot be opened: more numbers than one ever had. */
const unknownBytes = 16 * 1024 * 1024

/** Throws the error of the system call if the directory cannot be created or listed. */
export function recoverLog(options: RecoverOptions): Recovered {
  const { directory, files } = options
  files.makeDirectory(directory)
  const names = files.list(directory)
  removeUnfinished(names, options)
  const books = new LogBooks()
  readCursors(directory, files, books.settled)
  const firsts = names.map(firstSeqOf).filter(first => first !== undefined)
  firsts.sort((one, other) => one - other)
  for (const [index, first] of firsts.entries()) addSegment(books, first, firsts[index + 1], options)
  // Records before the first segment were settled before its removal, whatever an older cursor contains.
  if (firsts[0] !== undefined) books.settled.add(1, firsts[0] - 1)
  const isTailSound = findEnd(books, options)
  countItems(books, options)
  return { books, isTailSound }
}

/** Adds a segment to the accounts, or reserves its numbers if it must be left unchanged. */
function addSegment(books: LogBooks, first: number, next: number | undefined, options: RecoverOptions): void {
  const path = join(options.directory, segmentName(first))
  try {
    const { size, head, record } = probeSegment(path, first, options)
    if (head === 'later') {
      reserve(books, first, next, size)
      throw new Error(`cannot read ${path}: written by a newer svc`)
    }
    const createdMs = head?.createdMs ?? record?.timeMs ?? 0
    const itemsBefore = head?.itemsBefore ?? record?.itemsBefore
    const segment = { first, path, createdMs, itemsBefore, size, items: 0 }
    books.segments.push(head || record?.seq === first ? segment : withTotalBefore(books, segment, options))
  } catch (error) {
    if (books.reserved.at(-1)?.from !== first) reserve(books, first, next, 0)
    options.fault('cannot read a segment; it is left unchanged', error as Error)
  }
}

/** Without header and first record, the total before them is taken from the end of the previous segment. */
function withTotalBefore(books: LogBooks, segment: Segment, options: RecoverOptions): Segment {
  const before = books.segments.at(-1)
  const total = before && scanToEnd(before, segment.first - 1, options).total
  return { ...segment, itemsBefore: total ?? segment.itemsBefore }
}

interface Probe {
  readonly size: number
  /** Undefined if damaged, or from another file: in a copy only records in its own range count. */
  readonly head: SegmentHead | 'later' | undefined
  /** First record of its range, if the header is damaged. */
  readonly record: RecordHead | undefined
}

/** Throws the error of the system call. */
function probeSegment(path: string, first: number, { files, kind }: RecoverOptions): Probe {
  const reader = new SegmentReader({ files, path, kind, ascending: true })
  try {
    const { size } = reader
    const head = reader.readHead()
    if (head === 'later' || head?.firstSeq === first) return { size, head, record: undefined }
    reader.tolerant = true
    let found = reader.next(size, first + size)
    while (found?.record && found.record.seq < first) found = reader.next(size, first + size)
    return { size, head: undefined, record: found?.record }
  } finally {
    reader.close()
  }
}

/** Reserves more numbers than a file of that size can have, up to the next file. */
function reserve(books: LogBooks, from: number, next: number | undefined, bytes: number): void {
  const to = next === undefined ? from + (bytes || unknownBytes) : next - 1
  books.reserved.push({ from, to, bytes })
  books.settled.add(from, to)
}

/** End of the records of a segment. */
interface End {
  readonly seq: number
  /** Offset after the last record. */
  readonly size: number
  /** Total of items up to here; undefined if unknown. */
  readonly total: number | undefined
  /** Whether the header is intact, and all pages were readable. */
  readonly isSound: boolean
}

/**
 * Finds the last assigned number and the total of all items, and cuts off the data after the last record:
 * it was never accepted. Returns whether the last segment can have more records.
 */
function findEnd(books: LogBooks, options: RecoverOptions): boolean {
  const last = books.segments.at(-1)
  const end = last && scanToEnd(last, Number.POSITIVE_INFINITY, options)
  const dataEnd = end?.seq ?? 0
  // After a loss of power the cursor may be ahead of the records: new numbers are above both.
  books.lastSeq = Math.max(books.settled.highest, dataEnd, last?.first ?? 0)
  books.settled.add(dataEnd + 1, books.lastSeq)
  let total = end?.total
  for (let index = books.segments.length - 2; total === undefined && index >= 0; index--)
    total = scanToEnd(books.segments[index] as Segment, books.endOf(index), options).total
  books.total = total ?? 0
  return last !== undefined && end !== undefined && cutTail(books, last, end, options)
}

/** `mostSeq` ends the range of the segment. */
function scanToEnd(segment: Segment, mostSeq: number, { files, kind, fault }: RecoverOptions): End {
  let seq = segment.first - 1
  let size = segmentHeadBytes
  let total = segment.itemsBefore
  let isSound = false
  try {
    const reader = new SegmentReader({ files, path: segment.path, kind, ascending: true })
    try {
      reader.tolerant = true
      const head = reader.readHead()
      for (;;) {
        const found = reader.next(segment.size, seq + segment.size)
        const record = found?.record
        if (!found || !record || record.seq > mostSeq) break
        seq = Math.max(seq, record.seq)
        size = found.offset + recordHeadBytes + record.bodyBytes
        total = Math.max(total ?? 0, record.itemsBefore + record.items)
      }
      isSound =
        head !== undefined && head !== 'later' && head.firstSeq === segment.first && !reader.hasUnreadable
    } finally {
      reader.close()
    }
  } catch (error) {
    fault('cannot read a segment to its end', error as Error)
  }
  return { seq, size, total, isSound }
}

function cutTail(books: LogBooks, last: Segment, end: End, { files, fault }: RecoverOptions): boolean {
  if (!end.isSound) return false
  if (end.size >= last.size) return true
  books.torn++
  last.size = end.size
  try {
    const fd = files.open(last.path, 'append')
    try {
      files.truncate(fd, end.size)
    } finally {
      files.close(fd)
    }
    return true
  } catch (error) {
    fault('cannot cut off an incomplete record', error as Error)
    return false
  }
}

/**
 * Counts the unsettled items of each segment: by the totals in the headers, and by records if it is settled in part.
 */
function countItems(books: LogBooks, options: RecoverOptions): void {
  for (const [index, segment] of books.segments.entries()) {
    if (books.isSettled(index)) continue
    const { first, itemsBefore } = segment
    const end = books.endOf(index)
    const isLast = index === books.segments.length - 1
    segment.items =
      !isLast && itemsBefore !== undefined && books.settled.missing(first, end) === end - first + 1
        ? Math.max(0, books.itemsBeforeEndOf(index) - itemsBefore)
        : countUnsettled(books, segment, options)
    books.items += segment.items
  }
}

function countUnsettled(books: LogBooks, segment: Segment, { files, kind, fault }: RecoverOptions): number {
  let items = 0
  try {
    const walk = new SegmentWalk(books, segment, files, kind, false)
    try {
      walk.reader.tolerant = true
      for (let record = walk.next(); record; record = walk.next())
        if (!books.settled.has(record.seq)) items += record.items
    } finally {
      walk.close()
    }
  } catch (error) {
    fault('cannot read a segment', error as Error)
  }
  return items
}

/** Removes temporary files of a process that ended while writing them. */
function removeUnfinished(names: readonly string[], { directory, files }: RecoverOptions): void {
  for (const name of names) {
    if (!name.endsWith('.tmp')) continue
    try {
      files.remove(join(directory, name))
    } catch {
      // It costs a little space, and is overwritten when its name is used again.
    }
  }
}
