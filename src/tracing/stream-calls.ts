import { Exchange } from '../model/exchange.ts'
import { requestNumber } from '../model/request-number.ts'
import { SpanKind } from '../model/span.ts'
import type { Operation } from '../model/stream.ts'
import type { Request } from './contexts.ts'
import type { Stream, StreamSink } from './streams.ts'
import type { Tracer } from './tracer.ts'

export interface StreamCallsOptions {
  readonly tracer: Tracer
  /** Microseconds since the Unix epoch of a time of the monotonic clock. */
  readonly microseconds: (timeNs: number) => number
  /** Counts operations that make no span, by reason. */
  readonly drop: (reason: string, operations: number) => void
  /** The connection is no longer to be passed on. */
  readonly refuse: (connection: number) => void
}

/** Hands what decoders read on to the tracer. Allocates nothing per operation. */
export class StreamCalls implements StreamSink {
  private readonly options: StreamCallsOptions
  private readonly exchange = new Exchange()

  constructor(options: StreamCallsOptions) {
    this.options = options
    this.exchange.fromBytes = true
  }

  asked(stream: Stream, operation: Operation): void {
    this.describe(stream, operation)
    const request = this.options.tracer.begin(this.exchange, operation.context)
    request.owner = operation
    operation.place = request
  }

  ended(stream: Stream, operation: Operation): void {
    const { tracer, microseconds } = this.options
    const { exchange } = this
    this.describe(stream, operation)
    const request = placeOf(operation) ?? tracer.beginLate(exchange, operation.context)
    operation.place = undefined
    exchange.endUs = microseconds(operation.endNs)
    exchange.responseUs = operation.responseNs === 0 ? 0 : microseconds(operation.responseNs)
    exchange.durationNs = Math.max(0, operation.endNs - operation.startNs)
    exchange.requestBytes = operation.requestBytes
    exchange.responseBytes = operation.responseBytes
    exchange.status = operation.status
    tracer.finish(exchange, operation.call, request)
  }

  abandoned(operation: Operation): void {
    const request = placeOf(operation)
    if (request !== undefined) this.options.tracer.forget(request)
    operation.place = undefined
  }

  lost(reason: string, operations: number): void {
    this.options.tracer.lost(operations)
    this.options.drop(reason, operations)
  }

  refused(stream: Stream): void {
    this.options.tracer.ports.refused(stream.serverPort)
    this.options.refuse(stream.connection)
  }

  private describe(stream: Stream, operation: Operation): void {
    const { exchange } = this
    exchange.protocol = stream.protocol.name
    exchange.server = stream.server
    exchange.consumes = operation.call.kind === SpanKind.consumer
    exchange.moreContext = false
    exchange.doubt = false
    exchange.pid = stream.pid
    exchange.comm = stream.comm
    exchange.cgroup = stream.cgroup
    exchange.tid = operation.tid
    exchange.blocking = operation.blocking
    exchange.localAddress = stream.localAddress
    exchange.localPort = stream.localPort
    exchange.peerAddress = stream.peerAddress
    exchange.peerPort = stream.peerPort
    exchange.startUs = this.options.microseconds(operation.startNs)
    exchange.endUs = exchange.startUs
    exchange.sequence = operation.sequence
    exchange.request = stream.server ? requestNumber(operation.tid, operation.startNs) : 0
    exchange.sampled = exchange.request !== 0 && exchange.request === stream.served
    exchange.traceparentEnd = 0
    exchange.traceparentStart = 0
    exchange.aborted = false
    exchange.errno = stream.errno
  }
}

/** Where it stands in its trace; undefined where that was never told, or has been forgotten and is another's now. */
function placeOf(operation: Operation): Request | undefined {
  const request = operation.place as Request | undefined
  return request?.owner === operation ? request : undefined
}
