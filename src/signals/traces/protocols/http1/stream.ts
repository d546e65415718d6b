import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import type { StreamConnection, StreamDecoder } from '../../../../foundation/model/stream.ts'
import { RequestsInFlight } from '../requests-in-flight.ts'
import { endsChunks, Line, Message, Part, requestStart, responseStart, Start } from './message.ts'
import { type Http1Requests, type Pending, pendingBytes } from './requests.ts'

/** Requests in flight on one connection. */
const mostRequests = 1_024
/** Calls of an existing connection that may begin with something other than a request. */
const maxMisses = 255
/** Maximum bytes of a long first line that are read: a version, or a version and a status. */
const firstLineBytes = 16

/** State of a response that came before its request, which happens if another thread of the client reads it. */
const Ahead = { none: 0, underWay: 1, whole: 2 } as const

/**
 * HTTP/1 where the kernel side does not frame it: inside TLS, and on kernels without socket tracepoints. The rules are
 * those of bpf/include/stream.h, so that both produce the same spans.
 */
export class Http1Stream implements StreamDecoder {
  readonly #requests: Http1Requests
  readonly #connection: StreamConnection
  readonly #request = new Message(true)
  readonly #response = new Message(false)
  readonly #pending = new RequestsInFlight<Pending>(mostRequests)
  /** The request being received, or the last one. */
  #newest: Pending | undefined
  /** What came before is unknown: searches for a request's head at the beginning of a call. */
  #unsynced: boolean
  /** Bytes at the beginning of a call were left because they are too few to decide. */
  #heldStart = false
  #misses = 0
  #seen = false
  #ahead: 0 | 1 | 2 = Ahead.none
  /** The connection has switched to another protocol. */
  #over = false

  constructor(requests: Http1Requests, connection: StreamConnection) {
    this.#requests = requests
    this.#connection = connection
    this.#unsynced = connection.joined
  }

  read(flow: ByteFlow): void {
    flow.broken = false
    const message = flow.request ? this.#request : this.#response
    message.lastNs = flow.nowNs
    message.received = flow.received
    while (flow.at < flow.end) {
      if (this.#over) {
        flow.at = flow.end
        return
      }
      if (!this.#step(flow, message)) return
    }
  }

  lost(flow: ByteFlow): void {
    if (this.#over) return
    const message = flow.request ? this.#request : this.#response
    message.received = flow.received
    switch (message.part) {
      case Part.body:
      case Part.chunk:
        this.#losePassing(flow, message)
        break
      case Part.chunkSize:
      case Part.trailer:
        message.part = Part.adrift
        break
      case Part.start:
      case Part.head:
        this.#lose()
        break
    }
    if (!this.#unsynced) flow.broken = false
  }

  get bytes(): number {
    return this.#pending.bytes + this.#pending.size * pendingBytes
  }

  close(): void {
    this.closeSome(Number.POSITIVE_INFINITY)
  }

  closeSome(most: number): boolean {
    if (!this.#over) this.#breakOff()
    this.#over = true
    for (let ended = 0; ended < most && this.#pending.size > 0; ended++) {
      if (this.#connection.leaving) this.#drop()
      else this.#finish(undefined, 0, true)
    }
    return this.#pending.size > 0
  }

  /** The response being read ends here. */
  #breakOff(): void {
    const connection = this.#connection
    const response = this.#response
    const { errno } = connection
    const open = response.part === Part.rest || response.part === Part.adrift
    const answering = response.part !== Part.start && this.#pending.size > 0
    if (answering) {
      response.breakOff()
      this.#finish(response, response.lastNs, !open || errno !== 0)
    }
  }

  /** Reads the next part of a message; false if more bytes are needed. */
  #step(flow: ByteFlow, message: Message): boolean {
    switch (message.part) {
      case Part.start:
        return message.request ? this.#beginRequest(flow) : this.#beginResponse(flow)
      case Part.head:
        return this.#readHead(flow, message)
      case Part.body:
      case Part.chunk:
        if (!message.passage.pass(flow)) return false
        this.#passed(flow, message, flow.offset)
        return true
      case Part.chunkSize:
      case Part.trailer:
        if (message.chunkLine(flow)) this.#messageEnds(message, flow.offset, flow.nowNs)
        return true
      case Part.rest:
        flow.at = flow.end
        return false
      case Part.adrift:
        return this.#drift(flow, message)
    }
  }

  /** Bytes are missing within a part that is only counted. */
  #losePassing(flow: ByteFlow, message: Message): void {
    const { passage } = message
    if (passage.outlasts(flow)) {
      if (passage.left === 0) this.#passed(flow, message, flow.received)
    } else if (message.part === Part.chunk) {
      message.part = Part.adrift
    } else {
      // The message is complete, but bytes after it are missing, too.
      this.#messageEnds(message, message.endOffset, flow.nowNs)
      this.#lose()
    }
  }

  /** The announced bytes have passed. */
  #passed(flow: ByteFlow, message: Message, offset: number): void {
    if (message.part === Part.body) this.#messageEnds(message, offset, flow.nowNs)
    else message.nextChunk()
  }

  #beginRequest(flow: ByteFlow): boolean {
    const { bytes, end } = flow
    const atCall = flow.atCall || this.#heldStart
    this.#heldStart = false
    if (this.#unsynced && !atCall) {
      flow.at = end
      return false
    }
    // Line ends before a request are ignored (RFC 9112, section 2.2).
    while (flow.at < end && (bytes[flow.at] === 0x0d || bytes[flow.at] === 0x0a)) flow.at++
    if (flow.at === end) return false
    const start = requestStart(bytes, flow.at, end)
    if (start === Start.more) {
      this.#heldStart = atCall
      return false
    }
    if (start === Start.no) {
      this.#foreign(flow)
      return false
    }
    this.#endOpenResponse()
    if (this.#pending.size === mostRequests) {
      this.#lose()
      flow.at = end
      return false
    }
    if (this.#unsynced) {
      this.#unsynced = false
      this.#misses = 0
      this.#response.reset()
    }
    const pending = this.#requests.begin(this.#connection.begin(flow))
    pending.isHead = spells(bytes, flow.at, 'HEAD ')
    pending.isConnect = spells(bytes, flow.at, 'CONNECT ')
    this.#pending.push(pending)
    this.#newest = pending
    if (this.#ahead === Ahead.underWay) {
      this.#ahead = Ahead.none
      if (pending.operation !== undefined) pending.operation.responseNs = flow.startNs
    } else if (this.#ahead === Ahead.whole && pending.operation !== undefined) {
      pending.operation.responseNs = flow.startNs
    }
    this.#request.begin(flow)
    return true
  }

