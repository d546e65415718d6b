import type { LogSearchQuery, NumberedLog } from '../model/recent-log.ts'

/** Rows of a histogram: records of no severity, then those of the six of OTLP, from TRACE to FATAL. */
const levels = 7

/** A search that goes on in slices, while records come. Those that came after it began are not found. */
export class LogSearch {
  readonly query: LogSearchQuery
  /** The newest that fit, the newest first: as many as are wanted, and at most 1 MiB of bodies. */
  readonly found: NumberedLog[] = []
  /** Those that fit. */
  matched = 0
  /** The same by level and column, row by row; empty without a histogram. */
  readonly counts: Uint32Array
  readonly #walk: (untilMs: number) => boolean

  /** `walk` looks at records until a time, and says whether all were looked at. */
  constructor(query: LogSearchQuery, walk: (search: LogSearch, untilMs: number) => boolean) {
    this.query = query
    this.counts = new Uint32Array(levels * (query.histogram?.columns ?? 0))
    this.#walk = untilMs => walk(this, untilMs)
  }

  /** True: all was looked at. `untilMs`: of `performance.now()`. */
  goOn(untilMs: number): boolean {
    return this.#walk(untilMs)
  }

  /** Takes account of a record that fits. */
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

/** Four severities are a level each (OpenTelemetry, logs data model). */
function levelOf(severity: number): number {
  return Math.min(levels - 1, Math.ceil(severity / 4))
}
