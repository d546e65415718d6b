import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import type { Operation, StreamConnection, TraceContext } from '../../../../foundation/model/stream.ts'
import { BrokerSide, BrokerStream } from '../broker-stream.ts'
import type { Destination } from '../destinations.ts'
import { fail } from '../failure.ts'
import { describeMessage, type MessageOperation } from '../message-call.ts'
import { NumberedRequests } from '../requests-in-flight.ts'
import { errorOfConnack, errorOfReason, isFirstByte, isLength, packet } from './packets.ts'
import { operations, type Topics } from './topics.ts'

/** Maximum bytes read of a packet; the rest is skipped. */
const maxRead = 8_192
/** Packets of a direction that may wait for their responses; further ones end immediately. */
const maxWaiting = 1_024
const maxAliases = 1_024
/** Bytes of a topic with its name (measured for one of the longest). */
const aliasBytes = 1_500

/** One direction. */
class Side extends BrokerSide {
  /** The message whose payload is being skipped, and its packet identifier. */
  message: Operation | undefined = undefined
  id = 0
  /** Sent and unanswered packets, by packet identifier. */
  readonly waiting = new NumberedRequests(maxWaiting)
  /** Topics by their aliases (MQTT 5.0, section 3.3.2.3.4). */
  aliases: (Destination | undefined)[] | undefined = undefined
  /** Bytes were lost, possibly including messages; number of messages that ended before their response. */
  gaps = false
  endedEarly = 0
  /** Number of known aliases. */
  known = 0

  /** Bytes that it holds in addition to operations. */
  get bytes(): number {
    return this.waiting.bytes + this.known * aliasBytes
  }
}

/** The packets of one connection. */
export class MqttStream extends BrokerStream<Side> {
  protected readonly sent = new Side()
  protected readonly received = new Side()
  readonly #topics: Topics
  /** SUBSCRIBE and UNSUBSCRIBE by packet identifier, which they share with the client's messages. */
  readonly #requests = new NumberedRequests(maxWaiting)
  #connect: Operation | undefined = undefined
  /** Protocol level: 3, 4 or 5; 0 if CONNECT was not seen. */
  #level = 0

  constructor(topics: Topics, connection: StreamConnection) {
    super(connection)
    this.#topics = topics
  }

  get bytes(): number {
    const { sent, received } = this
    const requests = this.#requests
    return sent.bytes + received.bytes + requests.bytes
  }

  protected step(flow: ByteFlow, side: Side): boolean {
    if (flow.broken && !this.#resynchronise(flow)) return true
    const { bytes, at, end } = flow
    const first = bytes[at]!
    if (!isFirstByte(first, flow.request)) return this.#noPacket(flow)
    const width = widthOfLength(bytes, at + 1, end)
    if (width === 0) return false
    if (width < 0) return this.#noPacket(flow)
    const length = lengthAt(bytes, at + 1, width)
    if (!isLength(first >> 4, length)) return this.#noPacket(flow)
    const start = at + 1 + width
    const needed =
      first >> 4 === packet.publish ? publishHead(bytes, start, end, first, length, this.#level) : length
    if (needed < 0) return this.#noPacket(flow)
    if (end - start < Math.min(needed, maxRead)) return false
    this.#packet(flow, side, start, Math.min(end, start + length), start + length - at)
    return true
  }

  /** Reads the packet that begins at `flow.at`, whose `whole` bytes are then skipped. */
  #packet(flow: ByteFlow, side: Side, start: number, end: number, whole: number): void {
    const { bytes } = flow
    const first = bytes[flow.at]!
    const type = first >> 4
    if (type === packet.publish) {
      if (!this.#publish(flow, side, start, end)) {
        this.fault(flow)
        return
      }
    } else if (type === packet.connect) {
      if (!this.#readConnect(flow, start, end)) {
        this.fault(flow)
        return
      }
    } else this.#answer(type, flow, start, end)
    this.good()
    if (!flow.request) this.confirm()
    if (this.over) return
    side.passage.start(flow, whole)
    if (side.passage.pass(flow)) this.passed(flow, side)
  }

  /** False if it is not a CONNECT. */
  #readConnect(flow: ByteFlow, start: number, end: number): boolean {
    const { bytes } = flow
    const length = bytes.readUInt16BE(start)
    const levelAt = start + 2 + length
    // "MQTT", or "MQIsdp" up to MQTT 3.1. Bridges of Mosquitto set the highest bit of the level.
    if ((length !== 4 && length !== 6) || levelAt >= end || bytes[start + 2] !== 0x4d) return false
    this.#level = bytes[levelAt]! & 0x7f
    if (this.#connect !== undefined) this.connection.release(this.#connect)
    this.#connect = this.#begin(flow, operations.connect)
    return true
  }

  /** False if it is not a PUBLISH. */
  #publish(flow: ByteFlow, side: Side, start: number, end: number): boolean {
    const { bytes } = flow
    const { properties, destinations } = this.#topics
    const flags = bytes[flow.at]!
    const qos = (flags >> 1) & 3
    const topicEnd = start + 2 + bytes.readUInt16BE(start)
    let at = topicEnd
    let id = 0
    if (qos > 0 && at + 2 <= end) {
      id = bytes.readUInt16BE(at)
      if (id === 0) return false
      at += 2
    }
    // A message sent again is the one already waiting.
    if ((flags & 8) !== 0 && side.waiting.has(id)) return true
    const operation = this.connection.begin(flow)
    let topic: Destination | undefined
    if (topicEnd <= end && topicEnd > start + 2) topic = destinations.of(bytes, start + 2, topicEnd)
    if (this.#level === 5 && at < end) {
      const context: TraceContext | undefined = operation?.context
      const propertiesEnd = endOfProperties(bytes, at, end)
      properties.read(bytes, at + widthOfLength(bytes, at, end), Math.min(end, propertiesEnd), context)
      topic = this.#aliased(side, properties.alias, topic)
      at = propertiesEnd
    }
    if (operation === undefined) return true
    const { call } = operation
    describeMessage(call, this.connection, flow.request ? operations.publish : operations.process, topic)
    if (this.#level !== 0) {
      const width = widthOfLength(bytes, flow.at + 1, end)
      const size = lengthAt(bytes, flow.at + 1, width) - (at - start)
      if (size >= 0) {
        call.attributes.add('messaging.message.body.size', size)
        if (flow.request) operation.requestBytes = size
        else operation.responseBytes = size
      }
    }
    if (flow.request) this.connection.asked(operation)
    side.message = operation
    side.id = id
    return true
  }

