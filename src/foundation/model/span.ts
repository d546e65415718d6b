import { Attributes } from './attributes.ts'

/** Span kinds, with their numbers in OTLP (trace.proto, SpanKind). */
export const SpanKind = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const
export type SpanKind = (typeof SpanKind)[keyof typeof SpanKind]

/** Status codes, with their numbers in OTLP (trace.proto, Status.StatusCode). Success stays unset. */
export const StatusCode = { unset: 0, error: 2 } as const
export type StatusCode = (typeof StatusCode)[keyof typeof StatusCode]

/**
 * One span. The tracer reuses one instance, so copy a span to keep it. Times are microseconds since the Unix epoch; a
 * double stores them to a quarter of a microsecond.
 */
export class Span {
  readonly traceId: Uint8Array = new Uint8Array(16)
  readonly spanId: Uint8Array = new Uint8Array(8)
  /** All zero: a root span. */
  readonly parentSpanId: Uint8Array = new Uint8Array(8)
  /** W3C trace flags and, above them, OTLP's "is remote" bits (trace.proto, SpanFlags). */
  flags = 0
  traceState = ''
  name = ''
  kind: SpanKind = SpanKind.internal
  startUs = 0
  endUs = 0
  status: StatusCode = StatusCode.unset
  statusMessage = ''
  readonly attributes = new Attributes()
  /** Attributes that a limit removed. Code that refills a span must set it too. */
  droppedAttributes = 0
}
