import type { ByteFlow } from '../../../foundation/lib/byte-flow.ts'
import type { Protocol, ProtocolUnit } from '../../../foundation/model/protocol.ts'
import { SpanKind } from '../../../foundation/model/span.ts'
import type { Operation, StreamConnection, StreamDecoder } from '../../../foundation/model/stream.ts'
import { messagingClient } from './durations.ts'
import { brokenOff, fail } from './failure.ts'
import {
  api,
  isFlexible,
  requestBegins,
  requestHeadBytes,
  requestLength,
  responseHeadBytes,
  responseLength,
} from './kafka/api.ts'
import {
  isReplication,
  readFetchResponse,
  readMetadataResponse,
  readProduceRequest,
  readProduceResponse,
} from './kafka/bodies.ts'
import { Contents, Topics } from './kafka/contents.ts'
import { Cursor } from './kafka/cursor.ts'
import { errorName } from './kafka/errors.ts'
import { Groups } from './kafka/groups.ts'
import { describeMessage, type MessageOperation } from './message-call.ts'
import { mark, Numbered } from './numbered.ts'
import { MessageReader, SizedMessages } from './sized-messages.ts'
import { Texts } from './texts.ts'

/**
 * Kafka's protocol, reported by the messaging conventions 1.44, on the client's side.
 *
 * - A Produce request is one span `send {topic}`, with or without acknowledgement.
 * - A Fetch request is one span `poll {topic}` if it returned records or failed. Others have none: empty results, those
 *   of a broker that copies a partition, and those still waiting when the client disconnects.
 * - Other requests have no span. They provide the consumer group, and the names of topics that newer clients only
 *   identify.
 * - Topic and partition are set if a request concerns only one; messages are counted if all batch heads were captured.
 * - `error.type` is Kafka's name of the first error code, `_OTHER` for one without a name.
 */
export const kafka: ProtocolUnit = {
  name: 'kafka',
  title: 'Kafka',
  summary: 'Kafka requests that send and fetch records.',
  key: 'kafka',
  confidence: 'numbers',
  peerKind: 'broker',
  create: () => new Kafka(),
}

const send: MessageOperation = {
  system: 'kafka',
  name: 'send',
  type: 'send',
  kind: SpanKind.producer,
  duration: messagingClient,
}

const poll: MessageOperation = { ...send, name: 'poll', type: 'receive', kind: SpanKind.client }

/** Marks of operations. The bits above hold the request's key and version. */
const described = 1
/** The contents of the response are known. */
const read = 2
/** It returned records, or failed. */
const fruitful = 4
const keyShift = 8
const versionShift = 16

function keyOf(operation: Operation): number {
  return (operation.mark >> keyShift) & 0xff
}

function versionOf(operation: Operation): number {
  return (operation.mark >> versionShift) & 0xff
}

/** For a response that was not captured: one without records is usually shorter. */
const emptyBytes = 256
/** Longer names of clients and groups are cut, because they are stored per address. */
const maxNameBytes = 256

function nameEnd({ textStart, textEnd }: Cursor): number {
  return Math.min(textEnd, textStart + maxNameBytes)
}

/** Partitions whose numbers are cached as text. */
const maxPartitionTexts = 1_024

/** Requests whose first field is a consumer group. */
const groupKeys = new Set<number>([
  api.offsetCommit,
  api.offsetFetch,
  api.joinGroup,
  api.heartbeat,
  api.leaveGroup,
  api.syncGroup,
  api.consumerGroupHeartbeat,
])

class Kafka implements Protocol {
  readonly name = kafka.name
  readonly topics = new Topics()
  readonly contents = new Contents()
  readonly groups = new Groups()
  readonly cursor = new Cursor()
  /** Clients and groups. */
  readonly texts = new Texts({ slots: 2_048, maxLength: maxNameBytes })
  readonly #partitions: string[] = []

  open(connection: StreamConnection): StreamDecoder {
    return new KafkaStream(this, connection)
  }

  /** Describes the operation from the current contents. */
  describe(operation: Operation, connection: StreamConnection, group: string, client: string): void {
    const { contents } = this
    const { call } = operation
    const { attributes, dimensions } = call
    operation.mark |= described
    const what = keyOf(operation) === api.produce ? send : poll
    describeMessage(call, connection, what, contents.soleTopic)
    if (contents.solePartition >= 0)
      attributes.add('messaging.destination.partition.id', this.#partitionText(contents.solePartition))
    if (what === poll && group !== '') {
      attributes.add('messaging.consumer.group.name', group)
      dimensions.add('messaging.consumer.group.name', group)
    }
    if (client !== '') attributes.add('messaging.client.id', client)
    if (contents.messages > 0) attributes.add('messaging.batch.message_count', contents.messages)
  }

  #partitionText(partition: number): string {
    if (partition >= maxPartitionTexts) return String(partition)
    let text = this.#partitions[partition]
    if (text === undefined) {
      text = String(partition)
      this.#partitions[partition] = text
    }
    return text
  }
}

/** One connection: the state shared by its two directions. */
class KafkaStream extends Numbered {
  readonly protocol: Kafka
  /** From the connection's latest requests; '' until one had them. */
  client = ''
  #group = ''
  protected readonly requests = new SizedMessages(new Requests(this))
  protected readonly answers = new SizedMessages(new Responses(this))

  constructor(protocol: Kafka, connection: StreamConnection) {
    super(connection)
    this.protocol = protocol
  }

  override end(operation: Operation): void {
    this.#complete(operation)
    super.end(operation)
  }

  describe(operation: Operation): void {
    const { protocol, connection, client } = this
    const group = this.#group
    const known = group || protocol.groups.of(connection.clientAddress, client)
    protocol.describe(operation, connection, known, client)
  }

