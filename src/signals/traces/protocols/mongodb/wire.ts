// Numbers of the MongoDB wire protocol (mongodb.com/docs/manual/reference/mongodb-wire-protocol). Everything is little
// endian.

export const opcode = {
  reply: 1,
  update: 2001,
  insert: 2002,
  query: 2004,
  getMore: 2005,
  delete: 2006,
  killCursors: 2007,
  compressed: 2012,
  message: 2013,
} as const

/** Flags of OP_MSG. Readers must reject unknown flags among the lower 16 bits, so there are no others. */
export const flag = { checksum: 1, moreToCome: 2, unknown: 0xfffc } as const

/** Length, number, number of the answered request, opcode. */
export const headBytes = 16

/** Minimum size of a message by opcode: head and fixed fields. 0: there is no such opcode. */
function leastOf(code: number): number {
  if (code === opcode.message) return 26
  if (code === opcode.reply) return 36
  if (code === opcode.compressed) return 25
  if (code === opcode.query) return 34
  return code === opcode.update ||
    code === opcode.insert ||
    (code >= opcode.getMore && code <= opcode.killCursors)
    ? 24
    : 0
}

/** A server accepts 48 MB (maxMessageSizeBytes); replies may be a little longer. */
const maxLength = 64 * 2 ** 20

/** Length of the message whose head is at `at`; 0 if there is none. */
export function messageLength(bytes: Buffer, at: number): number {
  const length = bytes.readInt32LE(at)
  const least = leastOf(bytes.readInt32LE(at + 12))
  return least > 0 && length >= least && length <= maxLength ? length : 0
}

/**
 * Whether a message certainly begins there: its head is valid, and so is the start of an OP_MSG. `answers`: whether it
 * is a response. Undefined if there are too few bytes.
 */
export function messageBegins(bytes: Buffer, at: number, end: number, answers: boolean): boolean | undefined {
  if (end - at < 4) return undefined
  const length = bytes.readInt32LE(at)
  if (length < 24 || length > maxLength) return false
  if (end - at < headBytes) return undefined
  if (messageLength(bytes, at) === 0 || (bytes.readInt32LE(at + 8) !== 0) !== answers) return false
  if (bytes.readInt32LE(at + 12) !== opcode.message) return true
  if (end - at < 25) return undefined
  const section = bytes.readInt32LE(at + 21)
  return (
    (bytes.readUInt32LE(at + 16) & flag.unknown) === 0 &&
    bytes[at + 20]! <= 1 &&
    section >= 5 &&
    section <= length - 21
  )
}