  /** A response without an end, or whose end was not seen, is over when the next request begins. */
  #endOpenResponse(): void {
    const response = this.#response
    const alone = this.#pending.size === 1
    if (this.#ahead !== Ahead.none || this.#pending.size === 0) return
    if (response.part !== Part.rest && (response.part !== Part.adrift || !alone)) return
    response.breakOff()
    this.#finish(response, response.lastNs, false)
    response.reset()
  }

  #beginResponse(flow: ByteFlow): boolean {
    if (this.#unsynced) {
      flow.at = flow.end
      return false
    }
    const start = responseStart(flow.bytes, flow.at, flow.end)
    if (start === Start.more) return false
    if (start === Start.no) {
      this.#foreign(flow)
      return false
    }
    const pending = this.#pending.first
    if (pending === undefined) {
      if (this.#connection.server || this.#ahead !== Ahead.none) {
        this.#lose()
        flow.at = flow.end
        return false
      }
      this.#ahead = Ahead.underWay
    } else if (this.#ahead === Ahead.whole) {
      this.#endAhead()
      return true
    } else if (pending.operation?.responseNs === 0) {
      pending.operation.responseNs = flow.startNs
    }
    this.#response.begin(flow)
    return true
  }

  /** The bytes at `flow.at` are not the start of a message. */
  #foreign(flow: ByteFlow): void {
    flow.at = flow.end
    if (!this.#unsynced && this.#seen) this.#lose()
    else if (!this.#unsynced || ++this.#misses >= maxMisses) this.#refuse()
  }

  /** Reads the available whole lines. */
  #readHead(flow: ByteFlow, message: Message): boolean {
    const { bytes, end } = flow
    while (flow.at < end) {
      let stop = flow.at + message.scanned
      while (stop < end && bytes[stop] !== 0x0a) stop++
      if (stop === end) return this.#readPartOfLine(flow, message)
      this.#keep(flow, message, stop + 1)
      const line = message.line(bytes, flow.at, stop)
      flow.at = stop + 1
      message.scanned = 0
      message.kept = 0
      if (line === Line.more) continue
      if (line === Line.last) this.#headEnds(flow, message)
      else this.#firstLineFails(flow)
      return true
    }
    return false
  }

  /** There is no line end yet. The bytes are left in place, unless the line is so long that no room would remain. */
  #readPartOfLine(flow: ByteFlow, message: Message): boolean {
    this.#keep(flow, message, flow.end)
    message.kept = flow.end - flow.at
    message.scanned = message.kept
    if (!flow.full) return false
    if (message.first && message.request) {
      flow.at = flow.end - firstLineBytes
      message.kept = firstLineBytes
      message.scanned = firstLineBytes
      return false
    }
    if (message.first && message.line(flow.bytes, flow.at, flow.at + firstLineBytes) === Line.foreign) {
      this.#firstLineFails(flow)
      return true
    }
    message.long = true
    message.kept = 0
    message.scanned = 0
    flow.at = flow.end
    return false
  }

  /** Keeps the bytes of a request's head before `end` that are not kept yet. */
  #keep(flow: ByteFlow, message: Message, end: number): void {
    if (message.request && this.#newest !== undefined)
      this.#requests.keep(this.#newest, this.#connection, flow.bytes, flow.at + message.kept, end)
  }

  /** It only began like HTTP/1. */
  #firstLineFails(flow: ByteFlow): void {
    flow.at = flow.end
    if (this.#seen) this.#lose()
    else this.#refuse()
  }

  #headEnds(flow: ByteFlow, message: Message): void {
    if (message.request) {
      this.#seen = true
      const follows = message.bodyFollows(flow, false)
      if (this.#newest !== undefined) {
        this.#newest.headBytes = message.headBytes
        this.#requests.asked(this.#newest, this.#connection)
      }
      if (!follows) this.#messageEnds(message, flow.offset, flow.nowNs)
      return
    }
    const pending = this.#pending.first
    const { status } = message
    const bodiless =
      status < 200 ||
      status === 204 ||
      status === 304 ||
      pending?.isHead === true ||
      (pending?.isConnect === true && status < 300)
    if (!message.bodyFollows(flow, bodiless)) this.#messageEnds(message, flow.offset, flow.nowNs)
  }

  /** All of a message has passed; `offset` is the position of the next byte in its direction. */
  #messageEnds(message: Message, offset: number, endNs: number): void {
    message.count(offset)
    if (message.request) this.#requestEnds()
    else this.#responseEnds(endNs)
  }

  #requestEnds(): void {
    const newest = this.#newest
    if (newest !== undefined) {
      newest.whole = true
      newest.bytes = this.#request.bytes
    }
    this.#newest = undefined
    this.#request.reset()
    if (this.#ahead === Ahead.whole && this.#pending.size > 0) this.#endAhead()
  }

  /** The request of an early response has arrived. */
  #endAhead(): void {
    this.#ahead = Ahead.none
    this.#finish(this.#response, this.#response.lastNs, false)
    this.#response.reset()
  }

  #responseEnds(endNs: number): void {
    const response = this.#response
    const { status } = response
    if (status < 200 && status !== 101) {
      response.reset()
      return
    }
    const pending = this.#pending.first
    if (pending === undefined) {
      this.#ahead = Ahead.whole
      response.part = Part.start
      return
    }
    const tunnel = status === 101 || (pending.isConnect && status < 300)
    this.#finish(response, endNs, false)
    response.reset()
    if (!tunnel) return
    // The bytes that follow are another protocol.
    this.#over = true
    this.#abandonAll()
  }

  /** Searches for the end of a chunked message whose chunk sizes were not seen. */
  #drift(flow: ByteFlow, message: Message): boolean {
    const { bytes, at, end } = flow
    const more = this.#pending.size > 1
    const next =
      flow.atCall &&
      (message.request
        ? this.#newest === undefined && requestStart(bytes, at, end) === Start.yes
        : more && responseStart(bytes, at, end) === Start.yes)
    if (next) {
      this.#messageEnds(message, flow.offset, flow.nowNs)
      return true
    }
    flow.at = end
    if (endsChunks(bytes, at, end)) this.#messageEnds(message, flow.offset, flow.nowNs)
    return false
  }

  /** The oldest request is over. */
  #finish(response: Message | undefined, endNs: number, aborted: boolean): void {
    const pending = this.#pending.shift()!
    if (!pending.whole && pending === this.#newest) {
      // It was answered, or broken off, before it was complete.
      this.#request.breakOff()
      pending.bytes = this.#request.bytes
      pending.headBytes = this.#request.headBytes
      this.#newest = undefined
    }
    this.#requests.end(pending, this.#connection, response, endNs, aborted)
  }

  /** Releases the first request without reporting it. */
  #drop(): void {
    this.#requests.drop(this.#pending.shift()!, this.#connection)
    this.#newest = undefined
  }

  /** Framing is lost: gives up the requests in flight and searches for the next request's head. */
  #lose(): void {
    this.#abandonAll()
    this.#ahead = Ahead.none
    this.#request.reset()
    this.#response.reset()
    this.#unsynced = true
  }

  #abandonAll(): void {
    while (this.#pending.size > 0) this.#requests.abandon(this.#pending.shift()!, this.#connection)
    this.#newest = undefined
  }

  #refuse(): void {
    this.#abandonAll()
    this.#over = true
    this.#connection.refuse()
  }
}

/** `text` has at most 8 bytes; fewer available bytes are no match. */
function spells(bytes: Buffer, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text.charCodeAt(i)) return false
  return true
}
