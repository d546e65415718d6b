import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import { ByteRange } from '../../../../foundation/lib/byte-range.ts'
import { SpanKind } from '../../../../foundation/model/span.ts'
import type { Operation, StreamConnection } from '../../../../foundation/model/stream.ts'
import type { BrokerStream } from '../broker-stream.ts'
import { fail } from '../failure.ts'
import { type RisingRequests, Tally } from '../requests-in-flight.ts'
import { Channel, type Content } from './channel.ts'
import type { Messages } from './messages.ts'
import { errorOfReply, method } from './methods.ts'

/** RabbitMQ's default limit is 2,047; further channels are not followed. */
const maxChannels = 2_048
/**
 * Operations of a connection that may wait for an acknowledgement; further ones end when they are sent or delivered.
 */
const maxWaiting = 4_096
/** Maximum number of the oldest messages searched for a returned one. */
const returnable = 64

/** Marks of an operation. */
const asked = 1
const mandatory = 2
/** It is likely, but not certain, that it gets acknowledged. */
const likely = 4

/**
 * Interprets the methods of a connection.
 *
 * A publish ends with its last byte, or with the server's confirmation if the channel is in confirm mode. Without
 * confirmations it has therefore already ended when the server rejects it by closing the channel. A delivery lasts
 * until the client acknowledges it, and ends immediately if it needs no acknowledgement.
 */
export class Conversation {
  readonly #messages: Messages
  readonly #stream: BrokerStream
  readonly #connection: StreamConnection
  readonly #channels = new Map<number, Channel>()
  readonly #tag = new ByteRange()
  readonly #exchange = new ByteRange()
  readonly #key = new ByteRange()
  readonly #tally = new Tally()
  #waiting = 0

  constructor(messages: Messages, stream: BrokerStream) {
    this.#messages = messages
    this.#stream = stream
    this.#connection = stream.connection
  }

  /** Bytes that it holds in addition to operations. */
  get bytes(): number {
    return this.#tally.bytes
  }

