import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import type { Operation, StreamConnection } from '../../../../foundation/model/stream.ts'
import { brokenOff, fail } from '../failure.ts'
import { Framing, type Patience } from '../framing.ts'
import { SqlRequests } from './sql-requests.ts'
import type { SqlStatement } from './statements.ts'

const patience: Patience = { faults: 3, firstFaults: 1, strays: 256 }
/** Operations in flight on one connection. */
const mostOperations = 4_096

/** A client's connection to a database that answers in the order of the requests. */
export abstract class SqlStream extends Framing {
  protected readonly requests: SqlRequests = new SqlRequests()
  /** The database; '' if unknown. */
  protected namespace = ''
  /** Responses may have been missed, so requests that seem to be in flight may have ended. */
  protected blind = false
  /** Requests of this kind have a span only if they fail. */
  readonly #silent: number
  #operations = 0
  #responsesBroken: boolean
  /** The newest bytes are the server's, and their time. */
  #serverSpoke = false
  #spokeNs = 0

  /** `silent`: 0 for no kind of requests. */
  constructor(connection: StreamConnection, silent = 0) {
    super(connection, patience)
    this.#silent = silent
    this.#responsesBroken = connection.joined
  }

  protected ended(): void {
    const type = brokenOff(this.connection.errno)
    while (this.requests.size > 0) {
      const { first } = this.requests
      const reported = this.#isReported()
      if (first !== undefined && reported) fail(first.call, type)
      this.finish(reported)
    }
  }

  override fault(flow: ByteFlow): false {
    if (!flow.request) this.blind = true
    return super.fault(flow)
  }

  /** Reads the message of the client at `flow.at`. False if more bytes are needed, or there is none. */
  protected abstract readRequest(flow: ByteFlow): boolean

  /** The same for a message of the server. */
  protected abstract readResponse(flow: ByteFlow): boolean

  /** Bytes of the client were not seen. */
  protected abstract lostRequests(flow: ByteFlow): void

  /** Bytes of the server were not seen. */
  protected abstract lostResponses(): void

  /** All requests were settled. */
  protected abstract settled(): void

  /** The client may send data for a request that is in flight. */
  protected get uploads(): boolean {
    return false
  }

  protected piece(flow: ByteFlow): void {
    if (flow.request) {
      if (this.#serverSpoke && flow.atCall) this.#turn()
      while (!this.over && flow.at < flow.end && this.readRequest(flow));
      return
    }
    this.#serverSpoke = true
    this.#spokeNs = flow.nowNs
    while (!this.over && flow.at < flow.end && this.readResponse(flow));
    this.#responsesBroken = flow.broken
  }

  protected gap(flow: ByteFlow): void {
    if (flow.request) {
      this.lostRequests(flow)
      return
    }
    this.lostResponses()
    this.blind = true
    this.#responsesBroken = true
    this.#serverSpoke = true
    this.#spokeNs = flow.nowNs
  }

  /** A request begins. Undefined if there is no room, which is counted. */
  protected begin(flow: ByteFlow): Operation | undefined {
    const operation = this.connection.begin(flow)
    if (operation === undefined) return undefined
    if (this.#operations >= mostOperations) {
      this.connection.abandon(operation)
      return undefined
    }
    this.#operations++
    return operation
  }

  /** Returns an operation that is not among the requests. */
  protected drop(operation: Operation): void {
    this.#operations--
    this.connection.release(operation)
  }

  /** A request awaits its response. With too many of them the connection is given up. */
  protected push(kind: number, operation: Operation | undefined, statement: SqlStatement): void {
    if (this.requests.add(kind, operation, statement)) return
    if (operation !== undefined) this.drop(operation)
    this.refuse()
  }

  /** The first request ended. `reported`: it gets a span. */
  protected finish(reported: boolean): void {
    const operation = this.requests.shift()
    if (operation === undefined) return
    this.#operations--
    if (reported) this.connection.end(operation)
    else this.connection.release(operation)
  }

  /** The first request was answered. */
  protected answer(): void {
    this.finish(this.requests.kind !== this.#silent)
  }

  /** The first request continues without an operation. */
  protected withdraw(): void {
    const operation = this.requests.withdraw()
    if (operation !== undefined) this.drop(operation)
  }

  /** All requests ended, at `endNs` (0: now) or at their own beginning. */
  protected settle(endNs: number): void {
    while (this.requests.size > 0) {
      const { first } = this.requests
      if (first !== undefined) first.endNs = endNs === 0 ? 0 : Math.max(first.startNs, endNs)
      this.finish(this.#isReported())
    }
    this.blind = false
    this.settled()
  }

  protected release(): void {
    while (this.requests.size > 0) this.finish(false)
  }

  /** The client sends again: its requests have been answered, even if the responses were not seen. */
  #turn(): void {
    this.#serverSpoke = false
    if ((this.blind || this.#responsesBroken) && !this.uploads) this.settle(this.#spokeNs)
  }

  /** Whether the first request gets a span. */
  #isReported(): boolean {
    return this.confirmed && this.requests.kind !== this.#silent
  }
}
