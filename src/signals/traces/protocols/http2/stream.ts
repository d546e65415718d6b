import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import type { StreamConnection, StreamDecoder } from '../../../../foundation/model/stream.ts'
import { NumberedRequests } from '../requests-in-flight.ts'
import type { Http2Calls } from './calls.ts'
import { Ending } from './ending.ts'
import { fields, grpcStatusOf, isGrpc, isTrailer, statusOf, Tristate } from './fields.ts'
import { Flag, FrameHead, FrameType, frameHeadBytes, numberAt, preface, prefaceLength } from './frames.ts'
import { bytesBefore } from './header-block.ts'
import { type OpenStream, type StreamTable, selectStreams } from './open-stream.ts'
import { findFrame } from './resync.ts'
import { Way } from './way.ts'

/** Maximum number of open streams. */
const maxStreams = 4_096
/** Pieces without a frame before the first one, and invalid frames, after which the connection is given up. */
const maxMisses = 255
const maxFaults = 16
/** How long a stream that may have ended unseen is kept. */
const doubtNs = 1e9
/** Streams that one frame may end. */
const mostAtOnce = 128
/** Its bytes in excess of other protocols' decoders (measured). */
const fixedBytes = 1_800
/** Prefix of a gRPC message: whether it is compressed, and its length. */
const prefixBytes = 5

const frame = new FrameHead()
const ending = new Ending()

/** Follows the frames of one connection. Bodies are skipped. */
export class Http2Stream implements StreamDecoder {
  readonly #calls: Http2Calls
  readonly #connection: StreamConnection
  readonly #request: Way
  readonly #response: Way
  readonly #streams: StreamTable = new NumberedRequests(maxStreams)
  /** The newest stream of the client. */
  #newest = 0
  /** The client's preface was seen. */
  #opened = false
  #faults = 0
  #over = false
  /** Streams of this connection were gRPC, or were not. */
  #sawGrpc = false
  #sawHttp = false
  /** Bytes of the client were lost: streams that it reset may still count as open. */
  #missedRequests = false
  /** Streams that may have ended unseen, and the time of their last check. */
  #doubtful = 0
  #lookedNs = 0
  /**
   * GOAWAY: the server ignores streams above this one, and the time of the frame; 0 once those that existed have been
   * ended.
   */
  #goneAbove = 0
  #goneNs = 0

  constructor(calls: Http2Calls, connection: StreamConnection) {
    this.#calls = calls
    this.#connection = connection
    this.#request = new Way(true, connection.joined)
    this.#response = new Way(false, connection.joined)
  }