  /** Undefined for channel 0, and above the maximum number of channels. */
  channel(number: number): Channel | undefined {
    const known = this.#channels.get(number)
    if (known !== undefined || number === 0 || this.#channels.size >= maxChannels) return known
    const channel = new Channel(this.#tally)
    this.#channels.set(number, channel)
    return channel
  }

  /** A method with arguments in `flow.bytes[start, end)`; its frame begins at `flow.at`. */
  method(id: number, number: number, flow: ByteFlow, start: number, end: number): void {
    const fields = this.#messages.fields.set(flow.bytes, start, end)
    if (number === 0) {
      if (id === method.connectionClose) this.#failAll(errorOfReply(fields.short()), flow.nowNs)
    } else if (id === method.channelClose) {
      this.#closeChannel(number, errorOfReply(fields.short()) || 'channel_closed', flow.nowNs)
    } else if (id === method.channelOpen || id === method.channelCloseOk) {
      this.#closeChannel(number, 'channel_closed', flow.nowNs)
    } else {
      const channel = this.channel(number)
      if (channel !== undefined) this.#channelMethod(id, channel, flow)
    }
    fields.clear()
  }

  /** The header of a message: sets `content.size`. */
  header(content: Content, bytes: Buffer, start: number, end: number): void {
    const { header } = this.#messages
    const { operation } = content
    // The trace context of a message is for its consumer's processing, not for the fetch.
    const context = operation?.call.kind === SpanKind.client ? undefined : operation?.context
    header.read(bytes, start, end, context)
    content.headed = true
    content.size = header.bodySize
    if (operation === undefined) return
    operation.call.attributes.add('messaging.message.body.size', header.bodySize)
    // A request is complete here; processing of a delivery begins only at its end.
    if (content.tag === 0) this.#ask(operation)
  }

  /** The last byte of a message passed. */
  ended(channel: Channel, content: Content, sent: boolean, nowNs: number): void {
    const { operation, tag, size } = content
    content.end()
    if (operation === undefined) return
    this.#ask(operation)
    if (sent) {
      operation.requestBytes = size
      this.#afterPublish(channel, operation, nowNs)
      return
    }
    operation.responseBytes = size
    operation.responseNs ||= nowNs
    if (tag > 0) this.#wait(channel.delivered, tag, operation, nowNs)
    else this.#stream.end(operation, nowNs)
  }

  /** Framing is lost: messages in transit are treated as complete. */
  endContents(sent: boolean, nowNs: number): void {
    for (const channel of this.#channels.values()) {
      const content = sent ? channel.sent : channel.received
      if (content.open) this.ended(channel, content, sent, nowNs)
    }
  }

  /** The connection ended, with this `error.type`. */
  close(error: string): void {
    this.#failAll(error, 0)
  }

  /** It was another protocol. */
  forget(): void {
    for (const channel of this.#channels.values())
      this.#drain(channel, operation => this.#connection.release(operation))
    this.#channels.clear()
  }

  #channelMethod(id: number, channel: Channel, flow: ByteFlow): void {
    if (id === method.publish) this.#publish(channel, flow)
    else if (id === method.deliver) this.#deliver(channel, flow)
    else if (id === method.ack || id === method.nack || id === method.reject)
      this.#acknowledge(id, channel, flow)
    else if (id === method.get) this.#askForMessage(channel, flow)
    else if (id === method.getOk) this.#got(channel, flow)
    else if (id === method.getEmpty) this.#gotNothing(channel, flow)
    else if (id === method.return) this.#returned(channel, flow)
    else if (id === method.consume) this.#consume(channel)
    else if (id === method.consumeOk) this.#consumeOk(channel)
    else if (id === method.cancel) this.#cancel(channel)
    else if (id === method.confirmSelect) channel.confirms = true
    else if (id === method.recover || id === method.recoverAsync)
      this.#settleUpTo(channel.delivered, Number.POSITIVE_INFINITY, 'recover', flow.nowNs)
  }

  #publish(channel: Channel, flow: ByteFlow): void {
    const exchange = this.#exchange
    const key = this.#key
    const messages = this.#messages
    const { fields } = messages
    this.#interrupted(channel, true, flow.nowNs)
    fields.skip(2)
    fields.shortString(exchange)
    fields.shortString(key)
    const bits = fields.octet()
    const operation = this.#connection.begin(flow)
    if (operation !== undefined) {
      messages.published(operation.call, this.#connection, flow.bytes, exchange, key)
      if ((bits & 1) !== 0) operation.mark |= mandatory
    }
    channel.sent.begin(operation, 0)
    if (operation === undefined) this.#afterPublish(channel, undefined, 0)
  }

  /** Assigns the message its tag, even if it has no operation. */
  #afterPublish(channel: Channel, operation: Operation | undefined, nowNs: number): void {
    if (!channel.confirms) {
      channel.unconfirmed++
      if (operation !== undefined) this.#stream.end(operation, nowNs)
      return
    }
    const tag = channel.nextTag++
    if (operation === undefined) return
    operation.call.attributes.add('messaging.rabbitmq.message.delivery_tag', tag)
    this.#wait(channel.published, tag, operation, nowNs)
  }

  #deliver(channel: Channel, flow: ByteFlow): void {
    const tag = this.#tag
    const exchange = this.#exchange
    const key = this.#key
    const messages = this.#messages
    const { fields, words } = messages
    this.#interrupted(channel, false, flow.nowNs)
    fields.shortString(tag)
    const deliveryTag = fields.longLong()
    fields.skip(1)
    fields.shortString(exchange)
    fields.shortString(key)
    const consumer = channel.consumer(words.intern(flow.bytes, tag.start, tag.end))
    const waits = consumer === undefined ? channel.acknowledges : !consumer.noAck
    const operation = this.#connection.begin(flow)
    if (operation !== undefined) {
      messages.delivered(operation.call, this.#connection, flow.bytes, exchange, key, consumer?.queue ?? '')
      operation.call.attributes.add('messaging.rabbitmq.message.delivery_tag', deliveryTag)
      if (consumer === undefined) operation.mark |= likely
    }
    channel.received.begin(operation, waits ? deliveryTag : 0)
  }

  #askForMessage(channel: Channel, flow: ByteFlow): void {
    const key = this.#key
    const messages = this.#messages
    const { fields } = messages
    fields.skip(2)
    fields.shortString(key)
    const operation = this.#connection.begin(flow)
    const hasRoom = channel.gets.push(operation)
    if (operation === undefined) return
    if (!hasRoom) {
      this.#connection.abandon(operation)
      return
    }
    messages.asked(operation.call, this.#connection, flow.bytes, key)
    this.#ask(operation)
  }

  #got(channel: Channel, flow: ByteFlow): void {
    const exchange = this.#exchange
    const key = this.#key
    const messages = this.#messages
    const { fields } = messages
    this.#interrupted(channel, false, flow.nowNs)
    const operation = channel.gets.shift()
    const tag = fields.longLong()
    fields.skip(1)
    fields.shortString(exchange)
    fields.shortString(key)
    if (operation !== undefined) {
      operation.responseNs = flow.startNs
      messages.received(operation.call, flow.bytes, exchange, key, '')
      operation.call.attributes.add('messaging.rabbitmq.message.delivery_tag', tag)
    }
    channel.received.begin(operation, 0)
  }

