import type { ByteRange } from '../../../foundation/lib/byte-range.ts'
import type { TraceContext } from '../../../foundation/model/stream.ts'
import { TraceFields } from '../../../foundation/model/trace-headers.ts'

/** The place in a trace that properties of a message tell: `traceparent` and `tracestate`, else `b3`. Used again. */
export class MessageContext {
  readonly #fields = new TraceFields()

  /** A message begins. */
  clear(): void {
    this.#fields.clear()
  }

  /** The message has a property of this name, whose value is `bytes[start, end)`. Of one that comes twice the first counts. */
  property(bytes: Buffer, name: ByteRange, start: number, end: number): void {
    const fields = this.#fields
    if (name.spells(bytes, 'tracestate')) fields.addState(bytes, start, end)
    else if (name.spells(bytes, 'traceparent')) {
      if (fields.traceparent.empty) fields.traceparent.set(start, end)
    } else if (name.spells(bytes, 'b3') && fields.b3.empty) fields.b3.set(start, end)
  }

  /** Says in `context` what the properties, ranges of `bytes`, come to. */
  settle(bytes: Buffer, context: TraceContext): void {
    this.#fields.settle(bytes, context)
  }
}
