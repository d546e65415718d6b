import { BoundedMap } from '../lib/bounded-map.ts'
import { ByteFlow } from '../lib/byte-flow.ts'
import type { Protocol } from '../model/protocol.ts'
import { Operation, type Segment, type StreamConnection, type StreamDecoder } from '../model/stream.ts'

/** What becomes of what decoders read. */
export interface StreamSink {
  /** A request is known, and may be somebody's child or have children from now on. */
  asked(stream: Stream, operation: Operation): void
  /** It is done. Nothing of it may be kept. */
  ended(stream: Stream, operation: Operation): void
  /** It is given back: nothing will be told of it any more. */
  abandoned(operation: Operation): void
  /** So many operations were given up: `framing_lost` or `no_memory`. */
  lost(reason: string, operations: number): void
  /** The connection does not speak what the kernel side took it for. */
  refused(stream: Stream): void
}

export interface StreamsOptions {
  readonly maxStreams?: number
  /** Operations that may be under way, over all connections. */
  readonly maxOperations?: number
}

/** Nanoseconds of silence after which nothing more is expected of a socket whose end is not told. */
const silenceNs = 30e9
/** Nanoseconds between two looks at all sockets. */
const lookNs = 1e9

/** Connections whose bytes are read here, each by a decoder of its protocol. */
export class Streams {
  /** Operations that ended, and that were given up. */
  ended = 0
  abandoned = 0
  /** Connections that were not what they seemed. */
  refused = 0
  private readonly protocols: ReadonlyMap<string, Protocol>
  private readonly streams: BoundedMap<number, Stream>
  private readonly pool: Pool
  private lookedNs = 0

  constructor(protocols: readonly Protocol[], sink: StreamSink, options: StreamsOptions = {}) {
    this.protocols = new Map(protocols.map(protocol => [protocol.name, protocol]))
    this.pool = new Pool(sink, options.maxOperations ?? 65_536, this)
    this.streams = new BoundedMap(options.maxStreams ?? 16_384, (_connection, stream) =>
      stream.giveUp('no_memory'),
    )
  }

  get size(): number {
    return this.streams.size
  }

  get underWay(): number {
    return this.pool.used
  }

  segment(segment: Segment): void {
    let stream = this.streams.get(segment.connection)
    if (segment.closed) {
      if (stream === undefined) return
      stream.close(segment.errno)
      this.streams.delete(segment.connection)
      return
    }
    if (stream === undefined || stream.protocol.name !== segment.protocol) {
      stream?.giveUp('framing_lost')
      const protocol = this.protocols.get(segment.protocol)
      if (protocol === undefined) return
      stream = new Stream(protocol, segment, this.pool)
      this.streams.set(segment.connection, stream)
    }
    stream.segment(segment)
  }

  /**
   * Lets go of sockets of which nobody tells the end, once they were silent for long: those of UDP, and those whose bytes
   * are no longer passed on. To be called every now and then with the monotonic clock.
   */
  tick(nowNs: number): void {
    if (nowNs - this.lookedNs < lookNs) return
    this.lookedNs = nowNs
    this.streams.forEach((stream, connection) => {
      if (!stream.endless || nowNs - stream.newestNs < silenceNs) return
      stream.silent(nowNs)
      this.streams.delete(connection)
    })
  }

  /** Looks no further: what is under way makes nothing, as its end is not known. */
  close(): void {
    this.streams.forEach((stream, connection) => {
      stream.giveUp('')
      this.streams.delete(connection)
    })
  }
}

/** The operations that nobody uses. */
class Pool {
  used = 0
  readonly sink: StreamSink
  readonly counts: { ended: number; abandoned: number; refused: number }
  private readonly free: Operation[] = []
  private readonly most: number

  constructor(sink: StreamSink, most: number, counts: { ended: number; abandoned: number; refused: number }) {
    this.sink = sink
    this.most = most
    this.counts = counts
  }

  take(): Operation | undefined {
    if (this.used >= this.most) return undefined
    this.used++
    const operation = this.free.pop() ?? new Operation()
    operation.taken = true
    return operation
  }

  give(operation: Operation): void {
    if (!operation.taken) return
    operation.taken = false
    this.used--
    if (this.free.length >= 4096) return
    const { call } = operation
    call.attributes.forget()
    call.dimensions.forget()
    this.free.push(operation)
  }
}

/** One connection and its decoder. */
export class Stream implements StreamConnection {
  readonly protocol: Protocol
  /** Names it on this host (socket cookie). */
  readonly connection: number
  readonly server: boolean
  readonly joined: boolean
  readonly tls: boolean
  readonly localAddress: string
  readonly localPort: number
  readonly peerAddress: string
  readonly peerPort: number
  /** Of the newest bytes. */
  pid = 0
  comm = ''
  cgroup = 0
  errno = 0
  /** The newest request of which it is known that a thread was sampled at work on it, and answers; 0: none. */
  served = 0
  private tid = 0
  private blocking = false
  /** Nanoseconds of the monotonic clock: the newest call. */
  newestNs = 0
  private readonly pool: Pool
  private readonly decoder: StreamDecoder
  private readonly requests: ByteFlow
  private readonly responses: ByteFlow
  private readonly datagrams: boolean
  private over = false
  /** It is given up while it goes on, for this reason. */
  private leaving = false
  private reason = ''

