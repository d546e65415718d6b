import { type AnswerHead, parseAnswerHead } from './answer-head.ts'
import { type FetchError, printable } from './fetch-error.ts'
import type { Lease, PageBuffers } from './page-buffers.ts'

/** Without the place that was asked, which the client knows. */
export interface AnswerFault {
  readonly type: FetchError['type']
  readonly cause: string
}

export interface AnswerLimits {
  /** Of the body of an answer with status 200. What is beyond this, compressed or not, is not read. */
  readonly bodyBytes: number
  /** The body is about so long, as the one before was. */
  readonly expectedBytes: number
}

/** More than any exporter sends; a proxy may add some. */
const maxHeadBytes = 32 * 1024
/** Of an answer that is no page, only the beginning matters. */
const refusalBytes = 16 * 1024
const maxInterim = 8
/** Of a line between chunks (RFC 9112, section 7.1), extensions included. */
const maxChunkLine = 4096
/** Reading goes on with so much room at least. */
const minRoom = 4096
/** Lent for a body of that length or more before it is there. */
const promisedBytes = 128 * 1024
/** Behind the largest body: a line, and room for more than it may be. */
const maxSlack = refusalBytes + maxChunkLine + 2 * minRoom

/** Where heads are read to. Bytes lie here only until the call that brought them returns, so that one serves all. */
const shared = Buffer.allocUnsafeSlow(64 * 1024)

/** Where bytes go that nobody reads: what follows is an answer's head, or nothing good. */
export function sharedRoom(): Buffer {
  return shared
}

const lineFeed = 0x0a
const carriageReturn = 0x0d

type Part = 'head' | 'length' | 'size' | 'chunk' | 'chunk-end' | 'trailer' | 'close' | 'over'

/**
 * Reads one HTTP/1 answer. The body is read into a pooled buffer in one piece, by the kernel itself where `room` is used
 * as its destination; chunks are put together in place. Calls `over` once, when the answer is whole or cannot become so.
 */
export class AnswerReader {
  readonly #limits: AnswerLimits
  readonly #buffers: PageBuffers
  readonly #over: (fault: AnswerFault | undefined) => void
  #part: Part = 'head'
  /** The beginning of a head that came in pieces. */
  #begun: Buffer | undefined
  #head: AnswerHead | undefined
  #interim = 0
  #maxBytes = 0
  #lease: Lease | undefined
  #buffer: Buffer = shared
  /** The body is so long by now. */
  #end = 0
  /** Bytes from here were not looked at; there are none from `#filled`. */
  #next = 0
  #filled = 0
  /** Of the body or the chunk. */
  #left = 0
  /** Bytes of lines behind the last chunk. */
  #trailerBytes = 0
  #whole = false
  /** Something came behind the answer, or is to come. */
  #surplus = false
  /** Bytes of the answer, as they came. */
  wireBytes = 0

  constructor(limits: AnswerLimits, buffers: PageBuffers, over: (fault: AnswerFault | undefined) => void) {
    this.#limits = limits
    this.#buffers = buffers
    this.#over = over
  }

  /** Undefined as long as it is not whole. */
  get head(): AnswerHead | undefined {
    return this.#head
  }

  get bodyBytes(): number {
    return this.#end
  }

  /** The connection can carry another request. */
  get keepsConnection(): boolean {
    return this.#whole && this.#head?.keepAlive === true && !this.#surplus
  }

  /** The body; valid until `release`. */
  get body(): Buffer {
    return this.#buffer.subarray(0, this.#lease === undefined ? 0 : this.#end)
  }

  /** Gives the memory of the body back. */
  release(): void {
    this.#lease?.release()
    this.#lease = undefined
    this.#buffer = shared
  }

