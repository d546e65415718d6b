import { BoundedMap } from '../lib/bounded-map.ts'
import type { ByteFlow } from '../lib/byte-flow.ts'
import { small } from '../lib/small-tables.ts'
import type { Protocol, ProtocolUnit } from '../model/protocol.ts'
import type { Operation, StreamConnection, StreamDecoder } from '../model/stream.ts'
import { brokenOff } from './broken-off.ts'
import { describeDatabaseCall, describeDatabaseError } from './database-call.ts'
import { fail } from './in-order.ts'
import { Command } from './mongodb/command.ts'
import { Reply } from './mongodb/reply.ts'
import { headBytes, messageBegins, messageLength, opcode } from './mongodb/wire.ts'
import { mark, Numbered, type NumberedOwner } from './numbered.ts'
import { type MessageReader, SizedMessages } from './sized-messages.ts'

/**
 * MongoDB's wire protocol (OP_MSG, OP_QUERY, OP_COMPRESSED), told in the database conventions 1.44, on the client's
 * side.
 *
 * - A command is one span, `{command} {collection}`, else `{command} {database}`. What a driver does for itself (hello,
 *   sign-in, endSessions) and the requests of before OP_MSG that nobody answers are none.
 * - `db.response.status_code` and `error.type` are the server's number of the error: of a command that failed (`ok: 0`),
 *   else of the first write or the write concern that did. `_OTHER` where it said no number.
 * - A compressed command is a span named `mongodb`: neither its name nor its outcome can be read. There is none of the
 *   last one before an orderly end without its answer.
 */
export const mongodb: ProtocolUnit = {
  name: 'mongodb',
  title: 'MongoDB',
  summary: 'MongoDB commands and their replies.',
  key: 'mongodb',
  sign: 'message',
  party: 'store',
  create: () => new Mongodb(),
}

class Mongodb implements Protocol {
  readonly name = mongodb.name
  readonly command = new Command()
  readonly reply = new Reply()
  private readonly names = small(new BoundedMap<string, BoundedMap<string, string>>(128))
  private readonly codes = small(new BoundedMap<number, string>(512))

  open(connection: StreamConnection): StreamDecoder {
    return new MongodbStream(this, connection)
  }

  /** Tells what the command at hand says. */
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
    if (name !== '' && target !== '') call.name = this.nameOf(name, target)
  }

  /** The end of a long command, which may tell its database. */
  describeTail(operation: Operation, bytes: Buffer, start: number, end: number): void {
    const { attributes, dimensions } = operation.call
    if ((operation.mark & described) === 0 || attributes.get('db.namespace') !== undefined) return
    const database = this.command.databaseIn(bytes, start, end)
    if (database === '') return
    attributes.add('db.namespace', database)
    dimensions.add('db.namespace', database)
  }

  /** Of a command whose bytes were not seen only the connection can be told. */
  complete(operation: Operation, connection: StreamConnection): void {
    if ((operation.mark & described) !== 0) return
    this.command.clear()
    this.describe(operation, connection)
  }

  /** Tells what the reply at hand says, unless an earlier one failed. */
  describeReply(operation: Operation): void {
    const { failed, code } = this.reply
    if (!failed || operation.call.error !== '') return
    if (code > 0) describeDatabaseError(operation.call, this.codeText(code))
    else fail(operation, '_OTHER')
  }

  private codeText(code: number): string {
    let text = this.codes.get(code)
    if (text === undefined) {
      text = String(code)
      this.codes.set(code, text)
    }
    return text
  }

  private nameOf(command: string, target: string): string {
    let names = this.names.get(command)
    if (names === undefined) {
      names = small(new BoundedMap(256))
      this.names.set(command, names)
    }
    let name = names.get(target)
    if (name === undefined) {
      name = `${command} ${target}`
      names.set(target, name)
    }
    return name
  }
}

/** Marks of operations: its name and attributes are known as far as they will be, and nobody answers it. */
const described = 1
const unanswered = 2

class MongodbStream implements StreamDecoder, NumberedOwner {
  private readonly protocol: Mongodb
  private readonly numbered: Numbered
  private readonly requests: SizedMessages
  private readonly responses: SizedMessages
  /** When the server spoke last. */
  private answers: ByteFlow | undefined

  constructor(protocol: Mongodb, connection: StreamConnection) {
    this.protocol = protocol
    this.numbered = new Numbered(connection, this)
    this.requests = new SizedMessages(new Requests(protocol, this.numbered))
    this.responses = new SizedMessages(new Responses(protocol, this.numbered))
  }

  read(flow: ByteFlow): void {
    // The conventions know clients of databases only.
    if (this.numbered.connection.server) this.numbered.refuse()
    if (this.numbered.refused) flow.at = flow.end
    else this.of(flow).read(flow)
  }

  lost(flow: ByteFlow): void {
    this.of(flow).lost(flow)
  }

  close(): void {
    this.numbered.close()
  }

