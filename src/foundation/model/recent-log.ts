/** A log record as stored for recent-log queries. Times are microseconds since the Unix epoch. */
export interface RecentLog {
  /** When it was written; when it was read, if it has no time. */
  readonly timeUs: number
  /** OTLP SeverityNumber, 1 (TRACE) to 24 (FATAL4); 0: unknown. */
  readonly severity: number
  /** Truncated to 4 KiB. */
  readonly body: string
  /** Hexadecimal; '' if it is not part of a trace. */
  readonly traceId: string
  readonly spanId: string
  /** 0: unknown. */
  readonly pid: number
  /** '' outside of containers. */
  readonly containerId: string
  /** `service.name`; '' if there is none. */
  readonly service: string
}

/** With an increasing number, starting at 1. */
export interface NumberedLog extends RecentLog {
  readonly id: number
}

/**
 * Selects records. All given fields must match, with two exceptions.
 *
 * Records of a span: with `traceId`, a record with a trace id matches by that alone, whatever its time or process. One
 * without matches if `pid` or `containerId`, and `fromUs` and `toUs`, are given: what the process wrote during the
 * span.
 *
 * Records of a process: with `pid` and `containerId`, a record of which only the container is known matches by that.
 */
export interface RecentLogQuery {
  /** 32 hexadecimal digits in lower case. */
  readonly traceId?: string
  /** 16 digits. Excludes records of the trace that name another span. */
  readonly spanId?: string
  readonly pid?: number
  readonly containerId?: string
  readonly service?: string
  readonly fromUs?: number
  readonly toUs?: number
  readonly minSeverity?: number
  /** Substring of the body, case-insensitive. */
  readonly text?: string
  /** Returns the newest records up to this number. */
  readonly limit: number
}

export interface LogSearchQuery extends RecentLogQuery {
  /** Only newer records. */
  readonly afterId?: number
  /** Time columns in which matching records are counted. */
  readonly histogram?: { readonly fromUs: number; readonly stepUs: number; readonly columns: number }
}
