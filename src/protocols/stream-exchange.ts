import type { Exchange } from '../model/exchange.ts'
import type { Operation, StreamConnection } from '../model/stream.ts'

/**
 * Fills an exchange with what its connection and operation tell, as a back end that frames in the kernel would. Times
 * are not in it but the response's, which is not 0 where there was one.
 */
export function fillExchange(exchange: Exchange, connection: StreamConnection, operation: Operation): void {
  const { server } = connection
  exchange.server = server
  exchange.pid = connection.pid
  exchange.comm = connection.comm
  exchange.cgroup = connection.cgroup
  exchange.tid = operation.tid
  exchange.blocking = operation.blocking
  exchange.localAddress = server ? connection.serverAddress : connection.clientAddress
  exchange.localPort = server ? connection.serverPort : connection.clientPort
  exchange.peerAddress = connection.peerAddress
  exchange.peerPort = connection.peerPort
  exchange.status = operation.status
  exchange.responseUs = operation.responseNs / 1000
  exchange.requestBytes = operation.requestBytes
  exchange.responseBytes = operation.responseBytes
  exchange.sequence = operation.sequence
  exchange.errno = 0
  exchange.aborted = false
}