  read(flow: ByteFlow): void {
    const way = flow.request ? this.#request : this.#response
    if (this.#goneNs > 0) this.#endGone(mostAtOnce)
    while (flow.at < flow.end) {
      if (this.#over) {
        flow.at = flow.end
        return
      }
      if (!this.#step(flow, way)) return
    }
  }

  lost(flow: ByteFlow): void {
    if (this.#over) return
    const way = flow.request ? this.#request : this.#response
    if (way.passage.left > 0) {
      if (way.passage.outlasts(flow)) {
        flow.broken = false
        if (way.passage.left === 0) this.#passed(way, flow.nowNs)
        return
      }
      this.#passed(way, flow.nowNs)
    }
    this.#lose(flow, way)
  }

  get bytes(): number {
    return fixedBytes + this.#request.bytes + this.#response.bytes + this.#streams.bytes
  }

  close(): void {
    this.closeSome(Number.POSITIVE_INFINITY)
  }

  closeSome(most: number): boolean {
    this.#endGone(most)
    const certain = (this.#opened || this.#response.seen) && !this.#connection.leaving
    for (const stream of selectStreams(this.#streams, () => true, most)) {
      const unseen = stream.doubtNs > 0 && this.#connection.errno === 0
      if (certain) {
        this.#end(stream, stream.doubtNs, ending.set(-1, false, !unseen, unseen))
      } else {
        this.#streams.take(stream.id)
        this.#calls.forget(stream, this.#connection)
      }
    }
    if (this.#request.begun !== undefined) this.#connection.release(this.#request.begun)
    this.#request.begun = undefined
    this.#over = true
    return this.#streams.size > 0
  }

  /** Reads the next part; false if more bytes are needed. */
  #step(flow: ByteFlow, way: Way): boolean {
    if (way.passage.left > 0) {
      if (!way.passage.pass(flow)) return false
      this.#passed(way, flow.nowNs)
      return true
    }
    if (way.block.left > 0) {
      if (!way.block.take(flow)) return false
      this.#blockFrameEnds(flow, way)
      return true
    }
    if (flow.broken && !this.#resync(flow, way)) return false
    if (way.request && !this.#opened && !this.#connection.joined) return this.#readPreface(flow)
    if (flow.end - flow.at < frameHeadBytes) return false
    frame.read(flow.bytes, flow.at)
    if (!this.#isPossible(way)) {
      this.#fault(flow, way)
      return false
    }
    if (!this.#readFrame(flow, way)) return false
    way.seen = true
    return true
  }

  #readPreface(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    const count = prefaceLength(bytes, at, end)
    if (count < Math.min(preface.length, end - at)) {
      this.#refuse(flow)
      return false
    }
    if (count < preface.length) return false
    flow.at += preface.length
    this.#opened = true
    return true
  }

  /** Searches for a frame after a loss, or on an existing connection. */
  #resync(flow: ByteFlow, way: Way): boolean {
    const atCall = flow.atCall || way.heldStart
    way.heldStart = false
    const { bytes, at, end } = flow
    if (atCall && way.request) {
      const count = prefaceLength(bytes, at, end)
      if (count === preface.length) {
        flow.at += count
        flow.broken = false
        this.#opened = true
        return flow.at < end
      }
      if (count === end - at) {
        way.heldStart = true
        return false
      }
    }
    if (atCall && end - at < frameHeadBytes) {
      way.heldStart = true
      return false
    }
    const found = findFrame(bytes, at, end, atCall, way.request, this.#newest, this.#streams)
    if (found < 0) {
      flow.at = end
      if (!way.seen && ++way.misses > maxMisses) this.#refuse(flow)
      return false
    }
    flow.at = found
    flow.broken = false
    return true
  }

  /** Whether the frame is possible at this point. */
  #isPossible(way: Way): boolean {
    if (!frame.valid) return false
    if (way.block.stream !== 0)
      return frame.type === FrameType.continuation && frame.stream === way.block.stream
    if (frame.type === FrameType.continuation) return false
    // Both sides begin with their settings (section 3.4).
    return way.seen || this.#connection.joined || frame.type === FrameType.settings
  }

  /** The bytes cannot be HTTP/2. */
  #fault(flow: ByteFlow, way: Way): void {
    if (++this.#faults > maxFaults || (!way.seen && !this.#connection.joined)) {
      this.#refuse(flow)
      return
    }
    flow.at = flow.end
    flow.broken = true
    this.#lose(flow, way)
  }

  #lose(flow: ByteFlow, way: Way): void {
    if (way.begun !== undefined) this.#connection.abandon(way.begun)
    way.lose()
    if (way.request) {
      this.#missedRequests = true
      return
    }
    for (const stream of selectStreams(this.#streams, ({ doubtNs: since }) => since === 0)) {
      stream.doubtNs = flow.nowNs
      this.#doubtful++
    }
  }

  /** Reads the frame at `flow.at`, whose head is in `frame`; false if it needs more bytes. */
  #readFrame(flow: ByteFlow, way: Way): boolean {
    const payload = flow.at + frameHeadBytes
    const atHand = flow.end - payload
    switch (frame.type) {
      case FrameType.data:
        return this.#readData(flow, way)
      case FrameType.headers:
      case FrameType.pushPromise:
      case FrameType.continuation:
        this.#readHeaders(flow, way)
        return true
      case FrameType.reset:
        if (atHand < 4) return false
        this.#readReset(flow, way)
        return true
      case FrameType.goAway:
        if (atHand < 4) return false
        if (!way.request) this.#goneAway(numberAt(flow.bytes, payload), flow.nowNs)
        break
    }
    this.#pass(flow, way, 0, false)
    return true
  }

  /** Skips the payload of the frame at `flow.at`, which is data of a stream, or of none. */
  #pass(flow: ByteFlow, way: Way, stream: number, last: boolean): void {
    flow.at += frameHeadBytes
    way.passing = stream
    way.passingLast = last
    way.passage.start(flow, frame.length)
    if (frame.length === 0) this.#passed(way, flow.nowNs)
  }

  #readData(flow: ByteFlow, way: Way): boolean {
    const stream = this.#streams.get(frame.stream)
    const { bytes } = flow
    const payload = flow.at + frameHeadBytes
    if (stream !== undefined) {
      const padded = (frame.flags & Flag.padded) !== 0
      if (padded && frame.length > 0 && payload >= flow.end) return false
      if (
        way.request &&
        stream.grpc === Tristate.unknown &&
        stream.prefixed === Tristate.unknown &&
        frame.length > 0
      ) {
        if (payload + Math.min(prefixBytes, frame.length) > flow.end) return false
        stream.prefixed = !padded && isPrefix(bytes, payload, frame.length) ? Tristate.yes : Tristate.no
      }
      const body = Math.max(0, frame.length - (padded && frame.length > 0 ? bytes[payload]! + 1 : 0))
      if (way.request) stream.requestBody += body
      else stream.responseBody += body
      this.#count(flow, way, stream)
    }
    this.#pass(flow, way, frame.stream, (frame.flags & Flag.endStream) !== 0)
    return true
  }

  /** Adds the size of the frame at `flow.at` to its stream. */
  #count(flow: ByteFlow, way: Way, stream: OpenStream): void {
    const { operation } = stream
    const bytes = frameHeadBytes + frame.length
    if (way.request) {
      operation.requestBytes += bytes
      return
    }
    operation.responseBytes += bytes
    if (operation.responseNs === 0) operation.responseNs = flow.startNs
    if (stream.doubtNs === 0) return
    stream.doubtNs = 0
    this.#doubtful--
  }

  #passed(way: Way, nowNs: number): void {
    const { passing, passingLast } = way
    way.passing = 0
    way.passage.left = 0
    if (passing === 0 || !passingLast || way.request) return
    const stream = this.#streams.get(passing)
    if (stream !== undefined) this.#end(stream, nowNs, ending.set(-1, false, false, false))
  }