  #gotNothing(channel: Channel, flow: ByteFlow): void {
    const operation = channel.gets.shift()
    if (operation === undefined) return
    operation.responseNs = flow.startNs
    this.#stream.end(operation, flow.nowNs)
  }

  /** The message could not be routed: the oldest mandatory one to the same destination failed. */
  #returned(channel: Channel, flow: ByteFlow): void {
    const tag = this.#tag
    const exchange = this.#exchange
    const key = this.#key
    const messages = this.#messages
    const { fields } = messages
    this.#interrupted(channel, false, flow.nowNs)
    const error = errorOfReply(fields.short())
    fields.shortString(tag)
    fields.shortString(exchange)
    fields.shortString(key)
    const { name } = messages.destination(flow.bytes, exchange, key, '')
    const operation = returnedOf(channel.published, name)
    if (operation !== undefined && error !== '') fail(operation.call, error)
    channel.received.begin(undefined, 0)
  }

  #acknowledge(id: number, channel: Channel, flow: ByteFlow): void {
    const { fields } = this.#messages
    const tag = fields.longLong()
    const multiple = id !== method.reject && (fields.octet() & 1) !== 0
    const error = id === method.ack ? '' : id === method.nack ? 'nack' : 'reject'
    const { request, nowNs } = flow
    if (request) channel.acknowledges = true
    else if (this.#learnTag(channel, tag)) {
      this.#settleUpTo(channel.published, tag, channel.published.size === 1 ? error : '', nowNs)
      return
    }
    const requests = request ? channel.delivered : channel.published
    // Tag 0 with "multiple" means all messages (section 1.8.3.13).
    if (multiple) this.#settleUpTo(requests, tag === 0 ? Number.POSITIVE_INFINITY : tag, error, nowNs)
    else {
      const operation = requests.take(tag)
      if (operation !== undefined) this.#settle(operation, error, nowNs)
    }
  }

  /**
   * Continues the tags from a confirmation if its message was not seen, or if confirm mode was not known yet. True in
   * the first case: its tag is above those of all messages that were seen.
   */
  #learnTag(channel: Channel, tag: number): boolean {
    const { confirms, unconfirmed, nextTag } = channel
    channel.unconfirmed = 0
    if (confirms ? tag < nextTag : unconfirmed > 1) return false
    channel.confirms = true
    channel.nextTag = tag + 1
    return confirms
  }

  #consume(channel: Channel): void {
    const key = this.#key
    const tag = this.#tag
    const messages = this.#messages
    const { fields, words } = messages
    fields.skip(2)
    fields.shortString(key)
    fields.shortString(tag)
    const bits = fields.octet()
    const queue = words.intern(fields.bytes, key.start, key.end)
    const consumer = { queue: queue.startsWith('amq.gen-') ? '' : queue, noAck: (bits & 2) !== 0 }
    if (!tag.empty) channel.addConsumer(words.intern(fields.bytes, tag.start, tag.end), consumer)
    channel.expectConsumer(consumer)
  }

  #consumeOk(channel: Channel): void {
    const tag = this.#tag
    const messages = this.#messages
    messages.fields.shortString(tag)
    const consumer = channel.expectedConsumer()
    if (consumer !== undefined)
      channel.addConsumer(messages.words.intern(messages.fields.bytes, tag.start, tag.end), consumer)
  }

  #cancel(channel: Channel): void {
    const tag = this.#tag
    const messages = this.#messages
    messages.fields.shortString(tag)
    channel.removeConsumer(messages.words.intern(messages.fields.bytes, tag.start, tag.end))
  }

  /** A new message begins on the channel, so the previous one is over. */
  #interrupted(channel: Channel, sent: boolean, nowNs: number): void {
    const content = sent ? channel.sent : channel.received
    if (content.open) this.ended(channel, content, sent, nowNs)
  }

  #ask(operation: Operation): void {
    if ((operation.mark & asked) !== 0) return
    operation.mark |= asked
    this.#connection.asked(operation)
  }

  /** Keeps the operation until its tag is acknowledged. */
  #wait(requests: RisingRequests, tag: number, operation: Operation, nowNs: number): void {
    operation.endNs = nowNs
    for (let old = requests.crowdedOut(tag); old !== undefined; old = requests.crowdedOut(tag))
      this.#settle(old, '', old.endNs)
    if (this.#waiting >= maxWaiting || !requests.add(tag, operation)) this.#stream.end(operation, nowNs)
    else this.#waiting++
  }

  #settleUpTo(requests: RisingRequests, tag: number, error: string, nowNs: number): void {
    for (;;) {
      const operation = requests.takeUpTo(tag)
      if (operation === undefined) return
      this.#settle(operation, error, nowNs)
    }
  }

  #settle(operation: Operation, error: string, nowNs: number): void {
    this.#waiting--
    if (operation.call.kind === SpanKind.producer) operation.responseNs = nowNs
    if (error !== '') fail(operation.call, error)
    this.#stream.end(operation, nowNs)
  }

  #closeChannel(number: number, error: string, nowNs: number): void {
    const channel = this.#channels.get(number)
    if (channel === undefined) return
    this.#fail(channel, error, nowNs)
    this.#channels.delete(number)
  }

  #failAll(error: string, nowNs: number): void {
    for (const channel of this.#channels.values()) this.#fail(channel, error || 'connection_closed', nowNs)
    this.#channels.clear()
  }

  #fail(channel: Channel, error: string, nowNs: number): void {
    this.#drain(channel, operation => {
      if ((operation.mark & likely) !== 0 && operation.endNs !== 0) {
        this.#stream.end(operation, operation.endNs)
        return
      }
      this.#ask(operation)
      fail(operation.call, error)
      this.#stream.end(operation, nowNs)
    })
  }

  /** Removes all operations from the channel. */
  #drain(channel: Channel, take: (operation: Operation) => void): void {
    for (const content of [channel.sent, channel.received]) {
      if (content.operation !== undefined) take(content.operation)
      content.end()
    }
    channel.gets.drain(take)
    for (const requests of [channel.published, channel.delivered])
      requests.drain(operation => {
        this.#waiting--
        take(operation)
      })
    channel.clear()
  }
}

/** The oldest mandatory message to a destination that has not failed yet. */
function returnedOf(published: RisingRequests, destination: string): Operation | undefined {
  let looks = 0
  for (let each = published.oldest; each !== undefined && looks < returnable; each = each.newer, looks++) {
    const { call, mark } = each
    if ((mark & mandatory) === 0 || call.error !== '') continue
    if (call.attributes.get('messaging.destination.name') === destination) return each
  }
  return undefined
}
