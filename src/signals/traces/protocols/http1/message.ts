import { hexDigit } from '../../../../foundation/lib/ascii.ts'
import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import { isBlank, lower } from '../../../../foundation/lib/byte-range.ts'
import { Passage } from '../framing.ts'

/** The part of a message that the next byte belongs to. */
export const Part = {
  start: 0,
  head: 1,
  /** A body of announced length. */
  body: 2,
  chunkSize: 3,
  chunk: 4,
  trailer: 5,
  /** Everything until the connection ends. */
  rest: 6,
  /** In chunks whose sizes were not seen: the end is searched for. */
  adrift: 7,
} as const
export type Part = (typeof Part)[keyof typeof Part]

/** Result of parsing a line of a head. */
export const Line = { more: 0, last: 1, foreign: 2 } as const
export type Line = (typeof Line)[keyof typeof Line]

export const Start = { no: 0, yes: 1, more: 2 } as const
export type Start = (typeof Start)[keyof typeof Start]

/** The current message of one direction of a connection, as far as framing is concerned (RFC 9112, section 6). */
export class Message {
  readonly request: boolean
  part: Part = Part.start
  /** The first line is still to come; the current line is the rest of a long one. */
  first = true
  long = false
  status = 0
  /** Its bytes, counted when it is over, and those of its head. */
  bytes = 0
  headBytes = 0
  /** Nanoseconds of its direction's newest bytes, and the bytes received so far. */
  lastNs = 0
  received = 0
  readonly passage = new Passage()
  /** Available bytes without a line end, which need not be scanned again; and those that were kept. */
  scanned = 0
  kept = 0
  #startOffset = 0
  #length = -1
  #chunked = false
  #coded = false
  #chunkSize = 0
  #extension = false
  #lineBytes = 0

  constructor(request: boolean) {
    this.request = request
  }

  /** The next message begins at the next byte. */
  reset(): void {
    this.part = Part.start
    this.bytes = 0
    this.headBytes = 0
    this.scanned = 0
    this.kept = 0
  }

  /** Its first byte is at `flow.at`. */
  begin(flow: ByteFlow): void {
    this.part = Part.head
    this.first = true
    this.long = false
    this.status = 0
    this.bytes = 0
    this.headBytes = 0
    this.scanned = 0
    this.kept = 0
    this.#startOffset = flow.offset
    this.#length = -1
    this.#chunked = false
    this.#coded = false
  }

  /** End offset of a message of known length. */
  get endOffset(): number {
    return this.#startOffset + this.headBytes + Math.max(0, this.#length)
  }

