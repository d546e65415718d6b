import { Attributes } from './attributes.ts'
import { SpanKind } from './span.ts'

/** An operation in OpenTelemetry's terms, filled by its protocol. Reused together with the operation. */
export class Call {
  /** Span name. */
  name = ''
  /** The path that `exclude_paths` is matched against; '' if the protocol has no paths. */
  path = ''
  /** `error.type`; '' if the call succeeded. */
  error = ''
  /** Span attributes. */
  readonly attributes = new Attributes()
  /** Attributes of the duration histogram: a small, bounded set of values. */
  readonly dimensions = new Attributes()
  /** The request exports telemetry of an instrumented application, so it is no call of the application itself. */
  telemetry = false
  kind: SpanKind = SpanKind.internal
  /** `signal_type` of `spans_collected`. */
  signalType = ''
  /** The histogram that records its duration; undefined: none. */
  duration: DurationDesc | undefined = undefined

  clear(): void {
    this.name = ''
    this.path = ''
    this.error = ''
    this.telemetry = false
    this.kind = SpanKind.internal
    this.signalType = ''
    this.duration = undefined
    this.attributes.clear()
    this.dimensions.clear()
  }
}

/** Name, description and bounds of a protocol's duration histogram. */
export interface DurationDesc {
  readonly name: string
  readonly description: string
  readonly bounds: readonly number[]
}
