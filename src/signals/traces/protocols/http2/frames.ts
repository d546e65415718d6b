/** Frame types of RFC 9113, section 6. */
export const FrameType = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

/** Flags; the first one also means ACK. */
export const Flag = { endStream: 1, endHeaders: 4, padded: 8, priority: 0x20 } as const

export const frameHeadBytes = 9
/** The client's connection preface (section 3.4). */
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

/** The head of one frame. Reused. */
export class FrameHead {
  length = 0
  type = 0
  flags = 0
  stream = 0

  /** Reads the 9 bytes at `at`. */
  read(bytes: Uint8Array, at: number): void {
    this.length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!
    this.type = bytes[at + 3]!
    this.flags = bytes[at + 4]!
    this.stream = numberAt(bytes, at + 5) & 0x7fffffff
  }

  /** Whether the protocol allows it (section 6, rules of each type). Unknown types must be ignored (section 4.1). */
  get valid(): boolean {
    const { length, stream } = this
    switch (this.type) {
      case FrameType.data:
      case FrameType.continuation:
        return stream !== 0
      case FrameType.headers:
      case FrameType.pushPromise:
        return stream !== 0 && length > 0
      case FrameType.priority:
        return stream !== 0 && length === 5
      case FrameType.reset:
        return stream !== 0 && length === 4
      case FrameType.settings:
        return stream === 0 && length % 6 === 0 && ((this.flags & 1) === 0 || length === 0)
      case FrameType.ping:
        return stream === 0 && length === 8
      case FrameType.goAway:
        return stream === 0 && length >= 8
      case FrameType.windowUpdate:
        return length === 4
      default:
        return true
    }
  }

  /** Whether it is likely to be a frame at all: a type in use, only its flags, and a usual length. */
  get likely(): boolean {
    return (
      this.type < likelyFlags.length &&
      this.valid &&
      (this.flags & ~likelyFlags[this.type]!) === 0 &&
      this.length <= likelyLengths[this.type]!
    )
  }
}

/** An unsigned number of four bytes, without its highest bit. */
export function numberAt(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! & 0x7f) << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
}

/** Number of available bytes that match the preface: fewer than are available if other bytes come first. */
export function prefaceLength(bytes: Uint8Array, at: number, end: number): number {
  const count = Math.min(preface.length, end - at)
  for (let i = 0; i < count; i++) if (bytes[at + i] !== preface[i]) return i
  return count
}

const likelyFlags = [0x09, 0x2d, 0, 0, 1, 0x0c, 1, 0, 0]
const likelyLengths = [2 ** 20, 16_384, 5, 4, 240, 16_384, 8, 1_024, 4]
