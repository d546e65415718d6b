import type { ByteFlow, FlowReader } from '../lib/byte-flow.ts'
import { Call } from './call.ts'
import { CapturedHead, Connection } from './connection.ts'

/** The bytes of one call on a connection (a part of them, where there were many). Reused: nothing of it may be kept. */
export class Segment {
  /** `bytes[start, end)`: the first bytes of the part; behind them `length - (end - start)` bytes were not captured. */
  bytes: Buffer = Buffer.alloc(0)
  start = 0
  end = 0
  length = 0
  /** Of the bytes that were captured, so many are the last of the part and not those behind the first. */
  tail = 0
  /** Names the connection on this host for as long as it is there (socket cookie). */
  connection = 0
  /** As the kernel side recognised it: name of a protocol. */
  protocol = ''
  /** This side is the server. */
  server = false
  received = false
  /** The connection is older than its observation. */
  joined = false
  /** The connection ended; there are no bytes. */
  closed = false
  errno = 0
  /** The bytes were inside TLS. */
  tls = false
  /** The thread waits in such calls: the socket is not in non-blocking mode. */
  blocking = false
  /** Nanoseconds of the monotonic clock: the call's end. */
  timeNs = 0
  /** Bytes of the direction before this part, modulo 2^32. */
  position = 0
  /** Of those, the ones before this call found no buffer of the kernel side to be read into. */
  missed = false
  /** TCP sequence number of the first byte; 0 where it is not known. */
  sequence = 0
  /** The number of the request that the thread was sampled at work on and begins to answer; 0: none. */
  served = 0
  pid = 0
  tid = 0
  comm = ''
  cgroup = 0
  localAddress = ''
  localPort = 0
  peerAddress = ''
  peerPort = 0
}

/** A place in a trace, as a request carries it. */
export class TraceContext {
  /** W3C trace flags; -1: there is no context. */
  flags = -1
  /** `tracestate` as it came. */
  state = ''
  // Most requests carry none: the arrays are made for the first one that does.
  #traceId: Uint8Array | undefined
  #spanId: Uint8Array | undefined

  get traceId(): Uint8Array {
    this.#traceId ??= new Uint8Array(16)
    return this.#traceId
  }

  get spanId(): Uint8Array {
    this.#spanId ??= new Uint8Array(8)
    return this.#spanId
  }

  clear(): void {
    this.flags = -1
    this.state = ''
  }
}

const noConnection = new Connection()
const noHead = new CapturedHead()

/**
 * A request and its response, from its first byte to its end: what the capture or the decoder of its connection knows,
 * and the call that its protocol makes of it. Instances are used again, so nothing of one may be kept.
 */
export class Operation {
  connection: Connection
  readonly call: Call = new Call()
  /** What the request said of its place in a trace. */
  readonly context: TraceContext = new TraceContext()
  /** Empty where a decoder reads the bytes. */
  readonly head: CapturedHead
  /** Nanoseconds of the monotonic clock: calls that moved the request's first byte, the response's first and last. */
  startNs = 0
  /** 0: no byte of a response was seen. */
  responseNs = 0
  endNs = 0
  /** As far as they are counted. Of HTTP, of head and body, and of the bodies alone. */
  requestBytes = 0
  responseBytes = 0
  requestBodyBytes = 0
  responseBodyBytes = 0
  /** Of HTTP; 0 where there is none. */
  status = 0
  /** The connection ended before the response was complete. */
  aborted = false
  /** errno that ended it (for example 104, ECONNRESET), 0 for none. */
  errno = 0
  /**
   * TCP sequence number of the request's first byte, 0 where it is not known: with the connection's ports it names this
   * operation, the same on both of its sides.
   */
  sequence = 0
  /** The thread that moved the request's first byte. */
  tid = 0
  /** That thread waits in its calls: the socket is not in non-blocking mode. */
  blocking = false
  /** The thread that received it was sampled at work on it, and has answered it. */
  sampled = false
  /** In use, and not in the pool. */
  taken = false
  /** For the tracer: the operation's place in a trace. */
  traceRequest: object | undefined = undefined
  /** For the decoder: its stream or correlation number. */
  id = 0
  /** For the decoder: those beside it in a table of requests in flight. */
  older: Operation | undefined = undefined
  newer: Operation | undefined = undefined
  chain: Operation | undefined = undefined
  /** For the decoder: what else it has to remember. */
  mark = 0
  /** From the decoder: bytes that it keeps for this operation elsewhere. */
  kept = 0
  /** For the pool: what it was counted as holding. */
  bytes = 0

  /** `head`: for operations that the kernel side frames. */
  constructor(connection: Connection = noConnection, head: CapturedHead = noHead) {
    this.connection = connection
    this.head = head
  }

  /** Exact, from the kernel's monotonic clock. */
  get durationNs(): number {
    return Math.max(0, this.endNs - this.startNs)
  }
}

/** A connection as its decoder sees it. */
export interface StreamConnection {
  /** This side is the server. */
  readonly server: boolean
  /** What came before is not known: the connection is older than its observation. */
  readonly joined: boolean
  readonly tls: boolean
  /** Text without brackets; ports in host order. `server…`: the end that serves, whichever side that is. */
  readonly serverAddress: string
  readonly serverPort: number
  readonly clientAddress: string
  readonly clientPort: number
  /** The other end of this side. */
  readonly peerAddress: string
  readonly peerPort: number
  /** errno that ended the connection, 0 for none or not yet. */
  readonly errno: number
  /** It goes on, and nobody looks at it any more: what has no answer is to be released as it is. */
  readonly leaving: boolean
  /**
   * A request begins at `flow.at`: an operation with a cleared call and this time. Undefined: there is no room, which is
   * counted; its answer is then to be passed over.
   */
  begin(flow: ByteFlow): Operation | undefined
  /** The operation, or what is kept for it, may hold more bytes than when it began or was last told of as `asked`. */
  weigh(operation: Operation): void
  /** The request is known: its name, its attributes, its context. Calls to others may come to be its children now. */
  asked(operation: Operation): void
  /** It is done, and the operation is no longer the decoder's. `endNs` 0 becomes the newest byte's time. */
  end(operation: Operation): void
  /** What became of it can no longer be told: counted, and the operation is no longer the decoder's. */
  abandon(operation: Operation): void
  /** It was no operation after all: given back without a trace. */
  release(operation: Operation): void
  /** The connection does not speak this protocol: nothing of it is looked at from now on. */
  refuse(): void
}

/**
 * Reads the two directions of one connection. Never throws, and allocates nothing per message once its caches are warm.
 * What it keeps is bounded, whatever comes.
 */
export interface StreamDecoder extends FlowReader {
  /** Bytes that it keeps beside operations and a fixed part. Constant time: it is asked after each call. */
  readonly bytes: number
  /** The connection ended: each operation that is under way is to be ended or abandoned. */
  close(): void
  /**
   * The same for `most` of them, where there may be many and each takes its time; true: there are more. Nothing else is
   * asked of the decoder from then on.
   */
  closeSome?(most: number): boolean
}