  /** The client named its group. */
  joined(group: string): void {
    if (group === '' || group === this.#group || !this.confirmed) return
    this.#group = group
    this.protocol.groups.learn(this.connection.clientAddress, this.client, group)
  }

  /** Without its response it is unknown whether a Fetch returned records; a Produce did send some. */
  protected unseen(operation: Operation): void {
    if (keyOf(operation) !== api.produce) {
      this.abandon(operation)
      return
    }
    operation.endNs = Math.max(operation.startNs, this.spokeNs)
    this.end(operation)
  }

  protected broken(operation: Operation): void {
    const { errno } = this.connection
    if (keyOf(operation) === api.fetch && errno === 0) {
      this.drop(operation)
      return
    }
    this.#complete(operation)
    fail(operation.call, brokenOff(errno))
    this.end(operation)
  }

  #complete(operation: Operation): void {
    if ((operation.mark & (described | mark.silent)) !== 0) return
    this.protocol.contents.clear()
    this.describe(operation)
  }
}

class Requests extends MessageReader<KafkaStream> {
  readonly headBytes = requestHeadBytes

  length(bytes: Buffer, at: number): number {
    return requestLength(bytes, at)
  }

  begins(bytes: Buffer, at: number, end: number): boolean | undefined {
    return requestBegins(bytes, at, end)
  }

  opened(flow: ByteFlow, length: number): void {
    const { bytes, at } = flow
    const key = bytes.readInt16BE(at + 4)
    const version = bytes.readInt16BE(at + 6)
    let marks = (key << keyShift) | (version << versionShift)
    // Until its body is read, a Produce may have no response.
    if (key === api.produce) marks |= mark.oneWay
    else if (key !== api.fetch) marks |= mark.silent
    const operation = this.stream.begin(flow, bytes.readInt32BE(at + 8), marks)
    if (operation !== undefined) operation.requestBytes = length
  }

  body(bytes: Buffer, start: number, end: number): void {
    const { stream } = this
    const { cursor, texts } = stream.protocol
    const operation = stream.sending
    if (operation === undefined) return
    const key = keyOf(operation)
    const version = versionOf(operation)
    cursor.open(bytes, start + 12, end, false)
    cursor.text()
    stream.client = texts.of(bytes, cursor.textStart, nameEnd(cursor))
    cursor.flexible = isFlexible(key, version)
    cursor.tags()
    if (key === api.produce) this.#readProduce(operation, version)
    else if (key === api.fetch) {
      if (isReplication(cursor, version)) operation.mark |= mark.silent
    } else if (groupKeys.has(key)) {
      if (key === api.offsetFetch && version >= 8) cursor.array()
      cursor.text()
      stream.joined(texts.of(bytes, cursor.textStart, nameEnd(cursor)))
    }
  }

  closed(flow: ByteFlow): void {
    this.stream.sent(flow)
  }

  #readProduce(operation: Operation, version: number): void {
    const { stream } = this
    const { contents, cursor, topics } = stream.protocol
    contents.clear()
    const acks = readProduceRequest(cursor, version, topics, contents)
    if (!Number.isNaN(acks)) operation.mark &= ~mark.oneWay
    if (acks === 0) operation.mark |= mark.unanswered
    // Exact framing with record batches inside is unambiguous, and there is no response to confirm it.
    if (acks === 0 && contents.whole && cursor.at === cursor.end && contents.messages > 0)
      stream.confirmed = true
    stream.describe(operation)
    stream.asked(operation)
  }
}

class Responses extends MessageReader<KafkaStream> {
  readonly headBytes = responseHeadBytes

  length(bytes: Buffer, at: number): number {
    return responseLength(bytes, at)
  }

  begins(bytes: Buffer, at: number, end: number): boolean | undefined {
    if (end - at < 4) return undefined
    if (responseLength(bytes, at) === 0) return false
    if (end - at < responseHeadBytes) return undefined
    return this.stream.has(bytes.readInt32BE(at + 4))
  }

  opened(flow: ByteFlow, length: number): void {
    const { stream } = this
    stream.answered(flow, flow.bytes.readInt32BE(flow.at + 4))
    if (stream.answering !== undefined) stream.answering.responseBytes = length
  }

  body(bytes: Buffer, start: number, end: number): void {
    const { stream } = this
    const { contents, cursor, topics } = stream.protocol
    const operation = stream.answering
    if (operation === undefined) return
    const key = keyOf(operation)
    const version = versionOf(operation)
    cursor.open(bytes, start + responseHeadBytes, end, isFlexible(key, version))
    if (key === api.metadata) readMetadataResponse(cursor, version, topics)
    if ((operation.mark & mark.silent) !== 0) return
    operation.mark |= read
    contents.clear()
    if (key === api.produce) readProduceResponse(cursor, version, contents)
    else {
      readFetchResponse(cursor, version, topics, contents)
      if (contents.touched === 0 && contents.error === 0) return
      operation.mark |= fruitful
      stream.describe(operation)
    }
    if (contents.error !== 0) this.#fail(operation, contents.error)
  }

  closed(flow: ByteFlow): void {
    const { stream } = this
    const operation = stream.answering
    stream.answering = undefined
    if (operation === undefined) return
    operation.endNs = flow.nowNs
    if (keyOf(operation) !== api.fetch || (operation.mark & fruitful) !== 0) stream.end(operation)
    else if ((operation.mark & read) === 0 && operation.responseBytes > emptyBytes) stream.end(operation)
    else stream.drop(operation)
  }

  #fail(operation: Operation, code: number): void {
    if ((operation.mark & described) === 0) {
      this.stream.protocol.contents.clear()
      this.stream.describe(operation)
    }
    fail(operation.call, errorName(code))
  }
}
