import { Attributes } from './attributes.ts'
import { SpanKind } from './span.ts'

/** What a protocol makes of an operation, in OpenTelemetry's names. Reused like the operation. */
export class Call {
  /** The span's name. */
  name = ''
  /** What `exclude_paths` is matched against; '' where the protocol knows no paths. */
  path = ''
  /** `error.type`; '' when the call did not fail. */
  error = ''
  /** Attributes of the span. */
  readonly attributes = new Attributes()
  /** Attributes of the duration histogram: a small, bounded set of values. */
  readonly dimensions = new Attributes()
  /** The request was an export of telemetry by an instrumented application: not an application's call. */
  telemetry = false
  kind: SpanKind = SpanKind.internal
  /** `signal_type` of `spans_collected`. */
  signalType = ''
  /** Where its duration counts; undefined: nowhere. */
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

/** Name, text and bounds of the duration histogram that a protocol fills. */
export interface DurationDesc {
  readonly name: string
  readonly description: string
  readonly bounds: readonly number[]
}
