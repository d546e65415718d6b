import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import type { Interner } from '../../../../foundation/lib/interner.ts'
import type { Operation, StreamConnection } from '../../../../foundation/model/stream.ts'
import { describeSqlCall, failSqlCall } from '../sql/describe.ts'
import { type Backslash, mysqlDialects } from '../sql/dialect.ts'
import { HeldStatements } from '../sql/held-statements.ts'
import { SqlStream } from '../sql/sql-stream.ts'
import {
  maxStatementBytes,
  type SqlStatement,
  type SqlStatements,
  unknownStatement,
} from '../sql/statements.ts'
import { databaseOfChange, Handshake } from './handshake.ts'
import {
  capability,
  command,
  commandBytes,
  endBegun,
  endsDone,
  endsNot,
  fullPacket,
  handshakeBytes,
  headBytes,
  isCommand,
  isLikelyRequest,
  isLikelyResponse,
  payloadLength,
  responseEnd,
  shownBytes,
  status,
} from './packets.ts'
import { textBehindAttributes } from './query-text.ts'
import { Expect, MysqlResponse, Outcome } from './response.ts'

/** State shared by the protocol's connections. */
export interface MysqlTexts {
  readonly statements: SqlStatements
  readonly words: Interner
  /** `db.system.name` of a server, as last seen. */
  systemOf(address: string, port: number): string
  learn(address: string, port: number, system: string): void
  preparationOf(statement: SqlStatement): SqlStatement
  useOf(database: string): SqlStatement
  /** An error's number as text. */
  codeOf(code: number): string
}

/** Phases of a connection. */
const greeting = 0
const login = 1
const authentication = 2
const commands = 3

/** With it, MariaDB's clients refer to the statement that they prepared last. */
const lastPrepared = 0xffff_ffff
/** The attributes of a connection have 64 KiB at most. */
const maxLoginBytes = 131_072
/** The sequence number is unknown. */
const anySequence = -1

/** One client connection to MySQL or MariaDB. */
export class MysqlStream extends SqlStream {
  readonly #texts: MysqlTexts
  readonly #handshake = new Handshake()
  readonly #response = new MysqlResponse()
  #phase: number
  #system: string
  #backslash: Backslash = 'unknown'
  #prepared: HeldStatements<number> | undefined
  #newest = unknownStatement

  /** The previous packet was full, so the next one continues it. */
  #requestGoesOn = false
  #responseGoesOn = false
  /** The client sends a file. */
  #file = false
  #sequence = anySequence
  /** Bytes that may begin a packet, while framing is lost. */
  #begun = 0

  constructor(connection: StreamConnection, texts: MysqlTexts) {
    super(connection)
    this.#texts = texts
    this.#phase = connection.joined ? commands : greeting
    this.#system = texts.systemOf(connection.serverAddress, connection.serverPort)
  }