  unseen(operation: Operation): void {
    operation.endNs = Math.max(operation.startNs, this.answers?.nowNs ?? 0)
    this.protocol.complete(operation, this.numbered.connection)
    this.numbered.end(operation)
  }

  broken(operation: Operation): void {
    // Unread, the last command of a connection is its driver's endSessions as a rule, whose answer nobody awaits.
    const compressed = (operation.mark & mark.oneWay) !== 0 && this.numbered.connection.errno === 0
    if (compressed || (operation.mark & described) === 0) {
      this.numbered.drop(operation)
      return
    }
    fail(operation, brokenOff(this.numbered.connection.errno))
    this.numbered.end(operation)
  }

  private of(flow: ByteFlow): SizedMessages {
    if (flow.request) return this.requests
    this.answers = flow
    return this.responses
  }
}

/** One direction: what both have in common. */
class Messages {
  readonly headBytes = headBytes
  readonly bodyBytes = 4_096
  protected readonly protocol: Mongodb
  protected readonly numbered: Numbered

  constructor(protocol: Mongodb, numbered: Numbered) {
    this.protocol = protocol
    this.numbered = numbered
  }

  length(bytes: Buffer, at: number): number {
    return messageLength(bytes, at)
  }
}

class Requests extends Messages implements MessageReader {
  /** Names of databases have 63 bytes at most, and seldom more than 40. */
  readonly tailBytes = 64

  begins(bytes: Buffer, at: number, end: number): boolean | undefined {
    return messageBegins(bytes, at, end, false)
  }

  opened(flow: ByteFlow, length: number): void {
    const { numbered } = this
    const { bytes, at } = flow
    // Drivers send the next command when they have the answer to the one before.
    numbered.settle(mark.unseen)
    const compressed = bytes.readInt32LE(at + 12) === opcode.compressed
    const operation = numbered.begin(flow, bytes.readInt32LE(at + 4), compressed ? mark.oneWay : 0)
    if (operation !== undefined) operation.requestBytes = length
  }

  body(bytes: Buffer, start: number, end: number): void {
    const { numbered, protocol } = this
    const { command } = protocol
    const operation = numbered.sending
    if (operation === undefined) return
    command.read(bytes, start, end)
    if (command.oneWay) operation.mark |= unanswered
    if (!command.compressed) operation.mark &= ~mark.oneWay
    if (command.silent || (command.oneWay && command.name === '')) operation.mark |= mark.silent
    // Whoever sends such a command speaks the protocol, and nobody may ever answer it.
    if (command.oneWay && command.database !== '') numbered.confirmed = true
    protocol.describe(operation, numbered.connection)
    numbered.asked(operation)
  }

  tail(bytes: Buffer, start: number, end: number): void {
    const operation = this.numbered.sending
    if (operation !== undefined) this.protocol.describeTail(operation, bytes, start, end)
  }

  closed(flow: ByteFlow): void {
    const { numbered, protocol } = this
    const operation = numbered.sending
    numbered.sending = undefined
    if (operation === undefined || (operation.mark & unanswered) === 0) return
    numbered.take(operation)
    operation.endNs = flow.nowNs
    protocol.complete(operation, numbered.connection)
    numbered.end(operation)
  }

  missed(_flow: ByteFlow): void {}

  strange(inStep: boolean): void {
    this.numbered.strange(inStep)
  }
}

class Responses extends Messages implements MessageReader {
  readonly tailBytes = 1
  /** Number of the answer that is passing, and whether others follow it. */
  private id = 0
  private more = false

  begins(bytes: Buffer, at: number, end: number): boolean | undefined {
    return messageBegins(bytes, at, end, true)
  }

  opened(flow: ByteFlow, length: number): void {
    const { bytes, at } = flow
    this.id = bytes.readInt32LE(at + 4)
    this.more = false
    this.numbered.answered(flow, bytes.readInt32LE(at + 8))
    const operation = this.numbered.answering
    if (operation !== undefined) operation.responseBytes += length
  }

  body(bytes: Buffer, start: number, end: number): void {
    const { protocol } = this
    const operation = this.numbered.answering
    if (operation === undefined) return
    protocol.reply.read(bytes, start, end)
    this.more = protocol.reply.moreToCome
    protocol.complete(operation, this.numbered.connection)
    protocol.describeReply(operation)
  }

  tail(_bytes: Buffer, _start: number, _end: number): void {}

  closed(flow: ByteFlow): void {
    const { numbered, protocol } = this
    const operation = numbered.answering
    numbered.answering = undefined
    if (operation === undefined) return
    if (this.more) {
      numbered.again(operation, this.id)
      return
    }
    operation.endNs = flow.nowNs
    protocol.complete(operation, numbered.connection)
    numbered.end(operation)
  }

  missed(_flow: ByteFlow): void {
    this.numbered.doubt()
  }

  strange(inStep: boolean): void {
    this.numbered.doubt()
    this.numbered.strange(inStep)
  }
}
