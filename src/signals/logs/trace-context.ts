import { hexDigit } from '../../foundation/lib/ascii.ts'
import type { LogRecord } from '../../foundation/model/log.ts'

/** Length of text searched for IDs, in UTF-16 units. */
const searched = 8192

/** Whether a text is a trace ID: 16 bytes in hexadecimal digits, or 8 as in B3. */
export function isTraceId(text: string): boolean {
  return (text.length === 32 || text.length === 16) && isId(text, 0, text.length)
}

export function isSpanId(text: string): boolean {
  return text.length === 16 && isId(text, 0, 16)
}

/** Whether `{version}-{trace id}-{span id}-{flags}` is at an offset (W3C Trace Context level 2, §3.2). */
export function isTraceparent(text: string, from = 0): boolean {
  if (text[from + 2] !== '-' || text[from + 35] !== '-' || text[from + 52] !== '-') return false
  return (
    hexLength(text, from, 3) === 2 &&
    hexLength(text, from + 53, 3) === 2 &&
    isId(text, from + 3, 32) &&
    isId(text, from + 36, 16)
  )
}

/** Sets the trace ID from hexadecimal digits; one of 8 bytes (B3) is padded with zeros in front. False if invalid. */
export function setTraceId(record: LogRecord, text: string, from = 0, to = text.length): boolean {
  if (to - from === 32) return setId(record.traceId, 0, text, from)
  if (to - from !== 16 || !setId(record.traceId, 8, text, from)) return false
  record.traceId.fill(0, 0, 8)
  return true
}

/** Sets the span ID from 16 hexadecimal digits. False if invalid. */
export function setSpanId(record: LogRecord, text: string, from = 0, to = text.length): boolean {
  return to - from === 16 && setId(record.spanId, 0, text, from)
}

/** Sets trace ID, span ID and flags. False, and the record unchanged, if it is not a traceparent. */
export function setTraceparent(record: LogRecord, text: string, from = 0): boolean {
  if (!isTraceparent(text, from)) return false
  setTraceId(record, text, from + 3, from + 35)
  setSpanId(record, text, from + 36, from + 52)
  record.flags = (16 * hexDigit(text.charCodeAt(from + 53)) + hexDigit(text.charCodeAt(from + 54))) & 3
  return true
}

/**
 * Finds IDs in a line of text, as in `trace_id=… span_id=…`, `traceId: "…"` or `traceparent=…`. Digits
 * without a name before them are never IDs: a hash looks the same.
 */
export function findTraceContext(record: LogRecord, line: string): boolean {
  const at = idAfter(line, 'trace')
  if (at < 0) return false
  if (line[at + 2] === '-') return setTraceparent(record, line, at)
  if (!setTraceId(record, line, at, at + hexLength(line, at, 33))) return false
  const spanAt = idAfter(line, 'span')
  if (spanAt >= 0) setSpanId(record, line, spanAt, spanAt + hexLength(line, spanAt, 17))
  return true
}

/** Start of the value of the first field such as `trace_id`, for `trace` also `traceparent`; -1 for none. */
function idAfter(line: string, word: 'trace' | 'span'): number {
  const small = valueAfter(line, word, word.slice(1))
  return small >= 0 ? small : valueAfter(line, word, word.slice(1).toUpperCase())
}

/** `tail`: the word without its first letter, which programs write in either case (`traceId`, `TraceId`). */
function valueAfter(line: string, word: 'trace' | 'span', tail: string): number {
  for (let at = line.indexOf(tail); at >= 0 && at < searched; at = line.indexOf(tail, at + tail.length)) {
    if ((line.charCodeAt(at - 1) | 0x20) !== word.charCodeAt(0) || !beginsName(line, at - 1)) continue
    const value = fieldValue(line, at + tail.length)
    if (value < 0) continue
    const length = hexLength(line, value, 33)
    if (length === (word === 'trace' ? 32 : 16)) return value
    if (word === 'trace' && length === 2 && hexLength(line, value + 3, 33) === 32) return value
  }
  return -1
}

/**
 * Whether a name starts there, or a part of one after a separator, as in `otel.trace_id`; a parent ID does not count.
 */
function beginsName(line: string, at: number): boolean {
  const before = line.charCodeAt(at - 1)
  if (isNameSign(before)) return line.slice(Math.max(0, at - 7), at - 1).toLowerCase() !== 'parent'
  return !((before >= 0x30 && before <= 0x39) || ((before | 0x20) >= 0x61 && (before | 0x20) <= 0x7a))
}

/** Start of the value of a field whose name continues at `from` with `id`, `_id` or `parent`; -1 for other names. */
function fieldValue(line: string, from: number): number {
  let at = from
  if (isNameSign(line.charCodeAt(at))) at++
  if (spells(line, at, 'id')) at += 2
  else if (spells(line, at, 'parent')) at += 6
  else return -1
  at = behindQuote(line, at)
  while (line[at] === ' ') at++
  if (line[at] !== '=' && line[at] !== ':') return -1
  at++
  while (line[at] === ' ') at++
  return behindQuote(line, at)
}

function spells(line: string, at: number, word: string): boolean {
  for (let i = 0; i < word.length; i++)
    if ((line.charCodeAt(at + i) | 0x20) !== word.charCodeAt(i)) return false
  return true
}

/** JSON inside a text has escaped quotes. */
function behindQuote(line: string, from: number): number {
  const at = line[from] === '\\' ? from + 1 : from
  return line[at] === '"' || line[at] === "'" ? at + 1 : from
}

function isNameSign(code: number): boolean {
  return code === 0x5f || code === 0x2e || code === 0x2d
}

/** Number of hexadecimal digits at an offset, at most `most`. */
function hexLength(text: string, from: number, most: number): number {
  let length = 0
  while (length < most && hexDigit(text.charCodeAt(from + length)) >= 0) length++
  return length
}

/** Whether there are so many digits that are not all zero. */
function isId(text: string, from: number, digits: number): boolean {
  if (hexLength(text, from, digits) !== digits) return false
  for (let i = from; i < from + digits; i++) if (text.charCodeAt(i) !== 0x30) return true
  return false
}

/** Fills an ID from its byte `first` on. False, and the ID unchanged, if there is none. */
function setId(id: Uint8Array, first: number, text: string, from: number): boolean {
  if (!isId(text, from, 2 * (id.length - first))) return false
  for (let i = first, at = from; i < id.length; i++, at += 2)
    id[i] = 16 * hexDigit(text.charCodeAt(at)) + hexDigit(text.charCodeAt(at + 1))
  return true
}
