// The messages of the PostgreSQL protocol 3 (PostgreSQL 15, section 55.7): a type, a length that includes itself, a
// body.

import { utf8Text } from '../../../../foundation/lib/utf8-text.ts'
import { maxStatementBytes } from '../sql/statements.ts'

/** Codes of the startup phase, where a length comes first. */
export const startupCode = {
  cancel: 80_877_102,
  ssl: 80_877_103,
  gss: 80_877_104,
} as const

/** The server accepts no longer startup message (MAX_STARTUP_PACKET_LENGTH). */
export const maxStartupBytes = 10_000

/** Bytes of a message's type and length. */
export const headBytes = 5

/** Minimum and maximum length by type; 0 for an invalid type. */
interface Lengths {
  readonly least: Uint32Array
  readonly most: Uint32Array
}

/** Maximum bytes in which the names of a message are searched for. */
export const nameBytes = 256

/** PQ_LARGE_MESSAGE_LIMIT. */
const large = 0x3fff_fffe

function lengthsOf(table: Readonly<Record<string, readonly [least: number, most: number]>>): Lengths {
  const least = new Uint32Array(256)
  const most = new Uint32Array(256)
  for (const [type, bounds] of Object.entries(table)) {
    least[type.charCodeAt(0)] = bounds[0]
    most[type.charCodeAt(0)] = bounds[1]
  }
  return { least, most }
}

/** Messages of clients. */
export const requestLengths: Lengths = lengthsOf({
  B: [12, large],
  C: [6, 1024],
  D: [6, 1024],
  E: [9, 1024],
  F: [14, large],
  H: [4, 4],
  P: [8, large],
  Q: [5, large],
  S: [4, 4],
  X: [4, 4],
  c: [4, 4],
  d: [4, large],
  f: [5, 65_536],
  p: [4, 65_536],
})

/** Messages of servers. */
export const responseLengths: Lengths = lengthsOf({
  1: [4, 4],
  2: [4, 4],
  3: [4, 4],
  A: [10, 30_000],
  C: [5, 30_000],
  D: [6, large],
  E: [5, 30_000_000],
  G: [7, 30_000],
  H: [7, 30_000],
  I: [4, 4],
  K: [8, 1024],
  N: [5, 30_000_000],
  R: [8, 30_000],
  S: [6, 30_000],
  T: [6, 30_000_000],
  V: [8, large],
  W: [7, 30_000],
  Z: [5, 5],
  c: [4, 4],
  d: [4, large],
  n: [4, 4],
  s: [4, 4],
  t: [6, 300_000],
  v: [8, 30_000],
})

/** Length of the message whose head is at `at`, including its type byte; 0 if there is no such message. */
export function messageLength(bytes: Buffer, at: number, lengths: Lengths): number {
  const type = bytes[at]!
  const length = bytes.readUInt32BE(at + 1)
  return length >= lengths.least[type]! && length <= lengths.most[type]! && length >= 4 ? length + 1 : 0
}

/**
 * Whether `bytes[at, end)` are messages, when framing is unknown: heads follow each other up to the end, and none has
 * an implausible length.
 */
export function isLikelyFramed(bytes: Buffer, at: number, end: number, lengths: Lengths): boolean {
  if (end - at < headBytes) return false
  for (let next = at; next + headBytes <= end; ) {
    const length = messageLength(bytes, next, lengths)
    if (length === 0 || length > 0xff_ffff) return false
    next += length
  }
  return true
}

/** Bytes of ReadyForQuery. */
const readyBytes = 6

/** True if there is a ReadyForQuery at `at`. */
function isReady(bytes: Buffer, at: number): boolean {
  const state = bytes[at + 5]
  return (
    bytes[at] === 0x5a &&
    bytes.readUInt32BE(at + 1) === 5 &&
    (state === 0x49 || state === 0x54 || state === 0x45)
  )
}

/**
 * True if `bytes[at, end)` end with ReadyForQuery. Every message that may precede it ends with a zero, with the length
 * 4 or with the state of another ReadyForQuery.
 */
export function endsReady(bytes: Buffer, at: number, end: number): boolean {
  const ready = end - readyBytes
  if (ready < at || !isReady(bytes, ready)) return false
  if (ready === at) return true
  const before = bytes[ready - 1]!
  return before === 0 || before === 4 || (ready - readyBytes >= at && isReady(bytes, ready - readyBytes))
}

/** Number of bytes at the end that may be the beginning of ReadyForQuery. */
export function readyBegun(bytes: Buffer, at: number, end: number): number {
  for (let length = Math.min(readyBytes - 1, end - at); length > 0; length--) {
    const from = end - length
    if (bytes[from] !== 0x5a) continue
    let same = true
    for (let i = 1; i < length; i++) same &&= bytes[from + i] === (i === 4 ? 5 : 0)
    if (same) return length
  }
  return 0
}

/** Offset of the zero that terminates the text at `at`; `end` if there is none before it. */
export function textEnd(bytes: Buffer, at: number, end: number): number {
  let zero = at
  while (zero < end && bytes[zero] !== 0) zero++
  return zero
}

/**
 * The database in the parameters of a startup message, which are alternating names and values. Its default is the
 * user's name.
 */
export function databaseOf(bytes: Buffer, start: number, end: number): string {
  let database = ''
  for (let at = start; at < end && bytes[at] !== 0; ) {
    const nameEnd = textEnd(bytes, at, end)
    const valueEnd = textEnd(bytes, nameEnd + 1, end)
    const name = bytes.toString('latin1', at, nameEnd)
    if (name === 'database' || (name === 'user' && database === ''))
      database = utf8Text(bytes, nameEnd + 1, valueEnd)
    at = valueEnd + 1
  }
  return database
}

/** Maximum bytes read of the body of a client's message. */
export function requestBytes(type: number): number {
  switch (type) {
    case 0x51: // Query
      return maxStatementBytes
    case 0x50: // Parse
      return maxStatementBytes + nameBytes
    case 0x42: // Bind
    case 0x45: // Execute
    case 0x43: // Close
      return nameBytes
    default:
      return 0
  }
}

/** Maximum bytes read of the body of a server's message. */
export function answerBytes(type: number): number {
  switch (type) {
    case 0x45: // ErrorResponse: its SQLSTATE is the third field
    case 0x53: // ParameterStatus
      return 128
    case 0x52: // Authentication
      return 4
    case 0x5a: // ReadyForQuery
      return 1
    default:
      return 0
  }
}
