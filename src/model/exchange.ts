import { Attributes } from './attributes.ts'
import { SpanKind } from './span.ts'

/**
 * One request and its response as a capture back end saw them on a socket. The instance and `bytes` are reused:
 * nothing of it may be kept after the call that it is passed to.
 */
export class Exchange {
  /** Holds the captured heads; the ranges below point into it. */
  bytes: Buffer = Buffer.alloc(0)
  requestStart = 0
  requestEnd = 0
  responseStart = 0
  responseEnd = 0
  /** Name of the protocol that the capture recognised. */
  protocol = ''
  /** True on the side that received the request. */
  server = false
  /** The process on this side. `pid` is the thread group id in the initial pid namespace. */
  pid = 0
  /** Its executable's short name (at most 15 bytes), for processes that are gone before /proc is read. */
  comm = ''
  /** The thread that moved the request's first byte. */
  tid = 0
  /** That thread waits in its calls: the socket is not in non-blocking mode. */
  blocking = false
  /** Inode number of its cgroup (version 2), 0 where unknown. */
  cgroup = 0
  /** Addresses as text without brackets, ports in host order. "local" is this side's end of the connection. */
  localAddress = ''
  localPort = 0
  peerAddress = ''
  peerPort = 0
  /** Status recognised in the kernel; 0 when no response was seen. */
  status = 0
  /** Microseconds since the Unix epoch: first byte of the request, first and last byte of the response (0: none). */
  startUs = 0
  responseUs = 0
  endUs = 0
  /** Exact, from the kernel's monotonic clock. */
  durationNs = 0
  /** Sizes of head and body, and of the bodies alone, in bytes. */
  requestBytes = 0
  responseBytes = 0
  requestBodyBytes = 0
  responseBodyBytes = 0
  /** The connection ended before the response was complete. */
  aborted = false
  /** errno that ended it (for example 104, ECONNRESET), 0 for none. */
  errno = 0
  /**
   * TCP sequence number of the request's first byte: with both ends' addresses it names this exchange, the same on
   * both sides of the connection.
   */
  sequence = 0
  /** The value of a `traceparent` header that the kernel found, as a range of `bytes`; empty when there was none. */
  traceparentStart = 0
  traceparentEnd = 0
  /** The head has further lines that tell its place in a trace: a `tracestate`, or Zipkin's B3. */
  moreContext = false
  /** Of late, requests began of which nothing was told: what a process serves is not known. */
  doubt = false
  /** Of a server's side: names the request as `requestNumber` does; 0: none. */
  request = 0
  /** The thread that received it was sampled at work on it, and has answered it. */
  sampled = false
  /** This side takes what a broker hands out: its process may make requests for it. */
  consumes = false
  /** The kernel side did not frame it: it was found in the bytes of its connection. */
  fromBytes = false
}

/** What a protocol made of an exchange, in OpenTelemetry's names. Reused like the exchange. */
export class Call {
  /** The span's name. */
  name = ''
  /** What `exclude_paths` is matched against; '' where the protocol knows no paths. */
  path = ''
  /** `error.type`; '' when the call did not fail. */
  error = ''
  /** Attributes of the span. */
  readonly attributes = new Attributes()
  /** Attributes of the duration histogram: a small, bounded set of values. */
  readonly dimensions = new Attributes()
  /** The request was an export of telemetry by an instrumented application: not an application's call. */
  telemetry = false
  kind: SpanKind = SpanKind.internal
  /** `signal_type` of `spans_collected`. */
  signalType = ''
  /** Where its duration counts; undefined: nowhere. */
  duration: DurationDesc | undefined = undefined

  clear(): void {
    this.name = ''
    this.path = ''
    this.error = ''
    this.telemetry = false
    this.kind = SpanKind.internal
    this.signalType = ''
    this.duration = undefined
    this.attributes.clear()
    this.dimensions.clear()
  }
}

/** Name, text and bounds of the duration histogram that a protocol fills. */
export interface DurationDesc {
  readonly name: string
  readonly description: string
  readonly bounds: readonly number[]
}
