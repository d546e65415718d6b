import type { LogSearchQuery, NumberedLog } from '../../foundation/model/recent-log.ts'

/** Rows of a histogram: records without a severity, then the six levels of OTLP, from TRACE to FATAL. */
const levels = 7

/** A search in slices, while records arrive. Records that arrive after its start are not found. */
export class LogSearch {
  readonly query: LogSearchQuery
  /** Newest matching records, the newest first: up to the limit of the query, and at most 1 MiB of bodies. */
  readonly found: NumberedLog[] = []
  /** Number of matching records. */
  matched = 0
  /** Matching records by level and column, row by row; empty without a histogram. */
  readonly counts: Uint32Array
  readonly #walk: (untilMs: number) => boolean

  /** `walk` visits records until a time, and returns whether all were visited. */
  constructor(query: LogSearchQuery, walk: (search: LogSearch, untilMs: number) => boolean) {
    this.query = query
    this.counts = new Uint32Array(levels * (query.histogram?.columns ?? 0))
    this.#walk = untilMs => walk(this, untilMs)
  }

  /** Continues until `untilMs` of `performance.now()`. True at the end. */
  goOn(untilMs: number): boolean {
    return this.#walk(untilMs)
  }

  /** Counts a matching record. */
  count(severity: number, timeUs: number): void {
    this.matched++
    const { histogram } = this.query
    if (histogram === undefined) return
    const { fromUs, stepUs, columns } = histogram
    const column = Math.floor((timeUs - fromUs) / stepUs)
    if (column < 0 || column >= columns) return
    this.counts[levelOf(severity) * columns + column]!++
  }
}

/** Level of a severity; a level has four severities (OpenTelemetry, logs data model). */
function levelOf(severity: number): number {
  return Math.min(levels - 1, Math.ceil(severity / 4))
}
