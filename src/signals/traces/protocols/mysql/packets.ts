// Packets of the MySQL protocol ("MySQL Internals, Client/Server Protocol"; MariaDB's is the same except for
// extensions): three bytes of length, low byte first, a sequence number, a payload.

import { maxStatementBytes } from '../sql/statements.ts'

/** Bytes before a payload. */
export const headBytes = 4
/** Maximum bytes read of a payload without text, and of a handshake payload. */
export const shownBytes = 32
export const handshakeBytes = 1_024
/** A payload of this length continues in the next packet. */
export const fullPacket = 0xff_ffff

/** Bits of the capabilities that both sides negotiate. */
export const capability = {
  connectWithDatabase: 0x8,
  compress: 0x20,
  ssl: 0x800,
  secureConnection: 0x8000,
  authLengthEncoded: 0x20_0000,
  optionalMetadata: 0x200_0000,
  zstd: 0x400_0000,
  queryAttributes: 0x800_0000,
} as const

/** Bits of the server's status. */
export const status = { moreResults: 0x8, cursor: 0x40, noBackslashEscapes: 0x200 } as const

export const command = {
  quit: 0x01,
  initDatabase: 0x02,
  query: 0x03,
  fieldList: 0x04,
  statistics: 0x09,
  processInfo: 0x0a,
  changeUser: 0x11,
  binlogDump: 0x12,
  prepare: 0x16,
  execute: 0x17,
  sendLongData: 0x18,
  closeStatement: 0x19,
  fetch: 0x1c,
  binlogDumpGtid: 0x1e,
  bulkExecute: 0xfa,
} as const

/** Minimum and maximum length of a command's payload; 0 for an invalid command. */
const least = new Uint8Array(256)
const most = new Uint32Array(256)
const lengths: readonly (readonly [number, number, number])[] = [
  [command.quit, 1, 1],
  [command.initDatabase, 2, 1024],
  [command.query, 2, fullPacket],
  [command.fieldList, 2, 4096],
  [0x05, 2, 1024], // CREATE_DB
  [0x06, 2, 1024], // DROP_DB
  [0x07, 2, 2], // REFRESH
  [0x08, 1, 2], // SHUTDOWN
  [command.statistics, 1, 1],
  [command.processInfo, 1, 1],
  [0x0c, 5, 5], // PROCESS_KILL
  [0x0d, 1, 1], // DEBUG
  [0x0e, 1, 1], // PING
  [command.changeUser, 4, 65_536],
  [command.binlogDump, 11, 4096],
  [0x15, 18, 4096], // REGISTER_SLAVE
  [command.prepare, 2, fullPacket],
  [command.execute, 10, fullPacket],
  [command.sendLongData, 7, fullPacket],
  [command.closeStatement, 5, 5],
  [0x1a, 5, 5], // STMT_RESET
  [0x1b, 3, 3], // SET_OPTION
  [command.fetch, 9, 9],
  [command.binlogDumpGtid, 11, fullPacket],
  [0x1f, 1, 1], // RESET_CONNECTION
  [command.bulkExecute, 7, fullPacket],
]
for (const [code, fewest, greatest] of lengths) {
  least[code] = fewest
  most[code] = greatest
}

/** Length of the payload after the head at `at`. */
export function payloadLength(bytes: Buffer, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16)
}

/** True if `code` is a command whose payload may have `length` bytes. */
export function isCommand(code: number, length: number): boolean {
  return least[code] !== 0 && length >= least[code]! && length <= most[code]!
}

/**
 * Whether a call that begins with `bytes[at, end)` begins with a command, when framing is unknown: it fills the call,
 * or other commands follow it, or it is a text that continues.
 */
export function isLikelyRequest(bytes: Buffer, at: number, end: number): boolean {
  for (let next = at; next < end; ) {
    if (end - next <= headBytes || bytes[next + 3] !== 0) return false
    const length = payloadLength(bytes, next)
    const code = bytes[next + headBytes]!
    if (!isCommand(code, length)) return false
    next += headBytes + length
    if (next > end) return code === command.query || code === command.prepare || code === command.execute
  }
  return true
}

