import type { Call } from '../../../foundation/model/call.ts'
import { SpanKind } from '../../../foundation/model/span.ts'
import type { StreamConnection } from '../../../foundation/model/stream.ts'
import { dbClient } from './durations.ts'
import { signalTypeOf } from './signal-types.ts'

/**
 * Sets what the conventions for database clients 1.44 require for every operation. `namespace` and `text` may be ''.
 * The name is the operation's: neither caches nor the conventions for them have a target with few values.
 */
export function describeDatabaseCall(
  call: Call,
  connection: StreamConnection,
  system: string,
  operation: string,
  namespace: string,
  text: string,
): void {
  const { attributes, dimensions } = call
  describeDatabase(call, system, connection.serverAddress, connection.serverPort)
  call.name = operation
  attributes.add('db.operation.name', operation)
  dimensions.add('db.operation.name', operation)
  if (namespace !== '') {
    attributes.add('db.namespace', namespace)
    dimensions.add('db.namespace', namespace)
  }
  if (text !== '') attributes.add('db.query.text', text)
}

/**
 * Sets what all calls to a database have in common; `address` '' or `port` 0 if unknown. For operations that the kernel
 * only counted, this is all.
 */
export function describeDatabase(call: Call, system: string, address: string, port: number): void {
  const { attributes, dimensions } = call
  call.name = system
  call.kind = SpanKind.client
  call.signalType = signalTypeOf(system)
  call.duration = dbClient
  attributes.add('db.system.name', system)
  dimensions.add('db.system.name', system)
  if (address === '') return
  attributes.add('server.address', address)
  dimensions.add('server.address', address)
  attributes.add('network.peer.address', address)
  if (port === 0) return
  attributes.add('server.port', port)
  dimensions.add('server.port', port)
  attributes.add('network.peer.port', port)
}

/** The server returned an error: `code` is its own word or number, `type` the class of error. */
export function describeDatabaseError(call: Call, code: string, type: string = code): void {
  call.error = type
  call.attributes.add('db.response.status_code', code)
  call.dimensions.add('db.response.status_code', code)
  call.attributes.add('error.type', type)
  call.dimensions.add('error.type', type)
}