  /** The topic of an alias; if a topic is given, the alias is set to it. */
  #aliased(side: Side, alias: number, topic: Destination | undefined): Destination | undefined {
    if (alias === 0 || alias > maxAliases) return topic
    if (topic === undefined) return side.aliases?.[alias]
    side.aliases ??= new Array<Destination | undefined>(64).fill(undefined)
    if (side.aliases[alias] === undefined) side.known++
    side.aliases[alias] = topic
    return topic
  }

  /** The message's last byte passed. */
  protected passed(flow: ByteFlow, side: Side): void {
    const { message, id, waiting } = side
    const { nowNs } = flow
    if (message === undefined) return
    side.message = undefined
    if (!flow.request) {
      message.responseNs = nowNs
      this.connection.asked(message)
    }
    if (!flow.broken) this.exact()
    if (id === 0) {
      this.end(message, nowNs)
      return
    }
    const old = waiting.take(id)
    if (old !== undefined) this.end(old, nowNs)
    if (waiting.add(id, message)) return
    side.endedEarly++
    this.end(message, nowNs)
  }

  protected missed(flow: ByteFlow, side: Side): void {
    side.gaps = true
    this.passed(flow, side)
  }

  protected broken(error: string): void {
    this.#drain(operation => {
      fail(operation.call, error)
      this.end(operation, 0)
    })
  }

  protected forget(): void {
    this.#drain(operation => this.connection.release(operation))
  }

  #answer(type: number, flow: ByteFlow, start: number, end: number): void {
    const { bytes, request, nowNs } = flow
    const id = end - start >= 2 ? bytes.readUInt16BE(start) : 0
    // From MQTT 5 on a reason follows the identifier.
    const error = end - start >= 3 ? errorOfReason(bytes[start + 2]!) : ''
    const answered = request ? this.received : this.sent
    if (type === packet.puback || type === packet.pubcomp) this.#settle(flow, answered, id, error)
    else if (type === packet.pubrec) {
      if (error !== '') this.#settle(flow, answered, id, error)
    } else if (type === packet.subscribe || type === packet.unsubscribe) this.#ask(type, flow, id)
    else if (type === packet.suback || type === packet.unsuback) this.#subscribed(bytes, start, end, nowNs)
    else if (type === packet.connack) this.#connected(errorOfConnack(bytes[start + 1]!), nowNs)
    else if (type === packet.disconnect && !request && end > start) this.reason = errorOfReason(bytes[start]!)
  }

  #settle(flow: ByteFlow, side: Side, id: number, error: string): void {
    const { nowNs } = flow
    const operation = side.waiting.take(id)
    if (operation === undefined) {
      this.#unseen(flow, side)
      return
    }
    if (side === this.sent) operation.responseNs = nowNs
    if (error !== '') fail(operation.call, error)
    this.end(operation, nowNs)
  }

  /** A response shows that a message was missed: it counts as lost. */
  #unseen(flow: ByteFlow, side: Side): void {
    if (side.endedEarly > 0) side.endedEarly--
    else if (side.gaps && this.confirmed) {
      const operation = this.connection.begin(flow)
      if (operation !== undefined) this.connection.abandon(operation)
    }
  }

  #ask(type: number, flow: ByteFlow, id: number): void {
    if (this.#requests.isFull || this.#requests.has(id)) return
    const operation = this.#begin(
      flow,
      type === packet.subscribe ? operations.subscribe : operations.unsubscribe,
    )
    if (operation !== undefined) this.#requests.add(id, operation)
  }

  /** Any reason code in the response may be a rejection. */
  #subscribed(bytes: Buffer, start: number, end: number, nowNs: number): void {
    const id = bytes.readUInt16BE(start)
    const operation = this.#requests.take(id)
    if (operation === undefined) return
    let error = ''
    const first = this.#level === 5 ? endOfProperties(bytes, start + 2, end) : start + 2
    for (let at = first; at < end && error === ''; at++) error = errorOfReason(bytes[at]!)
    this.#settleRequest(operation, error, nowNs)
  }

  #connected(error: string, nowNs: number): void {
    const operation = this.#connect
    this.#connect = undefined
    if (operation !== undefined) this.#settleRequest(operation, error, nowNs)
  }

  /** Only a rejection is an operation. */
  #settleRequest(operation: Operation, error: string, nowNs: number): void {
    if (error === '') {
      this.connection.release(operation)
      return
    }
    operation.responseNs = nowNs
    fail(operation.call, error)
    this.connection.asked(operation)
    this.confirm()
    this.end(operation, nowNs)
  }

  #begin(flow: ByteFlow, operation: MessageOperation): Operation | undefined {
    const begun = this.connection.begin(flow)
    if (begun !== undefined) describeMessage(begun.call, this.connection, operation, undefined)
    return begun
  }

  /** True at a call whose first packet is whole, and whose packets end where its bytes do. */
  #resynchronise(flow: ByteFlow): boolean {
    const { bytes, end } = flow
    if (flow.atCall && isChain(bytes, flow.at, end, flow.request)) {
      flow.broken = false
      return true
    }
    flow.at = end
    return false
  }

  /** The available bytes begin no packet. */
  #noPacket(flow: ByteFlow): true {
    this.fault(flow)
    return true
  }

  /** Removes all messages in flight; requests, which the server did not reject, are forgotten. */
  #drain(take: (operation: Operation) => void): void {
    for (const side of [this.sent, this.received]) {
      if (side.message !== undefined) take(side.message)
      side.message = undefined
      side.waiting.drain(take)
    }
    this.#requests.drain(operation => this.connection.release(operation))
    if (this.#connect !== undefined) this.connection.release(this.#connect)
    this.#connect = undefined
  }
}

