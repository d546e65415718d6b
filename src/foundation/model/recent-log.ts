/** A log record as it is kept for a look at the last ones. Times are microseconds since the Unix epoch. */
export interface RecentLog {
  /** When it was written; when it was read, where it does not say. */
  readonly timeUs: number
  /** OTLP SeverityNumber, 1 (TRACE) to 24 (FATAL4); 0: unknown. */
  readonly severity: number
  /** At most 4 KiB of it. */
  readonly body: string
  /** Hexadecimal; '' where it is not part of a trace. */
  readonly traceId: string
  readonly spanId: string
  /** 0: unknown. */
  readonly pid: number
  /** '' outside of containers. */
  readonly containerId: string
  /** `service.name`; '' where there is none. */
  readonly service: string
}

/** With a number that rises from record to record, and begins with 1. */
export interface NumberedLog extends RecentLog {
  readonly id: number
}

/**
 * Which records are looked for. All that is given must hold, with two exceptions.
 *
 * Records of a span: with `traceId`, a record that names a trace is found by that alone, whenever and wherever it was
 * written. One that names none is found where `pid` or `containerId` is given, and `fromUs` and `toUs`: what the process
 * wrote while the span lasted.
 *
 * Records of a process: with `pid` and `containerId`, a record of which only the container is known is found by that.
 */
export interface RecentLogQuery {
  /** 32 hexadecimal digits in lower case. */
  readonly traceId?: string
  /** 16 of them. Of the trace's records, those that name another span are left out. */
  readonly spanId?: string
  readonly pid?: number
  readonly containerId?: string
  readonly service?: string
  readonly fromUs?: number
  readonly toUs?: number
  readonly minSeverity?: number
  /** In the body, without regard to case. */
  readonly text?: string
  /** The newest so many. */
  readonly limit: number
}

export interface LogSearchQuery extends RecentLogQuery {
  /** Only newer ones. */
  readonly afterId?: number
  /** Columns of time in which those that fit are counted. */
  readonly histogram?: { readonly fromUs: number; readonly stepUs: number; readonly columns: number }
}
