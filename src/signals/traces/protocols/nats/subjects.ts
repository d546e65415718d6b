import { SpanKind } from '../../../../foundation/model/span.ts'
import { Destinations, type Pattern, withoutIdentifiers } from '../destinations.ts'
import type { MessageOperation } from '../message-call.ts'
import { messageOperations } from '../message-operations.ts'
import { Line } from './lines.ts'

const usual = messageOperations('nats')

/** `receive` is JetStream's pull: the messages arrive separately. */
export const operations = {
  ...usual,
  request: { ...usual.publish, name: 'request', kind: SpanKind.client },
} satisfies Record<string, MessageOperation>

/** Prefixes of generated subjects. */
export const inbox = '_INBOX.'
export const acknowledgement = '$JS.ACK.'
export const pull = '$JS.API.CONSUMER.MSG.NEXT.'

/** Parts of JetStream's subjects that are fixed words; the others are names of streams and consumers. */
const words = new Set(
  `$JS API ACCOUNT CONSUMER CREATE DELETE DIRECT DURABLE EVENT ADVISORY FC GET INFO LEADER LIST META METRIC MSG NAMES
  NEXT PEER PURGE REMOVE RESTORE SNAPSHOT STEPDOWN STREAM TEMPLATE UPDATE`.split(/\s+/),
)

/** State shared by all connections. */
export class Subjects {
  readonly line = new Line()
  readonly destinations = new Destinations(patternOf)
}

function patternOf(name: string): Pattern {
  if (name.startsWith(inbox)) return { template: `${inbox}*`, anonymous: true }
  if (!name.startsWith('$')) return { template: withoutIdentifiers(name, '*'), anonymous: false }
  const parts = name.split('.')
  if (parts[0] === '$JS')
    return { template: parts.map(part => (words.has(part) ? part : '*')).join('.'), anonymous: false }
  // Key-value and object stores: the bucket, and any entry in it.
  return { template: parts.length > 2 ? `${parts[0]}.${parts[1]}.*` : name, anonymous: false }
}
