import type { ByteFlow, FlowReader } from '../lib/byte-flow.ts'
import { Call } from './call.ts'
import { CapturedHead, Connection } from './connection.ts'

/** The bytes of one call on a connection, or part of them if there are many. Reused: do not keep it. */
export class Segment {
  /** `bytes[start, end)`: the captured bytes of the part; `length - (end - start)` bytes were not captured. */
  bytes: Buffer = Buffer.alloc(0)
  start = 0
  end = 0
  length = 0
  /** How many of the captured bytes are from the end of the part instead of following the first ones. */
  tail = 0
  /** Identifies the connection on this host while it exists (socket cookie). */
  connection = 0
  /** Name of the protocol that the kernel side recognised. */
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
  /** The socket is in blocking mode, so the thread waits in such calls. */
  blocking = false
  /** End of the call: nanoseconds of the monotonic clock. */
  timeNs = 0
  /** Bytes in this direction before this part, modulo 2^32. */
  position = 0
  /** Bytes right before this call were lost for lack of a kernel-side buffer. */
  missed = false
  /** TCP sequence number of the first byte; 0 if unknown. */
  sequence = 0
  /** Number of the request that the thread was sampled serving, and now begins to answer; 0: none. */
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

/** The trace context of a request. */
export class TraceContext {
  /** W3C trace flags; -1: no context. */
  flags = -1
  /** `tracestate`, verbatim. */
  state = ''
  // Most requests have none: the arrays are allocated on first use.
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
 * A request and its response: the fields that the capture or the decoder fills, and the call that the protocol derives
 * from it. Instances are reused: do not keep one.
 */
export class Operation {
  connection: Connection
  readonly call: Call = new Call()
  /** Trace context in the request. */
  readonly context: TraceContext = new TraceContext()
  /** Empty if a decoder reads the bytes. */
  readonly head: CapturedHead
  /**
   * Nanoseconds of the monotonic clock: the calls that moved the request's first byte, and the response's first and
   * last.
   */
  startNs = 0
  /** 0: no byte of a response was seen. */
  responseNs = 0
  endNs = 0
  /** Sizes, if counted. For HTTP: head and body, then the bodies alone. */
  requestBytes = 0
  responseBytes = 0
  requestBodyBytes = 0
  responseBodyBytes = 0
  /** HTTP status; 0 if there is none. */
  status = 0
  /** The connection ended before the response was complete. */
  aborted = false
  /** errno that ended the connection (for example 104, ECONNRESET), 0 for none. */
  errno = 0
  /**
   * TCP sequence number of the request's first byte, 0 if unknown: with the connection's ports it identifies this
   * operation, and is the same on both sides.
   */
  sequence = 0
  /** The thread that moved the request's first byte. */
  tid = 0
  /** The socket is in blocking mode, so that thread waits in its calls. */
  blocking = false
  /** The thread that received it was sampled serving it, and has answered it. */
  sampled = false
  /** In use, not in the pool. */
  taken = false
  /** For the tracer: the operation's position in a trace. */
  traceRequest: object | undefined = undefined
  /** For the decoder: its stream or correlation number. */
  id = 0
  /** For the decoder: neighbours in a table of requests in flight. */
  older: Operation | undefined = undefined
  newer: Operation | undefined = undefined
  chain: Operation | undefined = undefined
  /** For the decoder: any further state. */
  mark = 0
  /** Set by the decoder: bytes that it stores elsewhere for this operation. */
  kept = 0
  /** For the pool: the size that it was counted with. */
  bytes = 0

  /** `head`: for operations that the kernel side frames. */
  constructor(connection: Connection = noConnection, head: CapturedHead = noHead) {
    this.connection = connection
    this.head = head
  }

  get durationNs(): number {
    return Math.max(0, this.endNs - this.startNs)
  }
}

/** A connection as its decoder sees it. */
export interface StreamConnection {
  /** This side is the server. */
  readonly server: boolean
  /** The connection is older than its observation, so earlier bytes are unknown. */
  readonly joined: boolean
  readonly tls: boolean
  /** Text without brackets; ports in host order. `server…`: the server's end, whether local or remote. */
  readonly serverAddress: string
  readonly serverPort: number
  readonly clientAddress: string
  readonly clientPort: number
  /** The other end of this side. */
  readonly peerAddress: string
  readonly peerPort: number
  /** errno that ended the connection, 0 for none or still open. */
  readonly errno: number
  /** The connection continues but is no longer observed: release unanswered operations. */
  readonly leaving: boolean
  /**
   * A request begins at `flow.at`: returns an operation with a cleared call and that time. Undefined: no room, which is
   * counted; the decoder must skip its response.
   */
  begin(flow: ByteFlow): Operation | undefined
  /** The operation, or the decoder's state for it, may have grown since `begin` or the last `asked`. */
  weigh(operation: Operation): void
  /**
   * The request is complete: its name, attributes and context are known. From now on, outgoing calls may become its
   * children.
   */
  asked(operation: Operation): void
  /** The operation ended, and the decoder gives it up. `endNs` 0 becomes the newest byte's time. */
  end(operation: Operation): void
  /** The operation's outcome cannot be determined: it is counted, and the decoder gives it up. */
  abandon(operation: Operation): void
  /** It turned out not to be an operation: returned to the pool without a span. */
  release(operation: Operation): void
  /** The connection does not speak this protocol: its bytes are ignored from now on. */
  refuse(): void
}

/**
 * Decodes both directions of one connection. Never throws, and allocates nothing per message once its caches are warm.
 * Its state is bounded for any input.
 */
export interface StreamDecoder extends FlowReader {
  /** Bytes that it holds besides operations and a fixed part. Constant time: read after each call. */
  readonly bytes: number
  /** The connection ended: end or abandon every operation in flight. */
  close(): void
  /**
   * The same for at most `most` operations, if there may be many and each takes time; true: more remain. No other
   * method is called afterwards.
   */
  closeSome?(most: number): boolean
}