  /** A frame with a part of a header block. A block in one complete frame, the usual case, is read in place. */
  #readHeaders(flow: ByteFlow, way: Way): void {
    const { block } = way
    const known = this.#streams.get(frame.stream)
    if (known !== undefined) this.#count(flow, way, known)
    else if (way.begun !== undefined) way.begun.requestBytes += frameHeadBytes + frame.length
    else if (way.request && this.#isNew()) this.#begin(flow, way)
    flow.at += frameHeadBytes
    const end = flow.at + frame.length
    const alone = frame.type !== FrameType.continuation && (frame.flags & Flag.endHeaders) !== 0
    if (!alone || end > flow.end) {
      block.begin(frame)
      if (block.take(flow)) this.#blockFrameEnds(flow, way)
      return
    }
    const padding = (frame.flags & Flag.padded) === 0 ? 0 : flow.bytes[flow.at]!
    const start = flow.at + bytesBefore(frame)
    const { stream } = frame
    const last = (frame.flags & Flag.endStream) !== 0
    const pushed = frame.type === FrameType.pushPromise
    const bytes = flow.bytes
    flow.at = end
    this.#readBlock(flow, way, bytes, start, end - padding, stream, last, pushed)
  }

  /** Whether the frame opens a new stream of the client. */
  #isNew(): boolean {
    return frame.type === FrameType.headers && (frame.stream & 1) === 1 && frame.stream > this.#newest
  }

  /** A request may begin at `flow.at`. */
  #begin(flow: ByteFlow, way: Way): void {
    this.#newest = frame.stream
    way.begun = this.#connection.begin(flow)
    if (way.begun === undefined) return
    if (this.#streams.isFull && this.#missedRequests) this.#abandonAll()
    if (this.#streams.isFull) {
      this.#connection.abandon(way.begun)
      way.begun = undefined
    } else {
      way.begun.requestBytes = frameHeadBytes + frame.length
    }
  }

  /** Streams whose end was missed must not block new ones; which ones those are is unknown. */
  #abandonAll(): void {
    this.#missedRequests = false
    this.#doubtful = 0
    this.#streams.drain(stream => this.#calls.abandon(stream, this.#connection))
  }

  #blockFrameEnds(flow: ByteFlow, way: Way): void {
    const { block } = way
    if (!block.last) return
    const { stream, endStream, pushed, spoilt } = block
    block.stream = 0
    this.#readBlock(flow, way, block.bytes, 0, spoilt ? -1 : block.length, stream, endStream, pushed)
    block.clear()
  }

  /** A whole header block in `bytes[start, end)`; `end` before `start`: it cannot be read. */
  #readBlock(
    flow: ByteFlow,
    way: Way,
    bytes: Buffer,
    start: number,
    end: number,
    id: number,
    last: boolean,
    pushed: boolean,
  ): void {
    fields.clear()
    const readable = start <= end && way.hpack.decode(bytes, start, end, fields)
    if (!readable) {
      fields.clear()
      fields.unknown = 1
      way.hpack.forget()
      if (++this.#faults > maxFaults) {
        this.#refuse(flow)
        return
      }
    }
    if (pushed) return
    if (way.request) this.#requestHead(way, id, readable)
    else this.#responseHead(id, last, flow.nowNs)
  }

  #requestHead(way: Way, id: number, readable: boolean): void {
    const { begun } = way
    way.begun = undefined
    if (begun === undefined) return
    // The stream began before the connection was observed.
    if (readable && isTrailer()) {
      this.#connection.release(begun)
      return
    }
    const stream = this.#calls.open(id, begun, this.#connection)
    // None was added since `begin` checked that there is room.
    this.#streams.add(id, stream)
    this.#connection.asked(begun)
  }

  #responseHead(id: number, last: boolean, nowNs: number): void {
    const stream = this.#streams.get(id)
    if (stream === undefined) return
    const status = statusOf()
    if (status > 0 && status < 200 && !last) return
    if (!stream.answered) {
      stream.answered = true
      stream.operation.status = status
      if (stream.grpc === Tristate.unknown) stream.grpc = isGrpc()
    }
    if (!last) return
    stream.grpcStatus = grpcStatusOf()
    this.#end(stream, nowNs, ending.set(-1, false, false, false))
  }

  #readReset(flow: ByteFlow, way: Way): void {
    const code = numberAt(flow.bytes, flow.at + frameHeadBytes)
    flow.at += frameHeadBytes + frame.length
    const stream = this.#streams.get(frame.stream)
    if (stream !== undefined) this.#end(stream, flow.nowNs, ending.set(code, way.request, false, false))
  }

  /** The server will ignore streams above `last`; those requests may be retried elsewhere. */
  #goneAway(last: number, nowNs: number): void {
    this.#goneAbove = this.#goneNs === 0 ? last : Math.min(this.#goneAbove, last)
    this.#goneNs = nowNs
    this.#endGone(mostAtOnce)
  }

  /** Ends streams that the server ignores: some at a time, as there may be thousands. */
  #endGone(most: number): void {
    if (this.#goneNs === 0) return
    const gone = selectStreams(this.#streams, ({ id }) => id > this.#goneAbove, most)
    for (const stream of gone) this.#end(stream, this.#goneNs, ending.set(refusedStream, false, false, false))
    if (gone.length < most) this.#goneNs = 0
  }

  #end(stream: OpenStream, endNs: number, how: Ending): void {
    // Ending another one may also have ended this one, if it was silent for long.
    if (this.#streams.take(stream.id) === undefined) return
    if (stream.doubtNs > 0) this.#doubtful--
    stream.operation.endNs = endNs
    const grpc = this.#isGrpc(stream)
    if (grpc) this.#sawGrpc = true
    else this.#sawHttp = true
    this.#calls.end(stream, this.#connection, how, grpc)
    if (this.#doubtful > 0 && !how.broken && !how.unseen) this.#endDoubtful(endNs)
  }

  /** If the headers do not show it, the request's first bytes or the connection's other streams do. */
  #isGrpc(stream: OpenStream): boolean {
    if (stream.grpc !== Tristate.unknown) return stream.grpc === Tristate.yes
    if (stream.prefixed !== Tristate.unknown) return stream.prefixed === Tristate.yes
    return this.#sawGrpc && !this.#sawHttp
  }

  /** Ends streams that may have ended unseen and were silent for long, while others did end. */
  #endDoubtful(nowNs: number): void {
    if (nowNs - this.#lookedNs < doubtNs / 4) return
    this.#lookedNs = nowNs
    const doubtful = selectStreams(
      this.#streams,
      ({ doubtNs: since }) => since > 0 && nowNs - since > doubtNs,
      mostAtOnce,
    )
    for (const stream of doubtful) this.#end(stream, stream.doubtNs, ending.set(-1, false, false, true))
  }

  #refuse(flow: ByteFlow): void {
    flow.at = flow.end
    this.#over = true
    this.#abandonAll()
    if (this.#request.begun !== undefined) this.#connection.release(this.#request.begun)
    this.#request.begun = undefined
    this.#connection.refuse()
  }
}

/** RFC 9113, section 7. */
const refusedStream = 7

/** Whether a gRPC message begins there, in a frame of this length. */
function isPrefix(bytes: Buffer, at: number, length: number): boolean {
  if (length < prefixBytes || bytes[at]! > 1) return false
  const message = bytes.readUInt32BE(at + 1)
  // Several messages may share a frame, and one may span several.
  return message <= 2 ** 26
}