  constructor(protocol: Protocol, segment: Segment, pool: Pool) {
    this.protocol = protocol
    this.pool = pool
    this.connection = segment.connection
    this.server = segment.server
    this.tls = segment.tls
    this.localAddress = segment.localAddress
    this.localPort = segment.localPort
    this.peerAddress = segment.peerAddress
    this.peerPort = segment.peerPort
    this.joined = segment.joined || segment.position !== 0
    this.datagrams = protocol.name === 'dns' && segment.sequence === 0 && !segment.tls
    this.decoder = protocol.open(this)
    this.requests = new ByteFlow(true, this.decoder)
    this.responses = new ByteFlow(false, this.decoder)
    this.flowOf(segment).received = segment.position
    if (this.joined) {
      this.requests.broken = true
      this.responses.broken = true
    }
  }

  get serverAddress(): string {
    return this.server ? this.localAddress : this.peerAddress
  }

  get serverPort(): number {
    return this.server ? this.localPort : this.peerPort
  }

  get clientAddress(): string {
    return this.server ? this.peerAddress : this.localAddress
  }

  get clientPort(): number {
    return this.server ? this.peerPort : this.localPort
  }

  segment(segment: Segment): void {
    if (this.over) return
    this.pid = segment.pid
    this.comm = segment.comm
    this.cgroup = segment.cgroup
    this.tid = segment.tid
    this.blocking = segment.blocking
    this.newestNs = segment.timeNs
    if (segment.served !== 0) this.served = segment.served
    const flow = this.flowOf(segment)
    const missing = (segment.position - flow.received) | 0
    if (missing !== 0) {
      flow.gap(Math.max(0, missing))
      if (missing < 0) flow.received += missing
    }
    const { bytes, start, end, length, tail, timeNs, sequence } = segment
    const unseen = length - (end - start)
    const first = unseen > 0 ? end - tail : end
    flow.feed(bytes, start, first, timeNs, sequence)
    if (unseen > 0 && !this.over) {
      flow.gap(unseen)
      if (tail > 0 && !this.over) flow.feed(bytes, first, end, timeNs, (sequence + length - tail) >>> 0)
    }
    // What the decoder of a refused connection still has is nothing that anybody asked for.
    if (this.over) this.decoder.close()
  }

  /** Its end will not be told: it was refused, or is a socket of UDP, whose bytes have no sequence numbers. */
  get endless(): boolean {
    return this.over || this.datagrams
  }

  /** It goes on unseen: what is under way is counted as lost for this reason, or forgotten where there is none. */
  giveUp(reason: string): void {
    if (this.over) return
    this.leaving = true
    this.reason = reason
    this.decoder.close()
    this.over = true
  }

  /** Nothing more is expected of it. */
  silent(nowNs: number): void {
    this.newestNs = nowNs
    this.close(0)
  }

  close(errno: number): void {
    if (this.over) return
    this.errno = errno
    this.decoder.close()
    this.over = true
  }

  begin(flow: ByteFlow): Operation | undefined {
    const operation = this.pool.take()
    if (operation === undefined) {
      this.pool.sink.lost('no_memory', 1)
      return undefined
    }
    operation.call.clear()
    operation.context.clear()
    operation.startNs = flow.startNs
    operation.responseNs = 0
    operation.endNs = 0
    operation.requestBytes = 0
    operation.responseBytes = 0
    operation.status = 0
    operation.sequence = flow.sequence
    operation.tid = this.tid
    operation.blocking = this.blocking
    operation.place = undefined
    operation.id = 0
    operation.mark = 0
    return operation
  }

  asked(operation: Operation): void {
    this.pool.sink.asked(this, operation)
  }

  end(operation: Operation): void {
    if (this.over || (this.leaving && isUnfinished(operation))) {
      this.release(operation)
      return
    }
    if (operation.endNs === 0) operation.endNs = this.newestNs
    this.pool.counts.ended++
    this.pool.sink.ended(this, operation)
    this.pool.give(operation)
  }

  abandon(operation: Operation): void {
    if (this.over) {
      this.release(operation)
      return
    }
    this.pool.counts.abandoned++
    this.pool.sink.abandoned(operation)
    this.pool.sink.lost('framing_lost', 1)
    this.pool.give(operation)
  }

  release(operation: Operation): void {
    if (this.reason !== '') {
      this.pool.counts.abandoned++
      this.pool.sink.lost(this.reason, 1)
    }
    this.pool.sink.abandoned(operation)
    this.pool.give(operation)
  }

  refuse(): void {
    if (this.over) return
    this.over = true
    this.pool.counts.refused++
    this.pool.sink.refused(this)
  }

  /** A server's requests are what it receives, a client's what it sends. */
  private flowOf(segment: Segment): ByteFlow {
    return segment.received === this.server ? this.requests : this.responses
  }
}

/** Its decoder was told of an end that there was not. What was answered, and only waited for a sign of it, is whole. */
function isUnfinished({ responseNs, call }: Operation): boolean {
  return responseNs === 0 || call.error === 'connection_closed'
}
