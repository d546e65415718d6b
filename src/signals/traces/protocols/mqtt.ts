import type { Protocol, ProtocolUnit } from '../../../foundation/model/protocol.ts'
import type { StreamConnection, StreamDecoder } from '../../../foundation/model/stream.ts'
import { MqttStream } from './mqtt/stream.ts'
import { Topics } from './mqtt/topics.ts'

/**
 * MQTT 3.1, 3.1.1 and 5, reported by the messaging conventions 1.44; `messaging.system` is `mqtt`, which they do not
 * list.
 *
 * A message is a span; connections and subscriptions are spans only if the server rejects them. `error.type` is the
 * name of a reason code (`not_authorized`, `quota_exceeded`, …), or the reason why the connection broke off.
 */
export const mqtt: ProtocolUnit = {
  name: 'mqtt',
  title: 'MQTT',
  summary: 'MQTT 3.1, 3.1.1 and 5: published and processed messages.',
  key: 'mqtt',
  confidence: 'numbers',
  peerKind: 'broker',
  create: () => new Mqtt(),
}

class Mqtt implements Protocol {
  readonly name = mqtt.name
  readonly #topics = new Topics()

  open(connection: StreamConnection): StreamDecoder {
    return new MqttStream(this.#topics, connection)
  }
}