  /** Where the next bytes may be written to, before `wrote` is called. Not empty. */
  room(): Buffer {
    if (this.#part === 'head' || this.#part === 'over') return shared
    const to = this.#part === 'length' ? this.#filled + this.#left : this.#buffer.length
    return this.#buffer.subarray(this.#filled, to)
  }

  /** So many bytes were written to the last `room`. */
  wrote(count: number): void {
    if (this.#part === 'head') this.#readHead(shared.subarray(0, count))
    else this.#added(count)
  }

  /** Bytes that lie elsewhere. False: there are more of them than the answer has. */
  take(bytes: Buffer): boolean {
    for (let from = 0; from < bytes.length; ) {
      if (this.#part === 'over') return false
      if (this.#part === 'head') {
        this.#readHead(bytes.subarray(from))
        return !this.#surplus
      }
      const room = this.room()
      const count = Math.min(room.length, bytes.length - from)
      bytes.copy(room, 0, from, from + count)
      from += count
      if (this.#part === 'length') this.#surplus ||= bytes.length - from > this.#left - count
      this.#added(count)
    }
    return true
  }

  /** The other side sends no more. */
  closed(): void {
    if (this.#part === 'over') return
    if (this.#part === 'close') this.#finish(undefined)
    else if (this.#head === undefined)
      this.#fail(
        'broken',
        this.wireBytes === 0
          ? 'the target closed the connection without a response'
          : 'the response was cut off in its headers',
      )
    else
      this.#fail(
        'broken',
        `the response was cut off after ${this.#end} bytes of the body${this.#part === 'length' ? ` of ${this.#end + this.#left}` : ''}`,
      )
  }

  /** Reads no more. */
  end(fault: AnswerFault): void {
    this.#finish(fault)
  }

  #fail(type: FetchError['type'], cause: string): void {
    this.#finish({ type, cause })
  }

  #finish(fault: AnswerFault | undefined): void {
    if (this.#part === 'over') return
    this.#part = 'over'
    this.#begun = undefined
    this.#whole = fault === undefined
    if (fault !== undefined) this.release()
    this.#over(fault)
  }

  #readHead(bytes: Buffer): void {
    this.wireBytes += bytes.length
    const seen = this.#begun?.length ?? 0
    const all = this.#begun === undefined ? bytes : Buffer.concat([this.#begun, bytes])
    if (seen === 0 && !looksLikeHttp(all)) {
      this.#fail('broken', foreignText(all))
      return
    }
    // An empty line may begin in the bytes before.
    const end = headEnd(all, Math.max(0, seen - 3), maxHeadBytes)
    if (end < 0) {
      if (all.length > maxHeadBytes)
        this.#fail('broken', `the response headers are longer than ${maxHeadBytes} bytes`)
      // A copy, for what was read lies in memory that all share.
      else this.#begun = this.#begun === undefined ? Buffer.from(all) : all
      return
    }
    this.#begun = undefined
    this.#begin(all.toString('latin1', 0, end), all.subarray(end))
  }

  #begin(text: string, rest: Buffer): void {
    const head = parseAnswerHead(text.trimEnd())
    if (typeof head === 'string') {
      this.#fail('broken', head)
      return
    }
    // Interim answers (RFC 9110, section 15.2) come before the one that counts; nobody asked for another protocol.
    if (head.status < 200) {
      this.wireBytes -= rest.length
      if (head.status === 101 || ++this.#interim > maxInterim)
        this.#fail('broken', `only HTTP ${head.status}, and no final response`)
      else if (rest.length > 0) this.#readHead(rest)
      return
    }
    this.#head = head
    const isPage = head.status === 200
    this.#maxBytes = isPage ? this.#limits.bodyBytes : refusalBytes
    if (isPage && !head.chunked && head.length > this.#maxBytes) {
      this.#fail('body_too_large', `the body has ${head.length} bytes`)
      return
    }
    const isEmpty = head.status === 204 || head.status === 304
    if (isEmpty || (!head.chunked && head.length === 0)) {
      this.#surplus = rest.length > 0
      this.#finish(undefined)
      return
    }
    this.#part = head.chunked ? 'size' : head.length >= 0 ? 'length' : 'close'
    this.#left = this.#part === 'length' ? head.length : 0
    const expected = this.#expected
    // A length is a promise: memory for a large one is lent as it is kept.
    const bytes =
      this.#part === 'length' ? Math.min(head.length, Math.max(expected, promisedBytes)) : expected
    if (!this.#lend(bytes)) return
    this.wireBytes -= rest.length
    if (!this.take(rest)) this.#surplus = true
  }

  get #expected(): number {
    const isPage = this.#head?.status === 200
    return Math.min(isPage ? this.#limits.expectedBytes : 0, this.#maxBytes) + maxSlack
  }

  #lend(bytes: number): boolean {
    const lease = this.#buffers.lease(bytes, this.#expected)
    if (lease === undefined) {
      this.#fail('memory', 'no memory left for pages in progress; raise limits.memory')
      return false
    }
    this.#buffer.copy(lease.buffer, 0, 0, this.#filled)
    this.#lease?.release()
    this.#lease = lease
    this.#buffer = lease.buffer
    return true
  }

  #added(count: number): void {
    this.wireBytes += count
    this.#filled += count
    if (this.#part === 'length') this.#readLength(count)
    else if (this.#part === 'close') this.#end = this.#filled
    else this.#readChunks()
    if (this.#is('over')) return
    if (this.#end > this.#maxBytes) {
      this.#tooLarge()
      return
    }
    if (this.#part !== 'length' && this.#buffer.length - this.#filled < minRoom)
      this.#lend(Math.min(2 * this.#buffer.length, this.#maxBytes + maxSlack))
  }

  /** A refusal is cut short, and the connection is not used again. */
  #tooLarge(): void {
    if (this.#head?.status !== 200) {
      this.#surplus = true
      this.#finish(undefined)
    } else this.#fail('body_too_large', `the body has more than ${this.#maxBytes} bytes`)
  }

  #readLength(count: number): void {
    this.#left -= count
    this.#end = this.#filled
    if (this.#end > this.#maxBytes) this.#tooLarge()
    else if (this.#left === 0) this.#finish(undefined)
    else if (this.#filled === this.#buffer.length)
      this.#lend(Math.min(2 * this.#filled, this.#filled + this.#left))
  }

  /** Moves what belongs to the body together, and what is left of a line behind it. */
  #readChunks(): void {
    const buffer = this.#buffer
    while (this.#next < this.#filled && this.#part !== 'over') {
      if (this.#part === 'chunk') {
        const count = Math.min(this.#left, this.#filled - this.#next)
        if (this.#next !== this.#end) buffer.copyWithin(this.#end, this.#next, this.#next + count)
        this.#end += count
        this.#next += count
        this.#left -= count
        if (this.#left === 0) this.#part = 'chunk-end'
        continue
      }
      let end = this.#next
      while (end < this.#filled && buffer[end] !== lineFeed) end++
      if (end === this.#filled) {
        if (this.#filled - this.#next > maxChunkLine)
          this.#fail('broken', 'invalid chunked body: unterminated line between chunks')
        break
      }
      const from = this.#next
      this.#next = end + 1
      this.#readLine(from, end > from && buffer[end - 1] === carriageReturn ? end - 1 : end)
    }
    if (this.#is('over')) return
    if (this.#next !== this.#end) buffer.copyWithin(this.#end, this.#next, this.#filled)
    this.#filled = this.#end + this.#filled - this.#next
    this.#next = this.#end
  }

  #readLine(from: number, to: number): void {
    if (this.#part === 'size') {
      this.#left = chunkSize(this.#buffer, from, to)
      if (this.#left < 0) this.#fail('broken', 'invalid chunked body: chunk size is not a number')
      // Known before it comes.
      else if (this.#end + this.#left > this.#maxBytes) this.#tooLarge()
      else this.#part = this.#left === 0 ? 'trailer' : 'chunk'
    } else if (to > from && this.#part === 'chunk-end')
      this.#fail('broken', 'invalid chunked body: a chunk is longer than its size')
    else if (this.#part === 'chunk-end') this.#part = 'size'
    else if (to === from) {
      this.#surplus = this.#next < this.#filled
      this.#finish(undefined)
    } else {
      this.#trailerBytes += to - from
      if (this.#trailerBytes > maxHeadBytes)
        this.#fail('broken', 'invalid chunked body: unterminated trailer')
    }
  }

  /** The type checker takes a field for unchanged by a call. */
  #is(part: Part): boolean {
    return this.#part === part
  }
}

/** Where the body begins: behind the first empty line; -1: it is not there, in the first `limit` bytes. */
function headEnd(bytes: Buffer, from: number, limit: number): number {
  let at = bytes.indexOf(lineFeed, from)
  while (at >= 0 && at < limit) {
    const next = bytes[at + 1]
    if (next === lineFeed) return at + 2
    if (next === carriageReturn && bytes[at + 2] === lineFeed) return at + 3
    at = bytes.indexOf(lineFeed, at + 1)
  }
  return -1
}

/** Hexadecimal digits, before an extension or blanks (RFC 9112, section 7.1); -1: it is none, or beyond all bounds. */
function chunkSize(bytes: Buffer, from: number, to: number): number {
  let size = 0
  let at = from
  for (; at < to; at++) {
    const digit = hexDigit(bytes[at]!)
    if (digit < 0) break
    size = size * 16 + digit
    if (at - from > 12) return -1
  }
  if (at === from) return -1
  while (at < to && (bytes[at] === 0x20 || bytes[at] === 0x09)) at++
  return at === to || bytes[at] === 0x3b ? size : -1
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}

function looksLikeHttp(bytes: Buffer): boolean {
  const count = Math.min(bytes.length, protocol.length)
  return protocol.compare(bytes, 0, count, 0, count) === 0
}
const protocol = Buffer.from('HTTP/1.')

/** What speaks there, as far as its first bytes tell. */
export function foreignText(bytes: Buffer): string {
  // An alert, and a record of a handshake (RFC 8446, section 5.1).
  if ((bytes[0] === 0x15 || bytes[0] === 0x16) && bytes[1] === 0x03)
    return 'the target uses TLS; set scheme to https'
  // A frame SETTINGS of stream 0 (RFC 9113, section 6.5).
  if (bytes.length >= 9 && bytes[3] === 4 && bytes.readUInt32BE(5) === 0)
    return 'the target supports only HTTP/2 (a gRPC port?), and svc scrapes over HTTP/1.1'
  return `not an HTTP/1.1 response: ${JSON.stringify(printable(bytes.toString('latin1', 0, 160), 40))}`
}