  get bytes(): number {
    return this.requests.bytes + (this.#prepared?.bytes ?? 0) + this.namespace.length
  }

  override close(): void {
    this.#prepared?.clear()
    super.close()
  }

  protected override gap(flow: ByteFlow): void {
    // A command shows that authentication is over, even if its end was not seen.
    if (this.#phase !== authentication) this.#phase = commands
    this.#begun = 0
    super.gap(flow)
  }

  protected lostRequests(): void {
    this.#requestGoesOn = false
    // Another statement may have been prepared, or another database selected, since then.
    this.#newest = unknownStatement
    this.namespace = ''
  }

  protected lostResponses(): void {
    this.#responseGoesOn = false
    this.#file = false
  }

  protected settled(): void {
    this.#file = false
    this.#expectResponse()
  }

  protected override get uploads(): boolean {
    return this.#file
  }

  // The client's side

  protected readRequest(flow: ByteFlow): boolean {
    if (flow.broken && !this.#findRequest(flow)) return false
    const { bytes, at, end } = flow
    if (end - at < headBytes) return false
    const length = payloadLength(bytes, at)
    const total = headBytes + length
    if (this.#passesRequest(length, bytes[at + 3]!)) {
      flow.skip(total)
      return true
    }
    if (this.#phase !== commands) return this.#readLogin(flow, total)
    if (bytes[at + 3] !== 0 || length === 0) return this.fault(flow)
    if (end - at <= headBytes) return false
    const code = bytes[at + headBytes]!
    if (!isCommand(code, length)) return this.fault(flow)
    if (end - at < Math.min(total, headBytes + commandBytes(code))) return false
    this.#command(flow, code, Math.min(end, at + total), total)
    flow.skip(total)
    return true
  }

  /** A packet that is not a command: the rest of a long one, a part of a file, an authentication answer. */
  #passesRequest(length: number, number: number): boolean {
    if (this.#requestGoesOn) {
      this.#requestGoesOn = length === fullPacket
      return true
    }
    if (this.#file) {
      if (length === 0) this.#file = false
      return true
    }
    if (number === 0 && this.#phase === authentication) this.#phase = commands
    if (this.#phase === authentication) return true
    if (number !== 0 && this.requests.kind === Expect.login) return true
    this.#requestGoesOn = length === fullPacket
    return false
  }

  #findRequest(flow: ByteFlow): boolean {
    if (!this.#file && flow.atCall && isLikelyRequest(flow.bytes, flow.at, flow.end)) {
      flow.broken = false
      return true
    }
    return this.passOver(flow)
  }

  #readLogin(flow: ByteFlow, total: number): boolean {
    const handshake = this.#handshake
    const { bytes, at, end } = flow
    if (total > maxLoginBytes) return this.refuse()
    if (end - at < Math.min(total, handshakeBytes)) return false
    const payload = at + headBytes
    if (bytes[at + 3] === 0 || !handshake.readLogin(bytes, payload, Math.min(end, at + total)))
      return this.refuse()
    if (handshake.encrypted || handshake.has(capability.compress) || handshake.has(capability.zstd))
      return this.refuse()
    this.namespace = handshake.database
    this.#response.optionalMetadata = handshake.has(capability.optionalMetadata)
    this.#phase = authentication
    flow.skip(total)
    return true
  }

  #command(flow: ByteFlow, code: number, end: number, total: number): void {
    const { bytes } = flow
    const at = flow.at + headBytes + 1
    switch (code) {
      case command.query:
        this.#operate(flow, Expect.result, this.#queryText(bytes, at, end, flow.at + total), total)
        break
      case command.prepare:
        this.#prepare(flow, this.#readStatement(bytes, at, end, flow.at + total), total)
        break
      case command.execute:
      case command.bulkExecute:
        this.#operate(flow, Expect.result, this.#preparedOf(bytes.readUInt32LE(at)), total)
        break
      case command.initDatabase:
        this.#operate(flow, Expect.one, this.#texts.useOf(this.#texts.words.intern(bytes, at, end)), total)
        break
      case command.changeUser:
        this.#enqueue(Expect.login, undefined, this.#texts.useOf(databaseOfChange(bytes, at, end)))
        break
      case command.closeStatement:
        this.#prepared?.delete(bytes.readUInt32LE(at))
        break
      case command.quit:
      case command.sendLongData:
        break
      case command.binlogDump:
      case command.binlogDumpGtid: // a replication lasts as long as the connection
        this.release()
        this.over = true
        break
      case command.processInfo:
        this.#enqueue(Expect.result, undefined, unknownStatement)
        break
      case command.fieldList:
      case command.fetch:
        this.#enqueue(Expect.rows, undefined, unknownStatement)
        break
      case command.statistics:
        this.#enqueue(Expect.any, undefined, unknownStatement)
        break
      default:
        this.#enqueue(Expect.one, undefined, unknownStatement)
    }
  }

  #operate(flow: ByteFlow, expect: Expect, statement: SqlStatement, total: number): void {
    this.#ask(flow, expect, statement, statement, total)
  }

  #prepare(flow: ByteFlow, statement: SqlStatement, total: number): void {
    this.#newest = statement
    this.#ask(flow, Expect.prepared, statement, this.#texts.preparationOf(statement), total)
  }

  /** `reported`: the statement that the span describes. */
  #ask(flow: ByteFlow, expect: Expect, statement: SqlStatement, reported: SqlStatement, total: number): void {
    const operation = this.begin(flow)
    if (operation !== undefined) {
      operation.requestBytes = total
      describeSqlCall(operation.call, this.connection, this.#system, this.namespace, reported)
      this.connection.asked(operation)
    }
    this.#enqueue(expect, operation, statement)
  }

