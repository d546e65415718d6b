import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import type { Interner } from '../../../../foundation/lib/interner.ts'
import type { Operation, StreamConnection } from '../../../../foundation/model/stream.ts'
import { describeSqlCall, failSqlCall } from '../sql/describe.ts'
import { type Backslash, postgresqlDialects } from '../sql/dialect.ts'
import { SqlStream } from '../sql/sql-stream.ts'
import {
  maxStatementBytes,
  type SqlStatement,
  type SqlStatements,
  unknownStatement,
} from '../sql/statements.ts'
import {
  answerBytes,
  databaseOf,
  endsReady,
  headBytes,
  isLikelyFramed,
  maxStartupBytes,
  messageLength,
  nameBytes,
  readyBegun,
  requestBytes,
  requestLengths,
  responseLengths,
  startupCode,
  textEnd,
} from './messages.ts'
import { Prepared } from './prepared.ts'

/** Kinds of requests. */
const query = 1
const execute = 2
const parse = 3
const sync = 4

/** Parts of an extended query sent before its Execute. */
const nothing = 0
const parsed = 1
const bound = 2

/** The name of the unnamed portal. */
const unnamedPortal = Buffer.alloc(1)

/** One connection of a PostgreSQL client. */
export class PostgresStream extends SqlStream {
  readonly #statements: SqlStatements
  readonly #words: Interner
  readonly #prepared: Prepared
  #starting: boolean
  /** A request for encryption awaits its one-byte answer. */
  #encryption = false
  #backslash: Backslash
  /** The extended query being sent: its progress, and the operation that its first message began. */
  #part = nothing
  #building: Operation | undefined
  #parsedStatement = unknownStatement
  /** After an error the server skips everything up to a Sync that has not been sent yet. */
  #skipping = false
  /** The server receives data of COPY by the extended protocol, and skips each Sync. */
  #copying = false
  /** Requests may have been missed. */
  #deaf = false

  constructor(connection: StreamConnection, statements: SqlStatements, words: Interner) {
    super(connection, parse)
    this.#statements = statements
    this.#words = words
    this.#prepared = new Prepared(words)
    this.#starting = !connection.joined
    this.#backslash = connection.joined ? 'unknown' : 'plain'
  }

  get bytes(): number {
    return this.requests.bytes + this.#prepared.bytes + this.namespace.length
  }

  override close(): void {
    this.#prepared.clear()
    this.#dropBuilding()
    super.close()
  }

