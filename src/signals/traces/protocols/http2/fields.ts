import { HpackFields, HpackNames } from '../../../../foundation/lib/hpack.ts'
import { isMethod } from '../../../../foundation/lib/http-head.ts'
import type { TraceContext } from '../../../../foundation/model/stream.ts'
import { TraceFields } from '../../../../foundation/model/trace-headers.ts'
import type { KeptHead, KeptHeads } from '../http1/kept-heads.ts'

const list = [
  ':method',
  ':path',
  ':authority',
  ':scheme',
  ':status',
  'host',
  'content-type',
  'user-agent',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'grpc-status',
  'grpc-timeout',
  'traceparent',
  'tracestate',
  'b3',
  'x-b3-traceid',
  'x-b3-spanid',
  'x-b3-sampled',
  'x-b3-flags',
] as const
const names = new HpackNames(list)
const numberOf = (name: (typeof list)[number]) => names.list.indexOf(name)

/** Numbers of the fields that are read. */
export const Field = {
  method: numberOf(':method'),
  path: numberOf(':path'),
  authority: numberOf(':authority'),
  scheme: numberOf(':scheme'),
  status: numberOf(':status'),
  host: numberOf('host'),
  contentType: numberOf('content-type'),
  userAgent: numberOf('user-agent'),
  forwarded: numberOf('forwarded'),
  forwardedFor: numberOf('x-forwarded-for'),
  forwardedHost: numberOf('x-forwarded-host'),
  forwardedProto: numberOf('x-forwarded-proto'),
  grpcStatus: numberOf('grpc-status'),
  grpcTimeout: numberOf('grpc-timeout'),
  traceparent: numberOf('traceparent'),
  tracestate: numberOf('tracestate'),
  b3: numberOf('b3'),
  b3TraceId: numberOf('x-b3-traceid'),
  b3SpanId: numberOf('x-b3-spanid'),
  b3Sampled: numberOf('x-b3-sampled'),
  b3Flags: numberOf('x-b3-flags'),
} as const

/** A yes/no answer that a header block may leave open. */
export const Tristate = { no: 0, yes: 1, unknown: 2 } as const
export type Tristate = (typeof Tristate)[keyof typeof Tristate]

/** The fields of the last block read, shared by all connections, because one block is read at a time. */
export const fields = new HpackFields(names, ['tracestate'])
const trace = new TraceFields()

/** Whether the block may contain this field although it was not decoded. */
function mayHold(number: number): boolean {
  return fields.unknown > 0 || fields.known[number] !== 0
}

/** Whether the content is gRPC. gRPC-Web counts as HTTP, because its status is in the body. */
export function isGrpc(): Tristate {
  if (fields.has(Field.contentType)) {
    const behind =
      fields.starts[Field.contentType]! + grpcType.length < fields.ends[Field.contentType]!
        ? fields.bytes[fields.starts[Field.contentType]! + grpcType.length]!
        : semicolon
    return fields.begins(Field.contentType, grpcType) && (behind === semicolon || behind === plus)
      ? Tristate.yes
      : Tristate.no
  }
  return mayHold(Field.contentType) ? Tristate.unknown : Tristate.no
}

/** `:status`, 0 if unknown. */
export function statusOf(): number {
  const value = numberIn(Field.status)
  return value >= 100 && value <= 999 ? value : 0
}

/** `grpc-status`; -1: there is none; -2: it cannot be determined. */
export function grpcStatusOf(): number {
  if (!fields.has(Field.grpcStatus)) return mayHold(Field.grpcStatus) ? -2 : -1
  return Math.min(numberIn(Field.grpcStatus), 1_000)
}

/** `grpc-timeout` in nanoseconds, 0 if there is none (grpc/doc/PROTOCOL-HTTP2.md). */
export function timeoutOf(): number {
  if (!fields.has(Field.grpcTimeout)) return 0
  const end = fields.ends[Field.grpcTimeout]! - 1
  const unit = units.get(fields.bytes[end]!)
  return unit === undefined ? 0 : numberUpTo(fields.starts[Field.grpcTimeout]!, end) * unit
}

/** A block without any request pseudo-fields: as far as its decoded fields show, a trailer. */
export function isTrailer(): boolean {
  const { known } = fields
  return !known[Field.method] && !known[Field.path] && !known[Field.scheme] && !known[Field.authority]
}

/** Reads the request's trace context. */
export function readContext(context: TraceContext): void {
  trace.clear()
  setRange(Field.traceparent, trace.traceparent)
  setRange(Field.b3, trace.b3)
  setRange(Field.b3TraceId, trace.b3TraceId)
  setRange(Field.b3SpanId, trace.b3SpanId)
  setRange(Field.b3Sampled, trace.b3Sampled)
  setRange(Field.b3Flags, trace.b3Flags)
  if (fields.has(Field.tracestate))
    trace.addState(fields.bytes, fields.starts[Field.tracestate]!, fields.ends[Field.tracestate]!)
  trace.settle(fields.bytes, context)
}

