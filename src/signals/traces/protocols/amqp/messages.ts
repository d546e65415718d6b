import type { ByteRange } from '../../../../foundation/lib/byte-range.ts'
import { Interner } from '../../../../foundation/lib/interner.ts'
import { small } from '../../../../foundation/lib/small-tables.ts'
import type { Call } from '../../../../foundation/model/call.ts'
import type { StreamConnection } from '../../../../foundation/model/stream.ts'
import { type Destination, Destinations, type Pattern, withoutIdentifiers } from '../destinations.ts'
import { describeDestination, describeMessage } from '../message-call.ts'
import { messageOperations } from '../message-operations.ts'
import { Texts } from '../texts.ts'
import { ContentHeader } from './content-header.ts'
import { Fields } from './fields.ts'

const { publish, receive, process: work } = messageOperations('rabbitmq')

/** Name of the default exchange if there is no routing key. */
const defaultExchange = Buffer.from('amq.default')

/**
 * Describes messages, for all connections. The destination is `{exchange}:{routing key}` for a published message and
 * `{exchange}:{routing key}:{queue}` for a received one; empty parts are left out, and so is a queue named like the
 * routing key (conventions 1.44 for RabbitMQ).
 */
export class Messages {
  readonly fields = new Fields()
  readonly header = new ContentHeader()
  /** Names of queues and of consumers. */
  readonly words = small(new Interner({ slots: 1_024, maxLength: 256 }))
  readonly #keys = new Texts({ slots: 4_096, maxLength: 256 })
  readonly #destinations = new Destinations(patternOf)
  /** Three names of 255 bytes at most. */
  readonly #joined = Buffer.alloc(1_024)
  #length = 0

  published(
    call: Call,
    connection: StreamConnection,
    bytes: Buffer,
    exchange: ByteRange,
    key: ByteRange,
  ): Destination {
    const destination = this.destination(bytes, exchange, key, '')
    describeMessage(call, connection, publish, destination)
    this.#describeKey(call, destination, bytes, key)
    return destination
  }

  delivered(
    call: Call,
    connection: StreamConnection,
    bytes: Buffer,
    exchange: ByteRange,
    key: ByteRange,
    queue: string,
  ): void {
    const destination = this.destination(bytes, exchange, key, queue)
    describeMessage(call, connection, work, destination)
    this.#describeKey(call, destination, bytes, key)
  }

  /** A message is requested from a queue. */
  asked(call: Call, connection: StreamConnection, bytes: Buffer, queue: ByteRange): void {
    this.#length = 0
    this.#join(bytes, queue.start, queue.end)
    describeMessage(call, connection, receive, this.#destinations.of(this.#joined, 0, this.#length))
  }

  /** The queue had a message. The span's name still has only the queue. */
  received(call: Call, bytes: Buffer, exchange: ByteRange, key: ByteRange, queue: string): void {
    const destination = this.destination(bytes, exchange, key, queue)
    describeDestination(call, destination)
    this.#describeKey(call, destination, bytes, key)
  }

  /** Destination of a message with this exchange and key. */
  destination(bytes: Buffer, exchange: ByteRange, key: ByteRange, queue: string): Destination {
    this.#length = 0
    this.#join(bytes, exchange.start, exchange.end)
    this.#join(bytes, key.start, key.end)
    if (queue !== '' && !spelled(bytes, key, queue)) this.#joinText(queue)
    return this.#length === 0
      ? this.#destinations.of(defaultExchange, 0, defaultExchange.length)
      : this.#destinations.of(this.#joined, 0, this.#length)
  }

  #describeKey(call: Call, destination: Destination, bytes: Buffer, key: ByteRange): void {
    if (!key.empty && !destination.anonymous)
      call.attributes.add(
        'messaging.rabbitmq.destination.routing_key',
        this.#keys.of(bytes, key.start, key.end),
      )
  }

  #join(bytes: Buffer, start: number, end: number): void {
    if (end <= start) return
    this.#separate()
    bytes.copy(this.#joined, this.#length, start, end)
    this.#length += end - start
  }

  #joinText(text: string): void {
    this.#separate()
    for (let i = 0; i < text.length; i++) this.#joined[this.#length++] = text.charCodeAt(i)
  }

  #separate(): void {
    if (this.#length > 0) this.#joined[this.#length++] = colon
  }
}

const colon = 0x3a

/** True if the range contains that Latin-1 text. */
function spelled(bytes: Buffer, range: ByteRange, text: string): boolean {
  if (range.end - range.start !== text.length) return false
  for (let i = 0; i < text.length; i++) if (bytes[range.start + i] !== text.charCodeAt(i)) return false
  return true
}

/** Queues named by RabbitMQ: `amq.gen-…`, and those of direct reply-to. */
function patternOf(name: string): Pattern {
  const fixed = name
    .replace(/(^|:)amq\.gen-[^:]*/g, '$1amq.gen-*')
    .replace(/(^|:)amq\.rabbitmq\.reply-to\.[^:]*/g, '$1amq.rabbitmq.reply-to.*')
  return { template: withoutIdentifiers(fixed, '*'), anonymous: fixed !== name }
}
