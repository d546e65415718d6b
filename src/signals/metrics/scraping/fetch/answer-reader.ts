import { hexDigit } from '../../../../foundation/lib/ascii.ts'
import { type AnswerHead, parseAnswerHead } from './answer-head.ts'
import { type FetchError, printable } from './fetch-error.ts'
import type { Lease, PageBuffers } from './page-buffers.ts'

/** Without the URL, which the client knows. */
export interface AnswerFault {
  readonly type: FetchError['type']
  readonly cause: string
}

export interface AnswerLimits {
  /** Maximum body of a response with status 200, both compressed and decompressed; more is not read. */
  readonly bodyBytes: number
  /** Expected length of the body, from the previous one. */
  readonly expectedBytes: number
}

/** More than any exporter sends, with room for a proxy's headers. */
const maxHeadBytes = 32 * 1024
/** Maximum body of any other response, of which only the start is shown. */
const refusalBytes = 16 * 1024
const maxInterim = 8
/** Maximum line between chunks (RFC 9112, section 7.1), extensions included. */
const maxChunkLine = 4096
/** Minimum room for reading on. */
const minRoom = 4096
/** Maximum memory leased for an announced length before the body arrives. */
const promisedBytes = 128 * 1024
/** Space after the largest body: a line, and room to detect that it is too large. */
const maxSlack = refusalBytes + maxChunkLine + 2 * minRoom

/** Buffer for heads. Its content is only used until the call returns, so all connections share it. */
const shared = Buffer.allocUnsafeSlow(64 * 1024)

/** Buffer for bytes without a reader: either a response's head or nothing useful. */
export function sharedRoom(): Buffer {
  return shared
}

const lineFeed = 0x0a
const carriageReturn = 0x0d

type Part = 'head' | 'length' | 'size' | 'chunk' | 'chunk-end' | 'trailer' | 'close' | 'over'

/**
 * Reads one HTTP/1 response. The body is read into one contiguous pooled buffer, directly by the kernel if `room` is
 * its destination; chunks are joined in place. Calls `over` once, when the response is complete or has failed.
 */
export class AnswerReader {
  readonly #limits: AnswerLimits
  readonly #buffers: PageBuffers
  readonly #over: (fault: AnswerFault | undefined) => void
  #part: Part = 'head'
  /** Start of a head that arrived in pieces. */
  #begun: Buffer | undefined
  #head: AnswerHead | undefined
  #interim = 0
  #maxBytes = 0
  #lease: Lease | undefined
  #buffer: Buffer = shared
  /** Length of the body so far. */
  #end = 0
  /** Unprocessed bytes are from here to `#filled`. */
  #next = 0
  #filled = 0
  /** Remaining bytes of the body or the chunk. */
  #left = 0
  /** Bytes of trailer lines after the last chunk. */
  #trailerBytes = 0
  #whole = false
  /** Whether more bytes follow the response. */
  #surplus = false
  /** Size of the response as received. */
  wireBytes = 0

  constructor(limits: AnswerLimits, buffers: PageBuffers, over: (fault: AnswerFault | undefined) => void) {
    this.#limits = limits
    this.#buffers = buffers
    this.#over = over
  }

  /** Undefined until it is complete. */
  get head(): AnswerHead | undefined {
    return this.#head
  }

  get bodyBytes(): number {
    return this.#end
  }

  /** Whether the connection can carry another request. */
  get keepsConnection(): boolean {
    return this.#whole && this.#head?.keepAlive === true && !this.#surplus
  }

  /** The body; valid until `release`. */
  get body(): Buffer {
    return this.#buffer.subarray(0, this.#lease === undefined ? 0 : this.#end)
  }

  /** Returns the buffer of the body. */
  release(): void {
    this.#lease?.release()
    this.#lease = undefined
    this.#buffer = shared
  }

  /** Buffer for the next bytes, to be followed by `wrote`. Not empty. */
  room(): Buffer {
    if (this.#part === 'head' || this.#part === 'over') return shared
    const to = this.#part === 'length' ? this.#filled + this.#left : this.#buffer.length
    return this.#buffer.subarray(this.#filled, to)
  }

  /** Processes the bytes written to the last `room`. */
  wrote(count: number): void {
    if (this.#part === 'head') this.#readHead(shared.subarray(0, count))
    else this.#added(count)
  }

  /** Processes bytes from another buffer. False if there are more than the response has. */
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

  /** The peer closed the connection for sending. */
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

  /** Ends the reading. */
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
    // The empty line may begin in the earlier bytes.
    const end = headEnd(all, Math.max(0, seen - 3), maxHeadBytes)
    if (end < 0) {
      if (all.length > maxHeadBytes)
        this.#fail('broken', `the response headers are longer than ${maxHeadBytes} bytes`)
      // A copy, as the bytes are in the shared buffer.
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
    // Interim responses (RFC 9110, section 15.2) precede the final one; a protocol upgrade was not requested.
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
    // A length is only announced, so memory for a large body is leased as it arrives.
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

  /** A body other than a page is cut, and the connection is not reused. */
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

  /** Moves the chunks of the body together, and the incomplete line behind them. */
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
      // Detected before the chunk arrives.
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

  /** The type checker assumes that calls do not change a field. */
  #is(part: Part): boolean {
    return this.#part === part
  }
}

/** Start of the body, after the first empty line; -1 if it is not within the first `limit` bytes. */
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

/** Parses hexadecimal digits before an extension or blanks (RFC 9112, section 7.1); -1 if invalid or too large. */
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

function looksLikeHttp(bytes: Buffer): boolean {
  const count = Math.min(bytes.length, protocol.length)
  return protocol.compare(bytes, 0, count, 0, count) === 0
}
const protocol = Buffer.from('HTTP/1.')

/** Description of a peer that does not speak HTTP/1, from its first bytes. */
export function foreignText(bytes: Buffer): string {
  // An alert, or a handshake record (RFC 8446, section 5.1).
  if ((bytes[0] === 0x15 || bytes[0] === 0x16) && bytes[1] === 0x03)
    return 'the target uses TLS; set scheme to https'
  // A SETTINGS frame of stream 0 (RFC 9113, section 6.5).
  if (bytes.length >= 9 && bytes[3] === 4 && bytes.readUInt32BE(5) === 0)
    return 'the target supports only HTTP/2 (a gRPC port?), and svc scrapes over HTTP/1.1'
  return `not an HTTP/1.1 response: ${JSON.stringify(printable(bytes.toString('latin1', 0, 160), 40))}`
}
