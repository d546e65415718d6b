import type { Call, DurationDesc } from '../../../foundation/model/call.ts'
import type { SpanKind } from '../../../foundation/model/span.ts'
import type { StreamConnection } from '../../../foundation/model/stream.ts'
import type { Destination } from './destinations.ts'
import { signalTypeOf } from './signal-types.ts'

/** An operation on a message, in the terms of the messaging conventions 1.44. */
export interface MessageOperation {
  /** `messaging.system`. */
  readonly system: string
  /** `messaging.operation.name`. */
  readonly name: string
  /** `messaging.operation.type`; '' if it is none of the types. */
  readonly type: string
  readonly kind: SpanKind
  readonly duration: DurationDesc
}

/** Fills the call from operation, destination and connection. */
export function describeMessage(
  call: Call,
  connection: StreamConnection,
  operation: MessageOperation,
  destination: Destination | undefined,
): void {
  const { attributes, dimensions } = call
  call.kind = operation.kind
  call.signalType = signalTypeOf(operation.system)
  call.duration = operation.duration
  call.name = destination === undefined ? operation.name : destination.spanName(operation.name)
  attributes.add('messaging.system', operation.system)
  dimensions.add('messaging.system', operation.system)
  attributes.add('messaging.operation.name', operation.name)
  dimensions.add('messaging.operation.name', operation.name)
  if (operation.type !== '') {
    attributes.add('messaging.operation.type', operation.type)
    dimensions.add('messaging.operation.type', operation.type)
  }
  if (destination !== undefined) {
    describeDestination(call, destination)
    const { label, template } = destination
    if (label !== '')
      dimensions.add(template === '' ? 'messaging.destination.name' : 'messaging.destination.template', label)
  }
  attributes.add('server.address', connection.serverAddress)
  dimensions.add('server.address', connection.serverAddress)
  attributes.add('server.port', connection.serverPort)
  dimensions.add('server.port', connection.serverPort)
  attributes.add('network.peer.address', connection.peerAddress)
  attributes.add('network.peer.port', connection.peerPort)
}

/** Sets the destination in the span; replaces an earlier one. */
export function describeDestination({ attributes }: Call, destination: Destination): void {
  attributes.set('messaging.destination.name', destination.name)
  if (destination.template !== '') attributes.set('messaging.destination.template', destination.template)
  if (destination.anonymous) attributes.set('messaging.destination.anonymous', true)
}
