// Folds repeated records into one row each.

import type { LogsLine } from '../../../src/view/api/ui/documents.ts'

export type LogRecord = LogsLine['records'][number]

/** Consecutive similar records. */
export interface Fold {
  /** The newest of them. */
  readonly record: LogRecord
  /** The oldest of them, which identifies the row while more are added. */
  readonly first: LogRecord
  readonly count: number
}

/**
 * A text without its variable parts: numbers, and hexadecimal words that are numbers or too long to be ordinary
 * words. Takes linear time.
 */
export function pattern(body: string): string {
  return body.replace(/[0-9A-Za-z]+/g, word =>
    /^(0x)?[0-9a-f]+$/i.test(word) && (word.length >= 8 || /\d/.test(word)) ? '#' : word.replace(/\d+/g, '#'),
  )
}

const patterns = new WeakMap<LogRecord, string>()

function patternOf(record: LogRecord): string {
  let found = patterns.get(record)
  if (found === undefined) {
    found = `${record.service}\n${record.severity}\n${pattern(record.body)}`
    patterns.set(record, found)
  }
  return found
}

/** Each record as a separate row. */
export function unfolded(records: readonly LogRecord[]): readonly Fold[] {
  return records.map(record => ({ record, first: record, count: 1 }))
}

/** Consecutive records of one service and level whose texts differ only in numbers. */
export function folded(records: readonly LogRecord[]): readonly Fold[] {
  const folds: Fold[] = []
  let last: Fold | undefined
  for (const record of records) {
    if (last !== undefined && patternOf(last.record) === patternOf(record)) {
      last = { record, first: last.first, count: last.count + 1 }
      folds[folds.length - 1] = last
    } else {
      last = { record, first: record, count: 1 }
      folds.push(last)
    }
  }
  return folds
}
