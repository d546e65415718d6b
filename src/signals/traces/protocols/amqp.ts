import type { Protocol, ProtocolUnit } from '../../../foundation/model/protocol.ts'
import type { StreamConnection, StreamDecoder } from '../../../foundation/model/stream.ts'
import { Messages } from './amqp/messages.ts'
import { AmqpStream } from './amqp/stream.ts'

/**
 * AMQP 0-9-1 with RabbitMQ's extensions, reported by the messaging conventions 1.44.
 *
 * `error.type` is the name of a reply code (`not_found`, `precondition_failed`, …) if the server closed the channel or
 * the connection; `no_route` and similar if it returned a message; `nack` or `reject` if a message was not accepted,
 * `recover` if it is to be redelivered; `channel_closed`; or the reason why the connection broke off.
 */
export const amqp: ProtocolUnit = {
  name: 'amqp',
  title: 'AMQP',
  summary: 'AMQP 0-9-1 (RabbitMQ): published, received and processed messages.',
  key: 'amqp',
  confidence: 'preface',
  peerKind: 'broker',
  create: () => new Amqp(),
}

class Amqp implements Protocol {
  readonly name = amqp.name
  readonly #messages = new Messages()

  open(connection: StreamConnection): StreamDecoder {
    return new AmqpStream(this.#messages, connection)
  }
}