  /** Sets the size from its end at `offset`. */
  count(offset: number): void {
    this.bytes = Math.max(0, offset - this.#startOffset)
  }

  /** No more of it will come. */
  breakOff(): void {
    this.count(this.received)
    if (this.part === Part.head) this.headBytes = this.bytes
  }

  /** Parses the line of the head in `bytes[start, end)`, without its line feed. */
  line(bytes: Buffer, start: number, end: number): Line {
    let to = end
    while (to > start && (bytes[to - 1] === carriageReturn || isBlank(bytes[to - 1]!))) to--
    if (this.first) {
      this.first = false
      this.long = false
      return this.request ? requestLine(bytes, start, to) : this.#statusLine(bytes, start, to)
    }
    if (this.long) {
      this.long = false
      return Line.more
    }
    if (to === start) return Line.last
    const letter = lower(bytes[start]!)
    if (letter === letterC && begins(bytes, start, to, 'content-length:')) {
      this.#length = contentLength(bytes, start + 15, to)
    } else if (letter === letterT && begins(bytes, start, to, 'transfer-encoding')) {
      // Only a message whose last coding is "chunked" is self-delimiting.
      this.#coded = true
      this.#chunked = begins(bytes, to - 7, to, 'chunked')
    }
    return Line.more
  }

  /** Determines the body after the head, which ended just before `flow.at` (section 6.3). False if there is none. */
  bodyFollows(flow: ByteFlow, bodiless: boolean): boolean {
    this.headBytes = flow.offset - this.#startOffset
    if (bodiless) return false
    if (this.#chunked) {
      this.part = Part.chunkSize
      this.#chunkSize = 0
      this.#extension = false
      return true
    }
    if (this.#coded || (this.#length < 0 && !this.request)) {
      this.part = Part.rest
      return true
    }
    if (this.#length <= 0) return false
    this.part = Part.body
    this.passage.start(flow, this.#length)
    return true
  }

  /** Continues in the line of a chunk's size or in the trailer. True if the message ends at `flow.at`. */
  chunkLine(flow: ByteFlow): boolean {
    while (flow.at < flow.end) {
      const byte = flow.bytes[flow.at++]!
      if (this.part === Part.trailer) {
        if (byte === lineFeed && this.#lineBytes === 0) return true
        if (byte !== carriageReturn) this.#lineBytes = byte === lineFeed ? 0 : 1
        continue
      }
      const digit = hexDigit(byte)
      if (byte === lineFeed) {
        if (this.#chunkSize > 0) {
          this.part = Part.chunk
          this.passage.start(flow, this.#chunkSize + 2)
          return false
        }
        this.part = Part.trailer
        this.#lineBytes = 0
      } else if (digit >= 0 && !this.#extension) {
        this.#chunkSize = Math.min(this.#chunkSize * 16 + digit, maxLength)
      } else if (byte !== carriageReturn) {
        this.#extension = true
      }
    }
    return false
  }

  /** The chunk has passed. */
  nextChunk(): void {
    this.part = Part.chunkSize
    this.#chunkSize = 0
    this.#extension = false
  }

  #statusLine(bytes: Buffer, start: number, end: number): Line {
    if (end - start < 12 || !isVersion(bytes, start)) return Line.foreign
    const hundreds = bytes[start + 9]! - digit0
    const tens = bytes[start + 10]! - digit0
    const ones = bytes[start + 11]! - digit0
    if (hundreds < 1 || hundreds > 9 || tens < 0 || tens > 9 || ones < 0 || ones > 9) return Line.foreign
    this.status = hundreds * 100 + tens * 10 + ones
    return Line.more
  }
}

/** Whether a request begins at `bytes[at]`: a token in capitals, a space and a target (section 3). */
export function requestStart(bytes: Buffer, at: number, end: number): Start {
  const stop = Math.min(end, at + 8)
  for (let i = at; i < stop; i++) {
    const byte = bytes[i]!
    if (byte === space) {
      if (i - at < 3) return Start.no
      if (i === at + 7) return Start.yes
      if (i + 1 >= end) return Start.more
      const target = bytes[i + 1]!
      return target === slash || target === asterisk || lower(target) === letterH ? Start.yes : Start.no
    }
    if ((byte < capitalA || byte > capitalZ) && byte !== dash && byte !== underscore) return Start.no
  }
  return end - at >= 8 ? Start.yes : Start.more
}

/** Whether a response begins at `bytes[at]` (section 4). */
export function responseStart(bytes: Buffer, at: number, end: number): Start {
  const count = Math.min(end - at, versionStart.length)
  for (let i = 0; i < count; i++) if (bytes[at + i] !== versionStart.charCodeAt(i)) return Start.no
  return end - at >= 8 ? Start.yes : Start.more
}

/** Whether the bytes of a call end as a chunked message does (section 7.1), including its trailer. */
export function endsChunks(bytes: Buffer, start: number, end: number): boolean {
  if (end - start < 5 || bytes[end - 1] !== lineFeed || bytes[end - 2] !== carriageReturn) return false
  if (bytes[end - 3] !== lineFeed || bytes[end - 4] !== carriageReturn) return false
  // A trailer line has a colon; a blank line or other data among the lines means that this is no trailer.
  let lineStop = end - 4
  for (let at = lineStop - 1; at >= start - 1; at--) {
    if (at >= start && bytes[at] !== lineFeed) continue
    if (isLastChunk(bytes, at + 1, lineStop))
      return at < start || (at > start && bytes[at - 1] === carriageReturn)
    if (at < start || !isField(bytes, at + 1, lineStop)) return false
    lineStop = at - 1
  }
  return false
}

/** Only zeros, ignoring extensions. */
function isLastChunk(bytes: Buffer, start: number, end: number): boolean {
  return end - start === 1 && bytes[start] === digit0
}

function isField(bytes: Buffer, start: number, end: number): boolean {
  let colons = 0
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!
    if (byte < space || byte > 0x7e) return false
    if (byte === colon) colons++
  }
  return colons > 0
}

/** Maximum length; anything above it is treated as endless. */
const maxLength = 2 ** 50

const lineFeed = 0x0a
const carriageReturn = 0x0d
const space = 0x20
const asterisk = 0x2a
const dash = 0x2d
const slash = 0x2f
const digit0 = 0x30
const colon = 0x3a
const capitalA = 0x41
const capitalZ = 0x5a
const underscore = 0x5f
const letterC = 0x63
const letterH = 0x68
const letterT = 0x74
const versionStart = 'HTTP/1.'

function begins(bytes: Buffer, start: number, end: number, text: string): boolean {
  if (start < 0 || end - start < text.length) return false
  for (let i = 0; i < text.length; i++) if (lower(bytes[start + i]!) !== text.charCodeAt(i)) return false
  return true
}

function isVersion(bytes: Buffer, at: number): boolean {
  for (let i = 0; i < versionStart.length; i++) if (bytes[at + i] !== versionStart.charCodeAt(i)) return false
  const minor = bytes[at + versionStart.length]! - digit0
  return minor >= 0 && minor <= 9
}

/** The version is at the end of the line. */
function requestLine(bytes: Buffer, start: number, end: number): Line {
  return end - start >= 8 && isVersion(bytes, end - 8) ? Line.more : Line.foreign
}

function contentLength(bytes: Buffer, start: number, end: number): number {
  let length = 0
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!
    const digit = byte - digit0
    if (digit >= 0 && digit <= 9) length = Math.min(length * 10 + digit, maxLength)
    else if (!isBlank(byte)) break
  }
  return length
}