  #enqueue(expect: Expect, operation: Operation | undefined, statement: SqlStatement): void {
    if (this.requests.size === 0) this.#expectResponse()
    this.push(expect, operation, statement)
  }

  #queryText(bytes: Buffer, at: number, end: number, packetEnd: number): SqlStatement {
    // If the handshake was not seen: the number of attributes and a one come first, which occurs in no text.
    const attributes = this.#handshake.known
      ? this.#handshake.has(capability.queryAttributes)
      : bytes[at + 1] === 1
    const text = attributes ? textBehindAttributes(bytes, at, end) : at
    return text < 0 ? unknownStatement : this.#readStatement(bytes, text, end, packetEnd)
  }

  #readStatement(bytes: Buffer, at: number, end: number, packetEnd: number): SqlStatement {
    const limit = Math.min(end, at + maxStatementBytes)
    return this.#texts.statements.read(bytes, at, limit, limit === packetEnd, mysqlDialects[this.#backslash])
  }

  #preparedOf(id: number): SqlStatement {
    return id === lastPrepared ? this.#newest : (this.#prepared?.get(id) ?? unknownStatement)
  }

  // The server's side

  protected readResponse(flow: ByteFlow): boolean {
    if (flow.broken && !this.#findResponse(flow)) return false
    const { bytes, at, end } = flow
    if (end - at < headBytes) return false
    const length = payloadLength(bytes, at)
    const total = headBytes + length
    if (this.#phase === greeting && length > handshakeBytes) return this.refuse()
    const shown = this.#phase === greeting ? handshakeBytes : shownBytes
    if (end - at < Math.min(total, headBytes + shown)) return false
    const number = bytes[at + 3]!
    const operation = this.requests.first
    if (operation !== undefined) {
      if (operation.responseNs === 0) operation.responseNs = flow.startNs
      operation.responseBytes += total
    }
    const inStep = this.#sequence === anySequence || number === this.#sequence
    if (this.#sequence !== anySequence) this.#sequence = (number + 1) & 0xff
    if (this.#responseGoesOn) this.#responseGoesOn = length === fullPacket
    else if (this.#phase !== commands) {
      if (!this.#welcome(flow, length)) return false
    } else if (!this.#packet(flow, length, inStep)) return false
    flow.skip(total)
    return true
  }

  /** Packets of the handshake. */
  #welcome(flow: ByteFlow, length: number): boolean {
    const { bytes } = flow
    const at = flow.at + headBytes
    const end = Math.min(flow.end, at + length)
    const first = bytes[at]
    if (this.#phase !== authentication) {
      // A server that accepts no further connections sends an error instead of a greeting.
      if (first === 0xff) this.over = true
      else if (this.#phase === login || !this.#handshake.readGreeting(bytes, at, end)) return this.refuse()
      this.#phase = login
      this.#system = this.#handshake.system
      this.#texts.learn(this.connection.serverAddress, this.connection.serverPort, this.#system)
      return true
    }
    if (first !== 0) return true
    this.confirmed = true
    this.#phase = commands
    this.#note(this.#handshake.status)
    return true
  }

  #packet(flow: ByteFlow, length: number, inStep: boolean): boolean {
    const { bytes } = flow
    const at = flow.at + headBytes
    const { requests } = this
    this.#responseGoesOn = length === fullPacket
    // An EOF after a prepared statement, or a farewell: it answers no request.
    if (requests.size === 0) return true
    if (!inStep && bytes[at] !== 0xff && requests.kind !== Expect.login) return this.fault(flow)
    const outcome = this.#response.packet(
      requests.kind as Expect,
      bytes,
      at,
      Math.min(flow.end, at + length),
      length,
    )
    if (outcome === Outcome.strange) return this.fault(flow)
    this.confirmed = true
    this.good()
    if (outcome === Outcome.wantsFile) {
      this.#file = true
      this.#sequence = anySequence
      this.#response.begin()
    } else if (outcome === Outcome.failed) this.#failed()
    else if (outcome === Outcome.done) this.#done()
    return true
  }

  #done(): void {
    const { kind, statement } = this.requests
    if (this.#response.status >= 0) this.#note(this.#response.status)
    if (statement.database !== '' && kind !== Expect.prepared) this.namespace = statement.database
    if (kind === Expect.prepared && this.#response.statementId >= 0) {
      this.#prepared ??= new HeldStatements()
      this.#prepared.set(this.#response.statementId, statement)
    }
    this.#next()
  }

  #failed(): void {
    const operation = this.requests.first
    if (operation !== undefined) failSqlCall(operation.call, this.#texts.codeOf(this.#response.code))
    this.#next()
  }

  #next(): void {
    this.#file = false
    this.answer()
    if (this.requests.size === 0) this.blind = false
    this.#expectResponse()
  }

  #expectResponse(): void {
    this.#response.begin()
    this.#sequence = 1
  }

  #note(flags: number): void {
    const plain = (flags & status.noBackslashEscapes) !== 0
    this.#backslash = plain ? 'plain' : this.#handshake.ambiguous ? 'unknown' : 'escape'
  }

  /** Framing is lost: packets usually begin at the start of a call, and its end shows whether the server is done. */
  #findResponse(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    const awaited = this.requests.size > 0 || this.#phase === authentication
    if (awaited && (flow.atCall || this.#begun > 0) && end - at <= headBytes) {
      this.#begun = end - at // some clients read a packet's head in a separate call
      return false
    }
    if (awaited && (flow.atCall || this.#begun > 0) && isLikelyResponse(bytes, at, end)) {
      flow.broken = false
      this.#begun = 0
      this.#expectResponse()
      if (bytes[at + 3] !== 1) {
        this.#response.join()
        this.#sequence = anySequence
      }
      return true
    }
    this.#begun = 0
    const how = responseEnd(bytes, at, end)
    if (how === endsDone && awaited) {
      this.confirmed = true
      this.settle(0)
      flow.broken = false
      flow.at = end
      return false
    }
    const begun = how === endsNot ? endBegun(bytes, at, end) : 0
    if (begun > 0) {
      flow.at = end - begun
      return false
    }
    return this.passOver(flow)
  }
}
