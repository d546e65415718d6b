import { Destinations, withoutIdentifiers } from '../destinations.ts'
import type { MessageOperation } from '../message-call.ts'
import { messageOperations } from '../message-operations.ts'
import { Properties } from './properties.ts'

const { publish, process, receive } = messageOperations('mqtt')
const request = { ...receive, type: '' }

export const operations = {
  publish,
  process,
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
