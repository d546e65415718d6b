import { Attributes } from './attributes.ts'

/** One log record. Instances are reused, like spans. Times are microseconds since the Unix epoch. */
export class LogRecord {
  /** 0: unknown. */
  timeUs = 0
  observedUs = 0
  /** OTLP SeverityNumber, 1 (TRACE) to 24 (FATAL4); 0: unknown. */
  severity = 0
  severityText = ''
  body = ''
  eventName = ''
  /** All zero: not part of a trace. */
  readonly traceId: Uint8Array = new Uint8Array(16)
  readonly spanId: Uint8Array = new Uint8Array(8)
  flags = 0
  readonly attributes = new Attributes()
  /** Attributes that a limit removed. Code that refills a record must set it too. */
  droppedAttributes = 0
}
