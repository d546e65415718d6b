import type { ByteFlow } from '../../lib/byte-flow.ts'
import type { Operation, StreamConnection } from '../../model/stream.ts'
import { brokenOff } from '../broken-off.ts'
import { fail } from '../in-order.ts'
import { PendingRequests } from './pending.ts'
import type { SqlStatement } from './statements.ts'

/** Operations under way on one connection. */
const maxOperations = 4_096

/** What was asked on one connection and is not answered yet, with the operations that tell of it. */
export class UnderWay {
  readonly requests: PendingRequests = new PendingRequests()
  /** The server has spoken the protocol. */
  confirmed = false
  private readonly connection: StreamConnection
  /** Requests of this kind are operations only when they fail. */
  private readonly silent: number
  private operations = 0

  constructor(connection: StreamConnection, silent = 0) {
    this.connection = connection
    this.silent = silent
  }

  begin(flow: ByteFlow): Operation | undefined {
    const operation = this.connection.begin(flow)
    if (operation === undefined) return undefined
    if (this.operations >= maxOperations) {
      this.connection.abandon(operation)
      return undefined
    }
    this.operations++
    return operation
  }

  /** Gives back what is not among the requests. */
  release(operation: Operation): void {
    this.operations--
    this.connection.release(operation)
  }

  /** False: there are too many, and the operation is gone. */
  push(kind: number, operation: Operation | undefined, statement: SqlStatement): boolean {
    if (this.requests.push(kind, operation, statement)) return true
    if (operation !== undefined) this.release(operation)
    return false
  }

  /** The first request is over. `told`: a span tells of it. */
  finish(told: boolean): void {
    const { operation } = this.requests
    this.requests.shift()
    if (operation === undefined) return
    this.operations--
    if (told) this.connection.end(operation)
    else this.connection.release(operation)
  }

  /** The first request was answered. */
  answer(): void {
    this.finish(this.requests.kind !== this.silent)
  }

  /** The first request goes on without an operation. */
  withdraw(): void {
    const operation = this.requests.withdraw()
    if (operation !== undefined) this.release(operation)
  }

  /** All are over, since `endNs` (0: now) or since they began. */
  settle(endNs: number): void {
    while (this.requests.size > 0) {
      const { operation, kind } = this.requests
      if (operation !== undefined) operation.endNs = endNs === 0 ? 0 : Math.max(operation.startNs, endNs)
      this.finish(this.confirmed && kind !== this.silent)
    }
  }

  /** The connection ended. */
  breakOff(): void {
    const type = brokenOff(this.connection.errno)
    while (this.requests.size > 0) {
      const { operation, kind } = this.requests
      const told = this.confirmed && kind !== this.silent
      if (operation !== undefined && told) fail(operation, type)
      this.finish(told)
    }
  }

  /** Nobody is told of any. */
  drop(): void {
    while (this.requests.size > 0) this.finish(false)
  }
}