/** Size of a variable byte integer (MQTT 5.0, section 1.5.5): 0 if it is cut off, -1 if it is invalid. */
function widthOfLength(bytes: Buffer, at: number, end: number): number {
  for (let width = 1; width <= 4; width++) {
    if (at + width > end) return 0
    if (bytes[at + width - 1]! < 0x80) return width
  }
  return -1
}

function lengthAt(bytes: Buffer, at: number, width: number): number {
  let length = 0
  for (let i = width - 1; i >= 0; i--) length = length * 128 + (bytes[at + i]! & 0x7f)
  return length
}

/** End of properties that begin with their length at `at`; `end` if the length is cut off. */
function endOfProperties(bytes: Buffer, at: number, end: number): number {
  const width = widthOfLength(bytes, at, end)
  return width <= 0 ? end : at + width + lengthAt(bytes, at, width)
}

/** Bytes of a PUBLISH before its payload, as far as known; -1 if it is invalid. */
function publishHead(
  bytes: Buffer,
  start: number,
  end: number,
  first: number,
  length: number,
  level: number,
): number {
  if (start + 2 > end) return 2
  const id = (first & 6) === 0 ? 0 : 2
  const topic = 2 + bytes.readUInt16BE(start)
  if (topic + id > length) return -1
  // Only an alias can replace the topic, which must not contain control bytes (section 1.5.4).
  if (topic === 2 && level !== 0 && level !== 5) return -1
  for (let at = start + 2; at < Math.min(end, start + topic); at++) if (bytes[at]! < 0x20) return -1
  if (level !== 5) return topic + id
  const at = start + topic + id
  if (topic + id === length) return -1
  const width = widthOfLength(bytes, at, Math.min(end, start + length))
  if (width < 0) return -1
  if (width === 0) return Math.min(length, topic + id + 4)
  const head = topic + id + width + lengthAt(bytes, at, width)
  return head > length ? -1 : head
}

/** True for consecutive whole packets that end at `end`. */
function isChain(bytes: Buffer, start: number, end: number, request: boolean): boolean {
  let at = start
  while (at < end) {
    const first = bytes[at]!
    if (!isFirstByte(first, request)) return false
    const width = widthOfLength(bytes, at + 1, end)
    if (width <= 0) return false
    const length = lengthAt(bytes, at + 1, width)
    if (!isLength(first >> 4, length)) return false
    const from = at + 1 + width
    if (first >> 4 === packet.publish && publishHead(bytes, from, end, first, length, 0) < 0) return false
    at = from + length
  }
  return at === end
}
