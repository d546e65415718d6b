import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import type { ByteFlow } from '../../../foundation/lib/byte-flow.ts'
import { small } from '../../../foundation/lib/small-tables.ts'
import type { Protocol, ProtocolUnit } from '../../../foundation/model/protocol.ts'
import type { Operation, StreamConnection, StreamDecoder } from '../../../foundation/model/stream.ts'
import { describeDatabaseCall, describeDatabaseError } from './database-call.ts'
import { brokenOff, fail } from './failure.ts'
import { Command } from './mongodb/command.ts'
import { Reply } from './mongodb/reply.ts'
import { headBytes, messageBegins, messageLength, opcode } from './mongodb/wire.ts'
import { mark, Numbered } from './numbered.ts'
import { MessageReader, SizedMessages } from './sized-messages.ts'

/**
 * MongoDB's wire protocol (OP_MSG, OP_QUERY, OP_COMPRESSED), reported by the database conventions 1.44, on the client's
 * side.
 *
 * - A command is one span, `{command} {collection}`, or else `{command} {database}`. Commands of the driver itself
 *   (hello, sign-in, endSessions) and unanswered requests from before OP_MSG have none.
 * - `db.response.status_code` and `error.type` are the server's error number: of a command that failed (`ok: 0`), or
 *   else of the first failed write or write concern. `_OTHER` if it sent no number.
 * - A compressed command is a span named `mongodb`: neither its name nor its outcome can be read. The last one before
 *   an orderly end has no span if it was not answered.
 */
export const mongodb: ProtocolUnit = {
  name: 'mongodb',
  title: 'MongoDB',
  summary: 'MongoDB commands and their replies.',
  key: 'mongodb',
  confidence: 'message',
  peerKind: 'store',
  create: () => new Mongodb(),
}

class Mongodb implements Protocol {
  readonly name = mongodb.name
  readonly command = new Command()
  readonly reply = new Reply()
  readonly #names = small(new BoundedMap<string, BoundedMap<string, string>>(128))
  readonly #codes = small(new BoundedMap<number, string>(512))

  open(connection: StreamConnection): StreamDecoder {
    return new MongodbStream(this, connection)
  }

  /** Describes the operation from the current command. */
  describe(operation: Operation, connection: StreamConnection): void {
    const { call } = operation
    const { name, collection, database, batch } = this.command
    operation.mark |= described
    describeDatabaseCall(call, connection, mongodb.name, name || mongodb.name, database, '')
    if (name === '') {
      call.attributes.delete('db.operation.name')
      call.dimensions.delete('db.operation.name')
    }
    if (collection !== '') {
      call.attributes.add('db.collection.name', collection)
      call.dimensions.add('db.collection.name', collection)
    }
    if (batch > 1) call.attributes.add('db.operation.batch.size', batch)
    const target = collection || database
    if (name !== '' && target !== '') call.name = this.#nameOf(name, target)
  }

  /** The end of a long command, which may contain its database. */
  describeTail(operation: Operation, bytes: Buffer, start: number, end: number): void {
    const { attributes, dimensions } = operation.call
    if ((operation.mark & described) === 0 || attributes.get('db.namespace') !== undefined) return
    const database = this.command.databaseIn(bytes, start, end)
    if (database === '') return
    attributes.add('db.namespace', database)
    dimensions.add('db.namespace', database)
  }

  /** For a command whose bytes were not seen, only the connection is known. */
  complete(operation: Operation, connection: StreamConnection): void {
    if ((operation.mark & described) !== 0) return
    this.command.clear()
    this.describe(operation, connection)
  }

  /** Describes the outcome from the current reply, unless an earlier one failed. */
  describeReply(operation: Operation): void {
    const { failed, code } = this.reply
    if (!failed || operation.call.error !== '') return
    if (code > 0) describeDatabaseError(operation.call, this.#codeText(code))
    else fail(operation.call, '_OTHER')
  }

  #codeText(code: number): string {
    let text = this.#codes.get(code)
    if (text === undefined) {
      text = String(code)
      this.#codes.set(code, text)
    }
    return text
  }

  #nameOf(command: string, target: string): string {
    let names = this.#names.get(command)
    if (names === undefined) {
      names = small(new BoundedMap(256))
      this.#names.set(command, names)
    }
    let name = names.get(target)
    if (name === undefined) {
      name = `${command} ${target}`
      names.set(target, name)
    }
    return name
  }
}

