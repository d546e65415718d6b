import { Writer } from '../../src/foundation/lib/protobuf.ts'
import type { Span } from '../../src/foundation/model/span.ts'
import { traceEncoding } from '../../src/pipeline/exporters/otlp/encode-trace.ts'
import type { EncodedItem } from '../../src/pipeline/exporters/otlp/request.ts'

/** A span as it is exported. */
export function encodedSpan(span: Span): EncodedItem {
  const out = new Writer()
  traceEncoding.encode(out, span)
  return { buffer: out.buffer, start: 0, end: out.length }
}
