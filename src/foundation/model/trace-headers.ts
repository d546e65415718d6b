import { ByteRange, isBlank, lower } from '../lib/byte-range.ts'
import { Interner } from '../lib/interner.ts'
import { small } from '../lib/small-tables.ts'
import { readB3, readB3Headers } from './b3.ts'
import type { TraceContext } from './stream.ts'
import { parseTraceparent } from './traceparent.ts'

/**
 * Reads the trace context from the captured head of an HTTP/1 request, `bytes[start, end)`: W3C Trace Context level 2,
 * otherwise B3. Overwrites `context`; its flags are -1 if there is no valid one. Ignores a truncated line.
 */
export function readTraceHeaders(bytes: Buffer, start: number, end: number, context: TraceContext): void {
  fields.clear()
  let from = lineEnd(bytes, start, end) + 1
  while (from < end && bytes[from] !== lineFeed && bytes[from] !== carriageReturn) {
    const stop = lineEnd(bytes, from, end)
    if (stop >= end) break
    const first = lower(bytes[from]!)
    if (first === letterT || first === letterX || first === letterB) takeLine(bytes, from, stop)
    from = stop + 1
  }
  fields.settle(bytes, context)
}

/** The trace headers of a request, as ranges of one buffer. Reused. */
export class TraceFields {
  readonly traceparent = new ByteRange()
  readonly b3 = new ByteRange()
  readonly b3TraceId = new ByteRange()
  readonly b3SpanId = new ByteRange()
  readonly b3Sampled = new ByteRange()
  readonly b3Flags = new ByteRange()
  /** `tracestate` may occur more than once: the combined list. */
  readonly #state = Buffer.alloc(maxStateBytes)
  #stateLength = 0
  #stateFull = false

  clear(): void {
    this.traceparent.clear()
    this.b3.clear()
    this.b3TraceId.clear()
    this.b3SpanId.clear()
    this.b3Sampled.clear()
    this.b3Flags.clear()
    this.#stateLength = 0
    this.#stateFull = false
  }

  /** Adds the value of a `tracestate` header. Members above the limit are dropped, last ones first (§3.3.1.5). */
  addState(bytes: Uint8Array, start: number, end: number): void {
    if (end <= start || this.#stateFull) return
    const state = this.#state
    let length = this.#stateLength
    if (length > 0 && length < maxStateBytes) state[length++] = comma
    const most = Math.min(end, start + maxStateBytes - length)
    for (let at = start; at < most; at++) state[length++] = bytes[at]!
    if (most < end) {
      this.#stateFull = true
      if (bytes[most] !== comma) while (length > 0 && state[length - 1] !== comma) length--
      if (length > 0 && state[length - 1] === comma) length--
    }
    this.#stateLength = length
  }

  /** Writes the resulting context of the fields, ranges of `bytes`, to `context`. */
  settle(bytes: Uint8Array, context: TraceContext): void {
    context.clear()
    const { traceparent, b3, b3TraceId, b3SpanId } = this
    if (!traceparent.empty) {
      const { start, end } = traceparent
      context.flags = parseTraceparent(bytes, start, end, context.traceId, context.spanId)
      if (context.flags >= 0) {
        if (isState(this.#state, this.#stateLength))
          context.state = states.intern(this.#state, 0, this.#stateLength)
        return
      }
    }
    if (!b3.empty && readB3(bytes, b3.start, b3.end, context)) return
    if (!b3TraceId.empty) readB3Headers(bytes, b3TraceId, b3SpanId, this.b3Sampled, this.b3Flags, context)
  }
}

/** The minimum that W3C requires to be propagated; longer values are cut between two members. */
const maxStateBytes = 512
const maxStateMembers = 32
const maxStateKey = 256
const maxStateValue = 256

const lineFeed = 0x0a
const carriageReturn = 0x0d
const comma = 0x2c
const colon = 0x3a
const equalsSign = 0x3d
const letterB = 0x62
const letterT = 0x74
const letterX = 0x78

const states = small(new Interner({ slots: 512, maxLength: maxStateBytes }))
const fields = new TraceFields()
const name = new ByteRange()
const value = new ByteRange()

function lineEnd(bytes: Uint8Array, start: number, end: number): number {
  let stop = start
  while (stop < end && bytes[stop] !== lineFeed) stop++
  return stop
}

/** Records `bytes[start, end)`, a line without its line feed. The first of duplicate fields counts. */
function takeLine(bytes: Buffer, start: number, end: number): void {
  let sign = start
  while (sign < end && bytes[sign] !== colon) sign++
  name.set(start, sign)
  value.set(sign + 1, bytes[end - 1] === carriageReturn ? end - 1 : end)
  value.trim(bytes)
  if (name.spells(bytes, 'tracestate')) {
    fields.addState(bytes, value.start, value.end)
    return
  }
  const field = fieldNamed(bytes)
  if (field?.empty) field.set(value.start, value.end)
}

function fieldNamed(bytes: Buffer): ByteRange | undefined {
  switch (name.end - name.start) {
    case 2:
      return name.spells(bytes, 'b3') ? fields.b3 : undefined
    case 10:
      return name.spells(bytes, 'x-b3-flags') ? fields.b3Flags : undefined
    case 11:
      if (name.spells(bytes, 'traceparent')) return fields.traceparent
      return name.spells(bytes, 'x-b3-spanid') ? fields.b3SpanId : undefined
    case 12:
      if (name.spells(bytes, 'x-b3-traceid')) return fields.b3TraceId
      return name.spells(bytes, 'x-b3-sampled') ? fields.b3Sampled : undefined
    default:
      return undefined
  }
}

/** A list of `key=value` per §3.3.1 of Trace Context; empty members are allowed, an empty list is not valid. */
function isState(bytes: Uint8Array, length: number): boolean {
  let members = 0
  for (let from = 0; from < length; ) {
    let stop = from
    while (stop < length && bytes[stop] !== comma) stop++
    let start = from
    let end = stop
    while (start < end && isBlank(bytes[start]!)) start++
    while (end > start && isBlank(bytes[end - 1]!)) end--
    if (end > start) {
      members++
      if (members > maxStateMembers || !isMember(bytes, start, end)) return false
    }
    from = stop + 1
  }
  return members > 0
}

function isMember(bytes: Uint8Array, start: number, end: number): boolean {
  let sign = start
  while (sign < end && keyBytes[bytes[sign]!] !== 0) sign++
  // A key begins with a letter; level 2 also allows a digit.
  if (keyBytes[bytes[start]!] !== 1 || sign - start > maxStateKey || bytes[sign] !== equalsSign) return false
  if (sign + 1 >= end || end - sign - 1 > maxStateValue) return false
  for (let at = sign + 1; at < end; at++) {
    const byte = bytes[at]!
    if (byte < 0x20 || byte > 0x7e || byte === equalsSign) return false
  }
  return true
}

/** 1 for bytes that may begin a key, 2 for those allowed after the first. */
const keyBytes = new Uint8Array(256)
for (const byte of Buffer.from('abcdefghijklmnopqrstuvwxyz0123456789')) keyBytes[byte] = 1
for (const byte of Buffer.from('_-*/@')) keyBytes[byte] = 2
