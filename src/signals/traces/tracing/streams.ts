import { ByteFlow } from '../../../foundation/lib/byte-flow.ts'
import type { MemoryGovernor } from '../../../foundation/lib/memory-governor.ts'
import { Connection } from '../../../foundation/model/connection.ts'
import type { DropReasonName } from '../../../foundation/model/drop-reasons.ts'
import type { Protocol } from '../../../foundation/model/protocol.ts'
import { requestNumber } from '../../../foundation/model/request-number.ts'
import type { Operation, Segment, StreamConnection, StreamDecoder } from '../../../foundation/model/stream.ts'
import { OperationPool, type OperationSink } from './operation-pool.ts'
import { StreamRoom, Tenant } from './stream-room.ts'

export interface StreamsOptions {
  readonly maxStreams?: number
  /** Bytes that connections and their requests may hold together. */
  readonly maxBytes?: number
  readonly governor?: Pick<MemoryGovernor, 'pressure' | 'limitOf' | 'register'> | undefined
  /** Whether a process has ended. Undefined if that cannot be checked. */
  readonly isGone?: (pid: number) => boolean
  /** Why bytes are missing that the kernel side has read. Default: `ring_full`. */
  readonly noRoom?: () => DropReasonName
}

/** Nanoseconds of silence after which a socket whose end is not reported is closed. */
const silenceNs = 30e9
/** Nanoseconds between two checks of all sockets. */
const lookNs = 1e9
/**
 * Maximum number of silent connections whose process is checked at a time; nanoseconds until the next check of each.
 */
const mostAsked = 128
const askNs = 300e9
/** Maximum part of the table memory for connections and their requests, and its default. */
const share = 3 / 8
const usualBytes = 24 * 2 ** 20
/** Bytes of a connection (measured, with the largest of most decoders), and of one that is no longer decoded. */
const streamBytes = 1_560
const overBytes = 400
/** Part of the connections that give way at a time when there are too many. */
const turnPart = 1 / 64
/** Maximum number of requests ended at a time when their connection closes. */
const mostClosed = 64
/** Milliseconds that giving memory back may take. */
const shedMs = 5
/** Why operations can no longer be followed: by their bytes, and because bytes found no buffer to be read into. */
const framingLost = 'framing_lost'
const buffersBusy = 'buffers_busy'