/** Mark of an operation: its name and attributes are as complete as they will be. */
const described = 1

class MongodbStream extends Numbered {
  readonly protocol: Mongodb
  protected readonly requests = new SizedMessages(new Requests(this))
  protected readonly answers = new SizedMessages(new Responses(this))

  constructor(protocol: Mongodb, connection: StreamConnection) {
    super(connection)
    this.protocol = protocol
  }

  override end(operation: Operation): void {
    this.protocol.complete(operation, this.connection)
    super.end(operation)
  }

  protected unseen(operation: Operation): void {
    operation.endNs = Math.max(operation.startNs, this.spokeNs)
    this.end(operation)
  }

  protected broken(operation: Operation): void {
    const { errno } = this.connection
    // Unread, the last command of a connection is usually its driver's endSessions, and the driver does not wait for a
    // response.
    const compressed = (operation.mark & mark.oneWay) !== 0 && errno === 0
    if (compressed || (operation.mark & described) === 0) {
      this.drop(operation)
      return
    }
    fail(operation.call, brokenOff(errno))
    this.end(operation)
  }
}

/** One direction: the common part of both. */
abstract class Messages extends MessageReader<MongodbStream> {
  readonly headBytes = headBytes

  length(bytes: Buffer, at: number): number {
    return messageLength(bytes, at)
  }
}

class Requests extends Messages {
  /** Names of databases have 63 bytes at most, and rarely more than 40. */
  override readonly tailBytes = 64

  begins(bytes: Buffer, at: number, end: number): boolean | undefined {
    return messageBegins(bytes, at, end, false)
  }

  opened(flow: ByteFlow, length: number): void {
    const { stream } = this
    const { bytes, at } = flow
    // Drivers send the next command after the response to the previous one.
    stream.settle(mark.unseen)
    const compressed = bytes.readInt32LE(at + 12) === opcode.compressed
    const operation = stream.begin(flow, bytes.readInt32LE(at + 4), compressed ? mark.oneWay : 0)
    if (operation !== undefined) operation.requestBytes = length
  }

  body(bytes: Buffer, start: number, end: number): void {
    const { stream } = this
    const { protocol } = stream
    const { command } = protocol
    const operation = stream.sending
    if (operation === undefined) return
    command.read(bytes, start, end)
    if (command.oneWay) operation.mark |= mark.unanswered
    if (!command.compressed) operation.mark &= ~mark.oneWay
    if (command.silent || (command.oneWay && command.name === '')) operation.mark |= mark.silent
    // Only this protocol has such a command, and it gets no response.
    if (command.oneWay && command.database !== '') stream.confirmed = true
    protocol.describe(operation, stream.connection)
    stream.asked(operation)
  }

  override tail(bytes: Buffer, start: number, end: number): void {
    const { protocol, sending: operation } = this.stream
    if (operation !== undefined) protocol.describeTail(operation, bytes, start, end)
  }

  closed(flow: ByteFlow): void {
    this.stream.sent(flow)
  }
}

class Responses extends Messages {
  /** Number of the current response, and whether others follow it. */
  #id = 0
  #more = false

  begins(bytes: Buffer, at: number, end: number): boolean | undefined {
    return messageBegins(bytes, at, end, true)
  }

  opened(flow: ByteFlow, length: number): void {
    const { bytes, at } = flow
    this.#id = bytes.readInt32LE(at + 4)
    this.#more = false
    this.stream.answered(flow, bytes.readInt32LE(at + 8))
    const operation = this.stream.answering
    if (operation !== undefined) operation.responseBytes += length
  }

  body(bytes: Buffer, start: number, end: number): void {
    const { protocol, answering: operation } = this.stream
    if (operation === undefined) return
    protocol.reply.read(bytes, start, end)
    this.#more = protocol.reply.moreToCome
    protocol.complete(operation, this.stream.connection)
    protocol.describeReply(operation)
  }

  closed(flow: ByteFlow): void {
    const { stream } = this
    const operation = stream.answering
    stream.answering = undefined
    if (operation === undefined) return
    if (this.#more) {
      stream.again(operation, this.#id)
      return
    }
    operation.endNs = flow.nowNs
    stream.end(operation)
  }
}