/**
 * Keeps the request's head as HTTP/1 would write it (RFC 9113, section 8.3, lists the counterparts), with stand-ins
 * for unknown parts: the method `_OTHER`, and the path `/`, in which case it returns false.
 */
export function keepHead(heads: KeptHeads, head: KeptHead): boolean {
  const hasMethod =
    fields.has(Field.method) &&
    isMethod(fields.bytes, fields.starts[Field.method]!, fields.ends[Field.method]!)
  const hasPath = isPlain(Field.path) && isPath()
  // CONNECT has no path (section 8.5).
  const tunnel = !hasPath && fields.is(Field.method, 'CONNECT') && isPlain(Field.authority)
  if (hasMethod) keepValue(heads, head, Field.method)
  else keepText(heads, head, otherMethod)
  keepText(heads, head, blank)
  if (hasPath) keepValue(heads, head, Field.path)
  else if (tunnel) keepValue(heads, head, Field.authority)
  else keepText(heads, head, slash)
  keepText(heads, head, version)
  keepField(heads, head, fields.has(Field.authority) ? Field.authority : Field.host, host)
  keepField(heads, head, Field.contentType, contentType)
  keepField(heads, head, Field.userAgent, userAgent)
  keepField(heads, head, Field.forwarded, forwarded)
  keepField(heads, head, Field.forwardedFor, forwardedFor)
  keepField(heads, head, Field.forwardedHost, forwardedHost)
  keepField(heads, head, Field.forwardedProto, forwardedProto)
  keepText(heads, head, lineEnd)
  return hasPath || tunnel
}

const grpcType = 'application/grpc'
const semicolon = 0x3b
const plus = 0x2b

const otherMethod = Buffer.from('_OTHER')
const blank = Buffer.from(' ')
const slash = Buffer.from('/')
const version = Buffer.from(' HTTP/1.1\r\n')
const lineEnd = Buffer.from('\r\n')
const host = Buffer.from('host: ')
const contentType = Buffer.from('content-type: ')
const userAgent = Buffer.from('user-agent: ')
const forwarded = Buffer.from('forwarded: ')
const forwardedFor = Buffer.from('x-forwarded-for: ')
const forwardedHost = Buffer.from('x-forwarded-host: ')
const forwardedProto = Buffer.from('x-forwarded-proto: ')

/** Nanoseconds per unit of a timeout: hours, minutes, seconds, milliseconds, microseconds, nanoseconds. */
const units = new Map(
  Object.entries({ H: 3.6e12, M: 6e10, S: 1e9, m: 1e6, u: 1e3, n: 1 }).map(([unit, ns]) => [
    unit.charCodeAt(0),
    ns,
  ]),
)

function setRange(number: number, range: { set(start: number, end: number): void }): void {
  if (fields.has(number)) range.set(fields.starts[number]!, fields.ends[number]!)
}

function numberIn(number: number): number {
  return fields.has(number) ? numberUpTo(fields.starts[number]!, fields.ends[number]!) : 0
}

/** The decimal number in the fields' bytes, up to its end; 1,000 if there is anything else. */
function numberUpTo(start: number, end: number): number {
  if (start >= end || end - start > 8) return 1_000
  let value = 0
  for (let at = start; at < end; at++) {
    const digit = fields.bytes[at]! - 0x30
    if (digit < 0 || digit > 9) return 1_000
    value = value * 10 + digit
  }
  return value
}

/** It has a value without blanks and control characters, which would end it in a line of HTTP/1. */
function isPlain(number: number): boolean {
  if (!fields.has(number) || fields.starts[number] === fields.ends[number]) return false
  for (let at = fields.starts[number]!; at < fields.ends[number]!; at++)
    if (fields.bytes[at]! <= 0x20 || fields.bytes[at] === 0x7f) return false
  return true
}

function isPath(): boolean {
  const at = fields.starts[Field.path]!
  return fields.bytes[at] === 0x2f || fields.is(Field.path, '*')
}

function keepText(heads: KeptHeads, head: KeptHead, text: Buffer): void {
  heads.append(head, text, 0, text.length)
}

function keepValue(heads: KeptHeads, head: KeptHead, number: number): void {
  heads.append(head, fields.bytes, fields.starts[number]!, fields.ends[number]!)
}

/** Values with line ends are malformed (RFC 9113, section 8.2.1) and left out. */
function keepField(heads: KeptHeads, head: KeptHead, number: number, text: Buffer): void {
  if (!fields.has(number)) return
  for (let at = fields.starts[number]!; at < fields.ends[number]!; at++)
    if (fields.bytes[at] === 0x0a || fields.bytes[at] === 0x0d) return
  keepText(heads, head, text)
  keepValue(heads, head, number)
  keepText(heads, head, lineEnd)
}