/** Connections whose bytes are read here, each by a decoder of its protocol. */
export class Streams {
  readonly #protocols: ReadonlyMap<string, Protocol>
  readonly #streams = new Map<number, Stream>()
  readonly #room: StreamRoom<Stream>
  readonly #pool: OperationPool<Stream>
  readonly #maxStreams: number
  readonly #isGone: (pid: number) => boolean
  readonly #noRoom: () => DropReasonName
  #lookedNs = 0
  /** Connections that ended with more operations than are ended at a time. */
  readonly #closing = new Set<Stream>()
  #timer: NodeJS.Immediate | undefined
  readonly #giveUp = (stream: Stream): void => {
    stream.giveUp('no_memory')
    this.#drop(stream)
  }

  constructor(protocols: readonly Protocol[], sink: OperationSink, options: StreamsOptions = {}) {
    const { governor } = options
    this.#isGone = options.isGone ?? (() => false)
    this.#noRoom = options.noRoom ?? (() => 'ring_full')
    this.#protocols = new Map(protocols.map(protocol => [protocol.name, protocol]))
    this.#room = new StreamRoom(options.maxBytes ?? governor?.limitOf(share) ?? usualBytes)
    this.#pool = new OperationPool(sink, this.#room, governor ?? { pressure: 0 })
    this.#maxStreams = options.maxStreams ?? 16_384
    const table = { kind: 'intake', share, shed: (bytes: number) => this.#shed(bytes) } as const
    governor?.register({ ...table, name: 'connections', bytes: () => this.bytes - this.requestBytes })
    governor?.register({ ...table, name: 'requests under way', bytes: () => this.requestBytes })
  }

  /** Operations that ended, and that were given up. */
  get ended(): number {
    return this.#pool.ended
  }

  get abandoned(): number {
    return this.#pool.abandoned
  }

  /** Connections that turned out to speak another protocol. */
  get refused(): number {
    return this.#pool.refused
  }

  get size(): number {
    return this.#streams.size
  }

  get inFlight(): number {
    return this.#pool.used
  }

  /** Bytes of connections and requests, and the requests' part. */
  get bytes(): number {
    return this.#room.bytes + this.#pool.waitingBytes
  }

  get requestBytes(): number {
    return this.#pool.bytes + this.#pool.waitingBytes
  }

  segment(segment: Segment): void {
    this.#pool.turn()
    let stream = this.#streams.get(segment.connection)
    if (segment.closed) {
      if (stream === undefined) return
      this.#close(stream, stream.close(segment.errno))
      return
    }
    if (stream === undefined || stream.connection.protocol !== segment.protocol) {
      stream = this.#open(segment, stream)
      if (stream === undefined) return
    }
    stream.segment(segment, this.#noRoom)
    if (this.#room.isOver) this.#room.reclaim(this.#room.turn, 0, this.#giveUp)
  }

  /** Reading failed because of a fault in svc: the connection is no longer decoded, whatever its decoder reports. */
  abandon(connection: number): void {
    const stream = this.#streams.get(connection)
    if (stream === undefined) return
    this.#drop(stream)
    try {
      stream.giveUp('internal_error')
    } catch {
      // Its operations in progress are left unchanged.
    }
  }

  /**
   * Closes silent sockets whose end is not reported: those of UDP, those whose bytes are no longer passed on, and those
   * of ended processes (the record of their end found the ring full). Call it periodically with the monotonic clock.
   */
  tick(nowNs: number): void {
    if (nowNs - this.#lookedNs < lookNs) return
    this.#lookedNs = nowNs
    this.#pool.turn()
    this.#pool.trim()
    let asked = 0
    for (const stream of this.#streams.values()) {
      if (nowNs - stream.newestNs < silenceNs) continue
      if (stream.endless) this.#close(stream, stream.silent(nowNs))
      else if (asked < mostAsked && nowNs >= stream.askNs) {
        asked++
        stream.askNs = nowNs + askNs
        if (!this.#isGone(stream.connection.pid)) continue
        stream.giveUp(this.#noRoom())
        this.#drop(stream)
      }
    }
  }

  /** Finishes immediately what otherwise takes several turns of the event loop because many requests end together. */
  settle(): void {
    clearImmediate(this.#timer)
    this.#timer = undefined
    for (const stream of this.#closing) stream.closeMore(Number.POSITIVE_INFINITY)
    for (const stream of this.#closing) this.#drop(stream)
    this.#pool.settle()
  }

  /** Stops decoding: requests in progress produce nothing, because their end is unknown. */
  close(): void {
    for (const stream of this.#streams.values()) {
      stream.giveUp('')
      this.#drop(stream)
    }
    this.settle()
  }

  /** The stream of a connection that is new or changed its protocol. */
  #open(segment: Segment, before: Stream | undefined): Stream | undefined {
    if (before !== undefined) {
      before.giveUp(framingLost)
      this.#drop(before)
    }
    const protocol = this.#protocols.get(segment.protocol)
    if (protocol === undefined) return undefined
    if (this.#pool.isShut) {
      // A call of the client is most likely a request.
      if (segment.received === segment.server) this.#pool.sink.lost('no_memory', 1)
      return undefined
    }
    if (this.#streams.size >= this.#maxStreams)
      this.#room.reclaim(0, Math.ceil(this.#maxStreams * turnPart), this.#giveUp)
    const stream = new Stream(protocol, segment, this.#pool)
    this.#streams.set(segment.connection, stream)
    this.#room.add(stream, segment.cgroup, segment.pid, streamBytes)
    return stream
  }

  /** Its connection ended; `isLong`: some of its operations are ended later. */
  #close(stream: Stream, isLong: boolean): void {
    if (!isLong) {
      this.#drop(stream)
      return
    }
    this.#streams.delete(stream.connection.id)
    this.#closing.add(stream)
    this.#timer ??= setImmediate(() => this.#closeOne())
  }

  #closeOne(): void {
    this.#timer = undefined
    this.#pool.turn()
    for (const stream of this.#closing) {
      if (!stream.closeMore(mostClosed)) this.#drop(stream)
      break
    }
    if (this.#closing.size > 0) this.#timer = setImmediate(() => this.#closeOne())
  }

  #drop(stream: Stream): void {
    if (!this.#closing.delete(stream)) this.#streams.delete(stream.connection.id)
    this.#room.remove(stream)
  }

  #shed(bytes: number): number {
    const stop = performance.now() + shedMs
    let freed = 0
    while (freed < bytes && performance.now() < stop) {
      const more = this.#room.reclaim(Math.min(bytes - freed, this.#room.turn), 0, this.#giveUp)
      if (more <= 0) break
      freed += more
    }
    return freed
  }
}

/** One connection and its decoder. */
class Stream extends Tenant implements StreamConnection {
  readonly connection = new Connection()
  readonly joined: boolean
  errno = 0
  /** Number of the newest request that its thread was sampled working on and has begun to answer; 0: none. */
  served = 0
  #tid = 0
  #blocking = false
  /** Nanoseconds of the monotonic clock: the newest call, and when to check whether its process has ended. */
  newestNs = 0
  askNs = 0
  readonly #pool: OperationPool<Stream>
  #decoder: StreamDecoder
  #requests: ByteFlow
  #responses: ByteFlow
  readonly #datagrams: boolean
  #over = false
  /** It was given up while the connection continues; `#reason` has the reason. */
  leaving = false
  #reason: DropReasonName | '' = ''
  /** Why operations are being abandoned. */
  #cause: DropReasonName = framingLost
  /** Bytes that it holds in addition to its operations. */
  #ownBytes: number

  constructor(protocol: Protocol, segment: Segment, pool: OperationPool<Stream>) {
    super()
    this.#pool = pool
    const { connection } = this
    connection.id = segment.connection
    connection.protocol = protocol.name
    connection.fromBytes = true
    connection.server = segment.server
    connection.tls = segment.tls
    connection.localAddress = segment.localAddress
    connection.localPort = segment.localPort
    connection.peerAddress = segment.peerAddress
    connection.peerPort = segment.peerPort
    this.joined = segment.joined || segment.position !== 0
    this.#datagrams = protocol.name === 'dns' && segment.sequence === 0 && !segment.tls
    this.#ownBytes = streamBytes
    this.#decoder = protocol.open(this)
    this.#requests = new ByteFlow(true, this.#decoder)
    this.#responses = new ByteFlow(false, this.#decoder)
    this.#flowOf(segment).received = segment.position
    if (this.joined) {
      this.#requests.broken = true
      this.#responses.broken = true
    }
  }

  get server(): boolean {
    return this.connection.server
  }

  get tls(): boolean {
    return this.connection.tls
  }

  get serverAddress(): string {
    return this.connection.serverAddress
  }

  get serverPort(): number {
    return this.connection.serverPort
  }

  get clientAddress(): string {
    return this.connection.clientAddress
  }

  get clientPort(): number {
    return this.connection.clientPort
  }

  get peerAddress(): string {
    return this.connection.peerAddress
  }

  get peerPort(): number {
    return this.connection.peerPort
  }

  /** `noRoom`: why bytes before this segment are missing. */
  segment(segment: Segment, noRoom: () => DropReasonName): void {
    if (this.#over) return
    this.used = true
    this.connection.pid = segment.pid
    this.connection.comm = segment.comm
    this.#tid = segment.tid
    this.#blocking = segment.blocking
    this.newestNs = segment.timeNs
    if (segment.served !== 0) this.served = segment.served
    const flow = this.#flowOf(segment)
    const missing = (segment.position - flow.received) | 0
    if (missing !== 0) {
      this.#cause = segment.missed ? buffersBusy : noRoom()
      flow.gap(Math.max(0, missing))
      this.#cause = framingLost
      if (missing < 0) flow.received += missing
    }
    const { bytes, start, end, length, tail, timeNs, sequence } = segment
    const unseen = length - (end - start)
    const first = unseen > 0 ? end - tail : end
    flow.feed(bytes, start, first, timeNs, sequence)
    if (unseen > 0 && !this.#over) {
      flow.gap(unseen)
      if (tail > 0 && !this.#over) flow.feed(bytes, first, end, timeNs, (sequence + length - tail) >>> 0)
    }
    // Operations left in the decoder of a refused connection are not requests.
    if (this.#over) this.#leave()
    this.#settleBytes()
  }

  /** Its end will not be reported: it was refused, or is a UDP socket, whose bytes have no sequence numbers. */
  get endless(): boolean {
    return this.#over || this.#datagrams
  }

  /**
   * Stops decoding a live connection: operations in progress count as lost for `reason`, or are forgotten if it is ''.
   */
  giveUp(reason: DropReasonName | ''): void {
    if (this.#over) return
    this.leaving = true
    this.#reason = reason
    this.#decoder.close()
    this.#over = true
  }

  /** Closes a connection from which nothing more is expected. */
  silent(nowNs: number): boolean {
    this.newestNs = nowNs
    return this.close(0)
  }

  /** Ends some of the operations in progress; true: there are more, and `closeMore` is to be called. */
  close(errno: number): boolean {
    if (this.#over) return false
    this.errno = errno
    return this.closeMore(mostClosed)
  }

  closeMore(most: number): boolean {
    if (this.#over) return false
    if (this.#decoder.closeSome?.(most)) return true
    this.#decoder.close()
    this.#over = true
    return false
  }

  begin(flow: ByteFlow): Operation | undefined {
    const operation = this.#pool.take(this, flow.nowNs)
    if (operation === undefined) {
      this.#pool.sink.lost('no_memory', 1)
      return undefined
    }
    operation.call.clear()
    operation.context.clear()
    operation.startNs = flow.startNs
    operation.responseNs = 0
    operation.endNs = 0
    operation.requestBytes = 0
    operation.responseBytes = 0
    operation.requestBodyBytes = 0
    operation.responseBodyBytes = 0
    operation.status = 0
    operation.aborted = false
    operation.errno = 0
    operation.sequence = flow.sequence
    operation.tid = this.#tid
    operation.blocking = this.#blocking
    operation.traceRequest = undefined
    operation.id = 0
    operation.mark = 0
    return operation
  }

  weigh(operation: Operation): void {
    this.#pool.weigh(this, operation)
  }

  asked(operation: Operation): void {
    this.#pool.weigh(this, operation)
    this.#pool.sink.begin(operation)
  }

  end(operation: Operation): void {
    if (this.#over || (this.leaving && isUnfinished(operation))) {
      this.release(operation)
      return
    }
    if (operation.endNs === 0) operation.endNs = this.newestNs
    operation.sampled =
      this.served !== 0 && this.server && this.served === requestNumber(operation.tid, operation.startNs)
    this.#pool.end(this, operation)
  }

  abandon(operation: Operation): void {
    if (this.#over) {
      this.release(operation)
      return
    }
    this.#pool.abandoned++
    this.#pool.sink.abandon(operation)
    this.#pool.sink.lost(this.#cause, 1)
    this.#pool.give(this, operation)
  }

  release(operation: Operation): void {
    if (this.#reason !== '') {
      this.#pool.abandoned++
      this.#pool.sink.lost(this.#reason, 1)
    }
    this.#pool.sink.abandon(operation)
    this.#pool.give(this, operation)
  }

  refuse(): void {
    if (this.#over) return
    this.#over = true
    this.#pool.refused++
    this.#pool.sink.refuse(this.connection)
  }

  /** Releases the memory of a connection that is no longer decoded. */
  #leave(): void {
    this.#decoder.close()
    this.#decoder = blind
    this.#requests = blindFlow
    this.#responses = blindFlow
  }

  /** Counts the memory that it holds in addition to its operations. */
  #settleBytes(): void {
    const bytes = this.#over
      ? overBytes
      : streamBytes + this.#decoder.bytes + this.#requests.kept + this.#responses.kept
    if (bytes === this.#ownBytes) return
    this.#pool.room.grow(this, bytes - this.#ownBytes)
    this.#ownBytes = bytes
  }

  /** A server receives requests; a client sends them. */
  #flowOf(segment: Segment): ByteFlow {
    return segment.received === this.server ? this.#requests : this.#responses
  }
}

/** Its decoder was given an end that did not happen: an answered operation that only waited for its end is complete. */
function isUnfinished({ responseNs, call }: Operation): boolean {
  return responseNs === 0 || call.error === 'connection_closed'
}

/** Reads nothing. */
const blind: StreamDecoder = {
  bytes: 0,
  read: flow => flow.skip(flow.end - flow.at),
  lost: () => {},
  close: () => {},
}
const blindFlow = new ByteFlow(true, blind)
