import { GrpcStatus, statusOfHttp } from '../../../../foundation/lib/grpc-status.ts'
import type { RequestHead } from '../../../../foundation/lib/http-head.ts'
import { Interner } from '../../../../foundation/lib/interner.ts'
import { small } from '../../../../foundation/lib/small-tables.ts'
import { SpanKind } from '../../../../foundation/model/span.ts'
import type { StreamConnection } from '../../../../foundation/model/stream.ts'
import { rpcClient, rpcServer } from '../durations.ts'
import { type Ending, failureOf } from './ending.ts'
import type { OpenStream } from './open-stream.ts'

/**
 * Describes a gRPC call by the RPC conventions 1.44. `error.type` is the status (any but OK for a client; UNKNOWN,
 * DEADLINE_EXCEEDED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE and DATA_LOSS for a server) or, if the connection ended
 * first, the result of `brokenOff`. An unknown status is left out.
 */
export class GrpcCalls {
  readonly #words = small(new Interner({ slots: 4_096, maxLength: 256 }))

  /** Fills the operation's call. `head` was parsed from the kept head of the stream's request. */
  describe(stream: OpenStream, head: RequestHead, connection: StreamConnection, ending: Ending): void {
    const { call } = stream.operation
    const { attributes, dimensions } = call
    const { bytes } = stream.head
    const code = statusOf(stream, ending)
    const status = code < 0 ? '' : (statusNames[code] ?? unknownStatus)
    const { server } = connection
    call.kind = server ? SpanKind.server : SpanKind.client
    call.signalType = 'grpc'
    call.duration = server ? rpcServer : rpcClient
    if (code < 0) call.error = failureOf(ending, connection)
    else if (code !== GrpcStatus.ok && (!server || serverErrors.has(code))) call.error = status
    attributes.add('rpc.system.name', 'grpc')
    dimensions.add('rpc.system.name', 'grpc')
    const method = head.path.empty ? '' : this.#words.intern(bytes, head.path.start + 1, head.path.end)
    call.telemetry = telemetryMethods.has(method)
    // With this status a server says that it does not know the method: a client may send any name.
    const foreign = server && code === GrpcStatus.unimplemented
    call.name = foreign || method === '' ? 'grpc' : method
    if (method !== '') {
      attributes.add('rpc.method', foreign ? '_OTHER' : method)
      dimensions.add('rpc.method', foreign ? '_OTHER' : method)
      if (foreign) attributes.add('rpc.method_original', method)
    }
    this.#describeServer(stream, head, connection)
    if (server) attributes.add('client.address', connection.clientAddress)
    attributes.add('network.peer.address', connection.peerAddress)
    attributes.add('network.peer.port', connection.peerPort)
    if (status !== '') {
      attributes.add('rpc.response.status_code', status)
      dimensions.add('rpc.response.status_code', status)
    }
    if (call.error !== '') {
      attributes.add('error.type', call.error)
      dimensions.add('error.type', call.error)
    }
  }

  #describeServer(stream: OpenStream, head: RequestHead, connection: StreamConnection): void {
    const { attributes, dimensions } = stream.operation.call
    let address = connection.serverAddress
    let port = connection.serverPort
    if (!head.host.host.empty) {
      address = this.#words.intern(stream.head.bytes, head.host.host.start, head.host.host.end)
      port = head.host.port || (stream.https ? 443 : 80)
    }
    attributes.add('server.address', address)
    attributes.add('server.port', port)
    // The client chooses the server's name, so it may be anything.
    if (connection.server) return
    dimensions.add('server.address', address)
    dimensions.add('server.port', port)
  }
}

/** Methods called by OTLP over gRPC. */
const telemetryMethods: ReadonlySet<string> = new Set(
  ['trace.v1.Trace', 'metrics.v1.Metrics', 'logs.v1.Logs', 'profiles.v1development.Profiles'].map(
    service => `opentelemetry.proto.collector.${service}Service/Export`,
  ),
)

const statusNames = Object.keys(GrpcStatus).map(name => name.toUpperCase())
const unknownStatus = statusNames[GrpcStatus.unknown]!

const serverErrors: ReadonlySet<number> = new Set([
  GrpcStatus.unknown,
  GrpcStatus.deadline_exceeded,
  GrpcStatus.unimplemented,
  GrpcStatus.internal,
  GrpcStatus.unavailable,
  GrpcStatus.data_loss,
])

/** Error codes of HTTP/2 that do not map to INTERNAL (grpc/doc/PROTOCOL-HTTP2.md, "Errors"). */
const resetStatuses: Readonly<Record<number, number>> = {
  7: GrpcStatus.unavailable,
  8: GrpcStatus.cancelled,
  11: GrpcStatus.resource_exhausted,
  12: GrpcStatus.permission_denied,
}

/** The status of a finished call; -1 if it had none, or it is unknown. */
function statusOf(stream: OpenStream, ending: Ending): number {
  const { operation, grpcStatus, timeoutNs } = stream
  if (ending.broken) return -1
  if (ending.reset >= 0) {
    const status = resetStatuses[ending.reset] ?? GrpcStatus.internal
    // A client that times out only sends a cancellation.
    const late = timeoutNs > 0 && operation.endNs - operation.startNs >= timeoutNs
    return late && ending.byClient && status === GrpcStatus.cancelled ? GrpcStatus.deadline_exceeded : status
  }
  if (grpcStatus !== -1) return Math.max(-1, grpcStatus)
  if (ending.unseen || operation.status === 0) return -1
  return statusOfHttp(operation.status)
}
