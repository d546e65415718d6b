// The log data of the page: the newest records, and counts by time and level.

import type { LogsLine } from '../../../src/view/api/ui/documents.ts'
import type { LogRecord } from './fold.ts'

type Start = Extract<LogsLine, { kind: 'start' }>
export type Histogram = Start['histogram']
export type Level = Histogram['levels'][number]['level']

export interface Tail {
  /** Oldest first. */
  readonly records: readonly LogRecord[]
  readonly histogram: Histogram
  readonly services: readonly string[]
  readonly off: string
  /** Records skipped because they arrived too fast, since the page was opened. */
  readonly skipped: number
}

/** Maximum number of records in the page. */
export const mostRecords = 2000

const levels: readonly Level[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal']

/** The level of an OTLP SeverityNumber: four numbers each. */
export function levelOf(severity: number): Level {
  return levels[Math.floor((severity - 1) / 4)] ?? 'unknown'
}

/** The tail with another line, received at `nowMs`; undefined until the first. */
export function extended(before: Tail | undefined, line: LogsLine, nowMs: number): Tail | undefined {
  if (line.kind === 'start') {
    const { histogram, services, no_data_reason: off } = line
    return { records: line.records.slice(-mostRecords), histogram, services, off, skipped: 0 }
  }
  if (before === undefined) return undefined
  const fresh = line.records
  const known = new Set(before.services)
  for (const { service } of fresh) if (service !== '') known.add(service)
  return {
    records: [...before.records, ...fresh].slice(-mostRecords),
    histogram: counted(before.histogram, fresh, nowMs),
    services: known.size === before.services.length ? before.services : [...known].sort(),
    off: fresh.length > 0 ? '' : before.off,
    skipped: before.skipped + line.skipped,
  }
}

/**
 * The histogram with further records; its columns move with time, and their number is constant. Records with a time in
 * the future go into the last column.
 */
export function counted(histogram: Histogram, records: readonly LogRecord[], nowMs: number): Histogram {
  const columns = histogram.levels[0]?.counts.length ?? 0
  if (columns === 0 || records.length === 0) return histogram
  const { from_ms, step_ms } = histogram
  const latest = Math.max(columns - 1, Math.floor((nowMs - from_ms) / step_ms))
  let last = columns - 1
  for (const { time_ms } of records)
    last = Math.max(last, Math.min(latest, Math.floor((time_ms - from_ms) / step_ms)))
  const moved = last - (columns - 1)
  const rows = histogram.levels.map(({ level, counts }) => ({
    level,
    counts: Array.from({ length: columns }, (_, i) => counts[i + moved] ?? 0),
  }))
  for (const { time_ms, severity } of records) {
    const column = Math.min(columns - 1, Math.floor((time_ms - from_ms) / step_ms) - moved)
    const level = levelOf(severity)
    let row = rows.find(each => each.level === level)
    if (row === undefined) {
      row = { level, counts: new Array<number>(columns).fill(0) }
      rows.push(row)
    }
    if (column >= 0) row.counts[column]!++
  }
  return { from_ms: from_ms + moved * step_ms, step_ms, levels: rows }
}

/** Its newest columns, covering `seconds`. */
export function newest(histogram: Histogram, seconds: number): Histogram {
  const columns = histogram.levels[0]?.counts.length ?? 0
  const first = Math.max(0, columns - Math.ceil((seconds * 1000) / histogram.step_ms))
  return {
    from_ms: histogram.from_ms + first * histogram.step_ms,
    step_ms: histogram.step_ms,
    levels: histogram.levels.map(({ level, counts }) => ({ level, counts: counts.slice(first) })),
  }
}
