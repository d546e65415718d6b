import { fieldKey, WireType, type Writer } from '../../../foundation/lib/protobuf.ts'
import { type Span, StatusCode } from '../../../foundation/model/span.ts'
import { encodeAttributes, encodeId } from './encode-attributes.ts'
import type { Encoding } from './request.ts'

const spans = fieldKey(2, WireType.bytes)

const traceId = fieldKey(1, WireType.bytes)
const spanId = fieldKey(2, WireType.bytes)
const traceState = fieldKey(3, WireType.bytes)
const parentSpanId = fieldKey(4, WireType.bytes)
const name = fieldKey(5, WireType.bytes)
const kind = fieldKey(6, WireType.varint)
const startTime = fieldKey(7, WireType.fixed64)
const endTime = fieldKey(8, WireType.fixed64)
const attributes = fieldKey(9, WireType.bytes)
const droppedAttributesCount = fieldKey(10, WireType.varint)
const status = fieldKey(15, WireType.bytes)
const flags = fieldKey(16, WireType.fixed32)

const statusMessage = fieldKey(2, WireType.bytes)
const statusCode = fieldKey(3, WireType.varint)

/** Most spans take between 128 bytes and 16 KiB: two bytes of length. */
const usualSpan = 512

/** Encoding of spans (trace.proto). */
export const traceEncoding: Encoding<Span> = { signal: 'traces', encode: encodeSpan }

function encodeSpan(out: Writer, span: Span): number {
  out.open(spans, usualSpan)
  encodeId(out, traceId, span.traceId)
  encodeId(out, spanId, span.spanId)
  if (span.traceState !== '') out.string(traceState, span.traceState)
  encodeId(out, parentSpanId, span.parentSpanId)
  if (span.name !== '') out.string(name, span.name)
  out.int(kind, span.kind)
  if (span.startUs !== 0) out.microsAsNanos(startTime, span.startUs)
  if (span.endUs !== 0) out.microsAsNanos(endTime, span.endUs)
  encodeAttributes(out, attributes, span.attributes)
  if (span.droppedAttributes !== 0) out.int(droppedAttributesCount, span.droppedAttributes)
  if (span.status !== StatusCode.unset || span.statusMessage !== '') encodeStatus(out, span)
  if (span.flags !== 0) out.fixed32(flags, span.flags)
  out.close()
  return 1
}

function encodeStatus(out: Writer, span: Span): void {
  out.open(status, span.statusMessage.length + 4)
  if (span.statusMessage !== '') out.string(statusMessage, span.statusMessage)
  if (span.status !== StatusCode.unset) out.int(statusCode, span.status)
  out.close()
}