/** Whether `bytes[at, end)` are consecutive packets, up to the end. */
export function isLikelyResponse(bytes: Buffer, at: number, end: number): boolean {
  if (end - at <= headBytes) return false
  let sequence = bytes[at + 3]!
  for (let next = at; next + headBytes <= end; ) {
    const length = payloadLength(bytes, next)
    if (length === 0 || bytes[next + 3] !== sequence) return false
    sequence = (sequence + 1) & 0xff
    next += headBytes + length
    // A packet that continues after the end must begin a response, because any bytes may look like the head of a long
    // packet.
    if (next > end && next - headBytes - length === at) return bytes[at + 3] === 1
  }
  return true
}

/** Possible ends of a response. */
export const endsNot = 0
const endsOpen = 1
export const endsDone = 2

/**
 * Whether `bytes[at, end)` end with a packet that ends a result: `endsDone`, or `endsOpen` if further results follow.
 * Such a packet begins with 0xfe, as no text row does; an error begins with 0xff.
 */
export function responseEnd(bytes: Buffer, at: number, end: number): number {
  for (let head = Math.max(at, end - 64); head + headBytes + 5 <= end; head++) {
    const length = end - head - headBytes
    if (payloadLength(bytes, head) !== length) continue
    const first = bytes[head + headBytes]
    if (first === 0xff && length >= 9 && bytes[head + headBytes + 3] === 0x23) return endsDone
    if (first !== 0xfe || length === 6) continue
    const flags = statusOf(bytes, head + headBytes, end)
    if (flags >= 0) return (flags & status.moreResults) === 0 ? endsDone : endsOpen
  }
  return endsNot
}

/** Number of bytes at the end that may be the beginning of such a packet. */
export function endBegun(bytes: Buffer, at: number, end: number): number {
  for (let length = Math.min(10, end - at); length > 0; length--) {
    const from = end - length
    const size = bytes[from]
    if (size !== 5 && size !== 7) continue
    if (length > 1 && bytes[from + 1] !== 0) continue
    if (length > 2 && bytes[from + 2] !== 0) continue
    if (length > 4 && bytes[from + 4] !== 0xfe) continue
    if (length < headBytes + size) return length
  }
  return 0
}

/**
 * The server's status in the payload `bytes[at, end)` of EOF (5 bytes) or OK (header, two numbers, status); -1 if there
 * is none.
 */
export function statusOf(bytes: Buffer, at: number, end: number): number {
  if (bytes[at] === 0xfe && end - at === 5) return bytes.readUInt16LE(at + 3)
  const first = at + 1 + lengthSize(bytes[at + 1] ?? 0)
  const second = first + lengthSize(bytes[first] ?? 0)
  return second + 2 <= end ? bytes.readUInt16LE(second) : -1
}

/** Bytes of the length-encoded number that begins with `first`. */
export function lengthSize(first: number): number {
  if (first < 0xfc) return 1
  return first === 0xfc ? 3 : first === 0xfd ? 4 : 9
}

/** The length-encoded number at `at`; -1 if it is above 2^32 or incomplete. */
export function lengthEncoded(bytes: Buffer, at: number, end: number): number {
  const first = bytes[at] ?? 0
  if (at + lengthSize(first) > end) return -1
  if (first < 0xfb) return first
  if (first === 0xfc) return bytes.readUInt16LE(at + 1)
  if (first === 0xfd) return bytes.readUIntLE(at + 1, 3)
  if (first === 0xfe && bytes.readUInt32LE(at + 5) === 0) return bytes.readUInt32LE(at + 1)
  return -1
}

/** Maximum bytes read of a command. */
export function commandBytes(code: number): number {
  switch (code) {
    case command.query:
    case command.prepare:
      return maxStatementBytes
    case command.initDatabase:
    case command.changeUser:
      return handshakeBytes
    default:
      return shownBytes
  }
}
