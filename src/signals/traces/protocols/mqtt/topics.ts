import { SpanKind } from '../../../../foundation/model/span.ts'
import { Destinations, withoutIdentifiers } from '../destinations.ts'
import { messagingClient, messagingProcess } from '../durations.ts'
import type { MessageOperation } from '../message-call.ts'
import { Properties } from './properties.ts'

const shared = { system: 'mqtt' }
const request = { ...shared, type: '', kind: SpanKind.client, duration: messagingClient }

export const operations = {
  publish: {
    ...shared,
    name: 'publish',
    type: 'send',
    kind: SpanKind.producer,
    duration: messagingClient,
  },
  process: {
    ...shared,
    name: 'process',
    type: 'process',
    kind: SpanKind.consumer,
    duration: messagingProcess,
  },
  connect: { ...request, name: 'connect' },
  subscribe: { ...request, name: 'subscribe' },
  unsubscribe: { ...request, name: 'unsubscribe' },
} satisfies Record<string, MessageOperation>

/** State shared by all connections. */
export class Topics {
  /** A variable level is replaced by `+`, as in topic filters (MQTT 5.0, section 4.7.1.3). */
  readonly destinations = new Destinations(name => ({
    template: withoutIdentifiers(name, '+'),
    anonymous: false,
  }))
  readonly properties = new Properties()
}
