import { Attributes } from './attributes.ts'

/** One log record. Like a span, an instance is filled again and again. Times are microseconds since the Unix epoch. */
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
  /** Attributes that it had and that a bound took. Who fills a record again sets it, too. */
  droppedAttributes = 0
}
