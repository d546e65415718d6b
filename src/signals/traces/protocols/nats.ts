import type { Protocol, ProtocolUnit } from '../../../foundation/model/protocol.ts'
import type { StreamConnection, StreamDecoder } from '../../../foundation/model/stream.ts'
import { NatsStream } from './nats/stream.ts'
import { Subjects } from './nats/subjects.ts'

/**
 * NATS with JetStream, reported by the messaging conventions 1.44; `messaging.system` is `nats`, which they do not
 * list.
 *
 * A message with a reply subject starting with `_INBOX.` is a request and lasts until its response. A delivery ends
 * immediately, except for JetStream's if the client is known to acknowledge. `error.type` is the name of the -ERR
 * message, `no_responders` or another status of the server, `nak` or `term` of an acknowledgement, `no_response` or
 * `timeout` if no response came, or the reason why the connection broke off.
 */
export const nats: ProtocolUnit = {
  name: 'nats',
  title: 'NATS',
  summary: 'NATS and JetStream: published and processed messages, requests and replies.',
  key: 'nats',
  confidence: 'preface',
  peerKind: 'broker',
  create: () => new Nats(),
}

class Nats implements Protocol {
  readonly name = nats.name
  readonly #subjects = new Subjects()

  open(connection: StreamConnection): StreamDecoder {
    return new NatsStream(this.#subjects, connection)
  }
}
