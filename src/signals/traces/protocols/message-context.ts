import type { ByteRange } from '../../../foundation/lib/byte-range.ts'
import type { TraceContext } from '../../../foundation/model/stream.ts'
import { TraceFields } from '../../../foundation/model/trace-headers.ts'

/** The trace context in a message's properties: `traceparent` and `tracestate`, or else `b3`. Reused. */
export class MessageContext {
  readonly #fields = new TraceFields()

  /** A message begins. */
  clear(): void {
    this.#fields.clear()
  }

  /**
   * The message has a property of this name, with the value `bytes[start, end)`. Of duplicates the first one counts.
   */
  property(bytes: Buffer, name: ByteRange, start: number, end: number): void {
    const fields = this.#fields
    if (name.spells(bytes, 'tracestate')) fields.addState(bytes, start, end)
    else if (name.spells(bytes, 'traceparent')) {
      if (fields.traceparent.empty) fields.traceparent.set(start, end)
    } else if (name.spells(bytes, 'b3') && fields.b3.empty) fields.b3.set(start, end)
  }

  /** Writes the trace context to `context`; the properties are ranges of `bytes`. */
  settle(bytes: Buffer, context: TraceContext): void {
    this.#fields.settle(bytes, context)
  }
}
