// Content of the files of a log, for the command line: read-only and without locks, so it may run beside an agent.

import { join } from 'node:path'
import { readCursors } from './cursor.ts'
import { deadLetterDirectory } from './dead-letters.ts'
import type { Files, Stored } from './log.ts'
import {
  firstSeqOf,
  mostSeq,
  type RecordHead,
  recordHeadBytes,
  segmentHeadBytes,
  splitReason,
} from './record-format.ts'
import { SegmentReader } from './segment-reader.ts'
import { SettledRanges } from './settled-ranges.ts'

/** One finding in a file: a record, damage, or an unreadable file. */
export interface Inspected {
  readonly file: string
  readonly offset: number
  /** Record with its body. */
  readonly record?: Stored
  /** Reason of a dead letter. */
  readonly why?: string
  readonly damage?: InspectedDamage
  /** Reason why the whole file was skipped: a newer version, or the system error. */
  readonly unreadable?: string
  /** Whether the record was delivered or dropped; it stays until its file is removed. */
  readonly settled: boolean
}

export interface InspectedDamage {
  readonly bytes: number
  /** Items of a record with an intact header and a damaged body; otherwise 0. */
  readonly items: number
  /** Incomplete record at the end of the last file: an agent is writing it, or was when it ended. */
  readonly torn: boolean
}

/** All records of a log, settled ones included, in order. Throws if the directory cannot be listed. */
export function* readSegments(directory: string, files: Files): Generator<Inspected> {
  const settled = settledIn(directory, files)
  const firsts = segmentsIn(directory, files)
  for (const [index, [first, file]] of firsts.entries()) {
    const end = (firsts[index + 1]?.[0] ?? Number.POSITIVE_INFINITY) - 1
    for (const found of readFile(file, files, true, index === firsts.length - 1)) {
      const seq = found.record?.seq
      // Its number belongs to another file.
      if (seq === undefined || (seq >= first && seq <= end))
        yield { ...found, settled: seq !== undefined && settled.has(seq) }
    }
  }
}

/** Dead letters of a log, the oldest first. None if the directory does not exist. */
export function* readDeadLetters(directory: string, files: Files): Generator<Inspected> {
  let list: [number, string][]
  try {
    list = segmentsIn(join(directory, deadLetterDirectory), files)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  for (const [index, [, file]] of list.entries())
    yield* readFile(file, files, false, index === list.length - 1)
}

function* readFile(file: string, files: Files, ascending: boolean, isLast: boolean): Generator<Inspected> {
  const settled = false
  let reader: SegmentReader
  try {
    reader = new SegmentReader({ files, path: file, kind: undefined, ascending })
  } catch (error) {
    // A running agent removes delivered files.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      yield { file, offset: 0, unreadable: (error as Error).message, settled }
    return
  }
  try {
    reader.tolerant = true
    const { size } = reader
    const head = reader.readHead()
    if (head === 'later') {
      yield { file, offset: 0, unreadable: 'written by a newer svc', settled }
      return
    }
    const torn = isLast && size < segmentHeadBytes
    if (head === undefined)
      yield { file, offset: 0, damage: { bytes: Math.min(size, segmentHeadBytes), items: 0, torn }, settled }
    for (let found = reader.next(size, mostSeq); found; found = reader.next(size, mostSeq)) {
      const { offset, record, skippedBytes } = found
      const at = offset - (record ? skippedBytes : 0)
      if (skippedBytes > 0)
        yield {
          file,
          offset: at,
          damage: { bytes: skippedBytes, items: 0, torn: isLast && !record },
          settled,
        }
      if (record) yield { file, offset, ...readBody(reader, offset, record), settled }
    }
  } finally {
    reader.close()
  }
}

function readBody(
  reader: SegmentReader,
  offset: number,
  head: RecordHead,
): { record: Stored; why?: string } | { damage: InspectedDamage } {
  const stored = reader.readBody(offset, head)
  const { seq, items, plainBytes, orderKeys, encoding, timeMs } = head
  if (!stored) return { damage: { bytes: recordHeadBytes + head.bodyBytes, items, torn: false } }
  const facts = { seq, items, plainBytes, orderKeys, encoding, timeMs }
  if (!head.hasReason) return { record: { ...facts, body: stored } }
  const { why, body } = splitReason(stored)
  return { record: { ...facts, body }, why }
}

function settledIn(directory: string, files: Files): SettledRanges {
  const settled = new SettledRanges()
  readCursors(directory, files, settled)
  return settled
}

function segmentsIn(directory: string, files: Files): [first: number, path: string][] {
  const list: [number, string][] = []
  for (const name of files.list(directory)) {
    const first = firstSeqOf(name)
    if (first !== undefined) list.push([first, join(directory, name)])
  }
  return list.sort(([one], [other]) => one - other)
}