  protected lostRequests(flow: ByteFlow): void {
    this.#starting = false
    this.#deaf = true
    // A bound portal is executed, usually in the same call.
    if (this.#part === bound) this.#execute(flow, unnamedPortal, 0, 1, 0)
    else this.#dropBuilding()
    this.#prepared.forgetUnnamed()
  }

  protected lostResponses(): void {
    this.#encryption = false
  }

  protected settled(): void {
    this.#skipping = false
    this.#copying = false
  }

  protected override release(): void {
    this.#dropBuilding()
    super.release()
  }

  // The client's side

  protected readRequest(flow: ByteFlow): boolean {
    if (this.#starting) return this.#readStartup(flow)
    if (flow.broken && !this.#findRequest(flow)) return false
    const { bytes, at, end } = flow
    if (end - at < headBytes) return false
    const length = messageLength(bytes, at, requestLengths)
    if (length === 0) return this.fault(flow)
    const type = bytes[at]!
    const needed = Math.min(length, headBytes + requestBytes(type))
    if (end - at < needed) return false
    this.#request(flow, type, length, Math.min(end, at + length))
    flow.skip(length)
    return true
  }

  #findRequest(flow: ByteFlow): boolean {
    const data = flow.bytes[flow.at] === 0x64
    if (!data && flow.atCall && isLikelyFramed(flow.bytes, flow.at, flow.end, requestLengths)) {
      flow.broken = false
      return true
    }
    return this.passOver(flow)
  }

  #readStartup(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    if (end - at < 8) return false
    const length = bytes.readUInt32BE(at)
    const code = bytes.readUInt32BE(at + 4)
    if (length < 8 || length > maxStartupBytes) return this.refuse()
    if (code === startupCode.ssl || code === startupCode.gss) {
      if (length !== 8) return this.refuse()
      this.#encryption = true
      flow.skip(8)
      return true
    }
    if (code === startupCode.cancel) {
      this.over = true
      return false
    }
    if (code >>> 16 !== 3) return this.refuse()
    if (end - at < length) return false
    this.namespace = databaseOf(bytes, at + 8, at + length)
    this.#starting = false
    flow.skip(length)
    return true
  }

  #request(flow: ByteFlow, type: number, length: number, end: number): void {
    const { bytes } = flow
    const at = flow.at + headBytes
    if (this.#skipping && type !== 0x53) return
    switch (type) {
      case 0x51: // Query
        this.#dropBuilding()
        this.#ask(query, this.begin(flow), length, this.#readStatement(bytes, at, end, flow.at + length))
        break
      case 0x50: // Parse
        this.#parse(flow, at, end, length)
        break
      case 0x42: // Bind
        this.#bind(flow, at, end, length)
        break
      case 0x45: // Execute
        this.#execute(flow, bytes, at, end, length)
        break
      case 0x46: // FunctionCall
        this.#dropBuilding()
        this.#ask(query, this.begin(flow), length, unknownStatement)
        break
      case 0x48: // Flush
        this.#leaveBuilding()
        break
      case 0x53: // Sync
        this.#leaveBuilding()
        this.#skipping = false
        if (!this.#copying) this.push(sync, undefined, unknownStatement)
        break
      case 0x43: // Close
        this.#prepared.close(bytes, at, end)
        break
      case 0x63: // CopyDone
      case 0x66: // CopyFail
        this.#copying = false
        break
      default:
    }
  }

  /** The text ends with a zero, if it is complete. */
  #readStatement(bytes: Buffer, start: number, end: number, messageEnd: number): SqlStatement {
    const limit = Math.min(end, start + maxStatementBytes)
    const zero = textEnd(bytes, start, limit)
    const whole = zero < limit || limit === messageEnd
    return this.#statements.read(bytes, start, zero, whole, postgresqlDialects[this.#backslash])
  }

  #parse(flow: ByteFlow, at: number, end: number, length: number): void {
    const { bytes } = flow
    this.#leaveBuilding()
    this.#part = parsed
    this.#building = this.begin(flow)
    if (this.#building !== undefined) this.#building.requestBytes = length
    const nameEnd = textEnd(bytes, at, Math.min(end, at + nameBytes))
    const statement =
      bytes[nameEnd] === 0 && nameEnd < end
        ? this.#readStatement(bytes, nameEnd + 1, end, flow.at + length)
        : unknownStatement
    this.#prepared.parse(bytes, at, nameEnd, statement)
    this.#parsedStatement = statement
  }

  #bind(flow: ByteFlow, at: number, end: number, length: number): void {
    if (this.#part === bound) this.#dropBuilding()
    if (this.#part === nothing) this.#building = this.begin(flow)
    this.#part = bound
    if (this.#building !== undefined) this.#building.requestBytes += length
    this.#prepared.bind(flow.bytes, at, end)
  }

  #execute(flow: ByteFlow, bytes: Buffer, at: number, end: number, length: number): void {
    const operation = this.#part === nothing ? this.begin(flow) : this.#building
    this.#part = nothing
    this.#building = undefined
    this.#ask(execute, operation, length, this.#prepared.execute(bytes, at, end))
  }

  #ask(kind: number, operation: Operation | undefined, length: number, statement: SqlStatement): void {
    if (operation !== undefined) {
      operation.requestBytes += length
      describeSqlCall(operation.call, this.connection, 'postgresql', this.namespace, statement)
      this.connection.asked(operation)
    }
    this.push(kind, operation, statement)
  }

  /** The extended query is not followed by its Execute. */
  #leaveBuilding(): void {
    if (this.#part === parsed) {
      this.push(parse, this.#building, this.#parsedStatement)
      this.#part = nothing
      this.#building = undefined
    } else {
      this.#dropBuilding()
    }
  }

  #dropBuilding(): void {
    if (this.#building !== undefined) this.drop(this.#building)
    this.#building = undefined
    this.#part = nothing
  }

  // The server's side

  protected readResponse(flow: ByteFlow): boolean {
    if (this.#encryption) return this.#readEncryption(flow)
    if (flow.broken && !this.#findResponse(flow)) return false
    const { bytes, at, end } = flow
    if (end - at < headBytes) return false
    const length = messageLength(bytes, at, responseLengths)
    if (length === 0) return this.fault(flow)
    const type = bytes[at]!
    if (end - at < Math.min(length, headBytes + answerBytes(type))) return false
    const operation = this.requests.first
    if (operation !== undefined) {
      if (operation.responseNs === 0) operation.responseNs = flow.startNs
      operation.responseBytes += length
    }
    this.#response(flow, type, length, Math.min(end, at + length))
    if (this.over) return false
    flow.skip(length)
    return true
  }

  #readEncryption(flow: ByteFlow): boolean {
    const answer = flow.bytes[flow.at]
    this.#encryption = false
    if (answer === 0x45) return true // an old server's ErrorResponse
    if (answer !== 0x4e) return this.refuse()
    flow.skip(1)
    return true
  }

  /** Framing is lost: messages usually begin at the start of a call, and its end shows whether the server is done. */
  #findResponse(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    if (flow.atCall && isLikelyFramed(bytes, at, end, responseLengths)) {
      flow.broken = false
      return true
    }
    if (endsReady(bytes, at, end)) {
      this.confirmed = true
      this.settle(0)
      flow.broken = false
      flow.at = end
      return false
    }
    const begun = readyBegun(bytes, at, end)
    if (begun > 0) {
      flow.at = end - begun
      return false
    }
    return this.passOver(flow)
  }

