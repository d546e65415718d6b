import type { ByteRange } from '../lib/byte-range.ts'
import type { TraceContext } from './stream.ts'

/**
 * Parses a `b3` header (github.com/openzipkin/b3-propagation, "Single Header"): `{trace id}-{span id}`, then optionally
 * `-{sampling state}` and `-{parent span id}`. Returns false and leaves `context` unchanged if the value is invalid or
 * only a sampling state, which has no ids.
 */
export function readB3(bytes: Uint8Array, start: number, end: number, context: TraceContext): boolean {
  let dashAt = start
  while (dashAt < end && bytes[dashAt] !== dash) dashAt++
  const span = dashAt + 1
  const spanEnd = span + 16
  if (spanEnd > end) return false
  let flags = sampled
  if (spanEnd < end) {
    if (bytes[spanEnd] !== dash || spanEnd + 1 >= end) return false
    const parent = spanEnd + 2
    flags = samplingState(bytes[spanEnd + 1]!)
    if (flags < 0) return false
    if (parent < end && (bytes[parent] !== dash || !isHex(bytes, parent + 1, end) || end - parent !== 17))
      return false
  }
  return setIds(bytes, start, dashAt, span, spanEnd, flags, context)
}

/**
 * Does the same for the headers `X-B3-TraceId`, `X-B3-SpanId`, `X-B3-Sampled` and `X-B3-Flags` ("Multiple Headers");
 * the last two may be empty.
 */
export function readB3Headers(
  bytes: Uint8Array,
  traceId: ByteRange,
  spanId: ByteRange,
  sampling: ByteRange,
  debug: ByteRange,
  context: TraceContext,
): boolean {
  let flags = sampled
  if (debug.end - debug.start !== 1 || bytes[debug.start] !== digit1) {
    // Early tracers, older than the specification, send `true` and `false`.
    if (sampling.spells(bytes, 'false')) flags = 0
    else if (sampling.end - sampling.start === 1) flags = samplingState(bytes[sampling.start]!)
    if (flags < 0) return false
  }
  if (spanId.end - spanId.start !== 16) return false
  return setIds(bytes, traceId.start, traceId.end, spanId.start, spanId.end, flags, context)
}

/** W3C's sampled flag. If the caller deferred the decision, svc makes it, and it records this span. */
const sampled = 1

const dash = 0x2d
const digit0 = 0x30
const digit1 = 0x31
const letterD = 0x64

/** Returns the flags of a sampling state, -1 if it is invalid. `d` means debug, which implies sampled. */
function samplingState(byte: number): number {
  if (byte === digit0) return 0
  return byte === digit1 || byte === letterD ? sampled : -1
}

function setIds(
  bytes: Uint8Array,
  traceStart: number,
  traceEnd: number,
  spanStart: number,
  spanEnd: number,
  flags: number,
  context: TraceContext,
): boolean {
  const length = traceEnd - traceStart
  if (length !== 32 && length !== 16) return false
  if (!isHex(bytes, traceStart, traceEnd) || !isHex(bytes, spanStart, spanEnd)) return false
  if (isZero(bytes, traceStart, traceEnd) || isZero(bytes, spanStart, spanEnd)) return false
  const { traceId, spanId } = context
  // A 64-bit trace id is a 128-bit one with zero high bits.
  if (length === 16) traceId.fill(0, 0, 8)
  writeHex(bytes, traceStart, traceEnd, traceId, 16 - length / 2)
  writeHex(bytes, spanStart, spanEnd, spanId, 0)
  context.flags = flags
  context.state = ''
  return true
}

/** The value of a hexadecimal digit, -1 for any other byte. */
const digits = new Int8Array(256).fill(-1)
for (let i = 0; i < 16; i++) {
  digits['0123456789abcdef'.charCodeAt(i)] = i
  digits['0123456789ABCDEF'.charCodeAt(i)] = i
}

function isHex(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (digits[bytes[i]!]! < 0) return false
  return true
}

function isZero(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (bytes[i] !== digit0) return false
  return true
}

function writeHex(bytes: Uint8Array, start: number, end: number, target: Uint8Array, at: number): void {
  for (let i = start; i < end; i += 2)
    target[at + (i - start) / 2] = (digits[bytes[i]!]! << 4) | digits[bytes[i + 1]!]!
}