  #response(flow: ByteFlow, type: number, length: number, end: number): void {
    const { bytes } = flow
    const at = flow.at + headBytes
    switch (type) {
      case 0x5a: // ReadyForQuery
        this.confirmed = true
        this.good()
        this.#ready()
        break
      case 0x43: // CommandComplete
      case 0x49: // EmptyQueryResponse
      case 0x73: // PortalSuspended
        this.#complete(flow)
        break
      case 0x31: // ParseComplete
        if (this.requests.kind === parse) this.finish(false)
        break
      case 0x45: // ErrorResponse
        this.#failed(bytes, at, end)
        break
      case 0x47: // CopyInResponse
        this.#copyIn()
        break
      case 0x57: // CopyBothResponse: a replication lasts as long as the connection
        this.withdraw()
        break
      case 0x53: // ParameterStatus
        this.#readStatus(bytes, at, end)
        break
      case 0x52: // Authentication
        if (!this.confirmed && length > 8) this.confirmed = bytes.readUInt32BE(at) <= 12
        break
      default:
    }
  }

  /** Ends the request that it answers and all earlier ones, whose responses were missed. */
  #ready(): void {
    this.#copying = false
    this.#skipping = false
    this.#deaf = false
    while (this.requests.size > 0) {
      const { kind } = this.requests
      this.answer()
      if (kind === query || kind === sync) break
    }
    if (this.requests.size === 0) this.blind = false
  }

  #complete(flow: ByteFlow): void {
    this.confirmed = true
    if (this.requests.kind === parse) this.finish(false)
    if (this.requests.kind === execute) {
      this.#copying = false
      this.finish(true)
    } else if (this.requests.size === 0 && this.#deaf && !flow.broken) {
      // Its request was among the lost bytes.
      const operation = this.connection.begin(flow)
      if (operation !== undefined) this.connection.abandon(operation)
    }
  }

  #failed(bytes: Buffer, at: number, end: number): void {
    const { kind, first: operation, statement } = this.requests
    if (kind === 0 || kind === sync) return
    this.confirmed = true
    if (operation !== undefined) {
      if (kind === parse) {
        describeSqlCall(operation.call, this.connection, 'postgresql', this.namespace, statement)
        this.connection.asked(operation)
      }
      failSqlCall(operation.call, this.#readState(bytes, at, end))
    }
    if (kind === query) return
    this.#copying = false
    this.finish(true)
    while (this.requests.size > 0 && this.requests.kind !== sync) this.finish(false)
    this.#dropBuilding()
    this.#skipping = this.requests.size === 0
  }

  /** The fields of an error are a byte and a text each; `C` is its SQLSTATE. */
  #readState(bytes: Buffer, start: number, end: number): string {
    for (let at = start; at < end && bytes[at] !== 0; ) {
      const fieldEnd = textEnd(bytes, at + 1, end)
      if (bytes[at] === 0x43)
        return fieldEnd === at + 6 ? this.#words.intern(bytes, at + 1, fieldEnd) : '_OTHER'
      at = fieldEnd + 1
    }
    return '_OTHER'
  }

  /** From now on the server skips each Sync, including those already sent with the query. */
  #copyIn(): void {
    if (this.requests.kind !== execute) return
    this.#copying = true
    while (this.requests.kindAt(1) === sync) this.requests.removeSecond()
  }

  #readStatus(bytes: Buffer, at: number, end: number): void {
    const name = 'standard_conforming_strings'
    const nameEnd = textEnd(bytes, at, end)
    if (nameEnd - at !== name.length) return
    for (let i = 0; i < name.length; i++) if (bytes[at + i] !== name.charCodeAt(i)) return
    this.#backslash = bytes[nameEnd + 2] === 0x6e ? 'plain' : 'escape' // "on" or "off"
  }
}
