import type { Operation, StreamConnection } from '../../../../foundation/model/stream.ts'
import { readTraceHeaders } from '../../../../foundation/model/trace-headers.ts'
import { KeptHead, KeptHeads } from './kept-heads.ts'
import type { Message } from './message.ts'

/** Bytes of a pending request without its head (measured). */
export const pendingBytes = 80
/** Stand-in for the head of a request that is not reported. */
const none = new KeptHead()

/** A request whose response is not complete yet. Reused. */
export class Pending {
  /** Undefined if there was no room: its response is skipped. */
  operation: Operation | undefined
  head: KeptHead = none
  /** By its method: the response has no body, or no end. */
  isHead = false
  isConnect = false
  /** All of it has passed. */
  whole = false
  headBytes = 0
  bytes = 0
}

/** Fills an operation's call from the first `length` bytes of the kept head; false if it is not HTTP. */
export type ReadHead = (operation: Operation, bytes: Buffer, length: number) => boolean

/** Requests in flight on all connections: their kept heads, and how they end. */
export class Http1Requests {
  readonly #read: ReadHead
  readonly #captureBytes: number
  readonly #heads = new KeptHeads()
  readonly #free: Pending[] = []

  /** `captureBytes`: maximum of each head that is kept for describing the request. */
  constructor(read: ReadHead, captureBytes: number) {
    this.#read = read
    this.#captureBytes = captureBytes
  }

  begin(operation: Operation | undefined): Pending {
    const pending = this.#free.pop() ?? new Pending()
    pending.operation = operation
    pending.head = operation === undefined ? none : this.#heads.take()
    pending.isHead = false
    pending.isConnect = false
    pending.whole = false
    pending.headBytes = 0
    pending.bytes = 0
    return pending
  }

  keep(pending: Pending, connection: StreamConnection, bytes: Buffer, start: number, end: number): void {
    const { operation, head } = pending
    if (operation === undefined) return
    this.#heads.append(head, bytes, start, end)
    operation.kept = head.memory
    connection.weigh(operation)
  }

  /** Its head is complete. */
  asked(pending: Pending, connection: StreamConnection): void {
    const { operation, head } = pending
    if (operation === undefined) return
    readTraceHeaders(head.bytes, 0, head.length, operation.context)
    this.#heads.shorten(head, this.#captureBytes)
    operation.kept = head.memory
    connection.asked(operation)
  }

  /** It ended. `response` is undefined if there was none; `aborted`: it was incomplete. */
  end(
    pending: Pending,
    connection: StreamConnection,
    response: Message | undefined,
    endNs: number,
    aborted: boolean,
  ): void {
    const { operation, head } = pending
    if (operation !== undefined) {
      operation.status = response?.status ?? 0
      operation.requestBytes = pending.bytes
      operation.responseBytes = response?.bytes ?? 0
      operation.requestBodyBytes = Math.max(0, pending.bytes - pending.headBytes)
      operation.responseBodyBytes = Math.max(0, operation.responseBytes - (response?.headBytes ?? 0))
      operation.endNs = endNs
      operation.aborted = aborted
      operation.errno = aborted ? connection.errno : 0
      if (this.#read(operation, head.bytes, head.length)) connection.end(operation)
      else connection.abandon(operation)
    }
    this.#release(pending)
  }

  abandon(pending: Pending, connection: StreamConnection): void {
    if (pending.operation !== undefined) connection.abandon(pending.operation)
    this.#release(pending)
  }

  /** It is no longer followed. */
  drop(pending: Pending, connection: StreamConnection): void {
    if (pending.operation !== undefined) connection.release(pending.operation)
    this.#release(pending)
  }

  #release(pending: Pending): void {
    if (pending.head !== none) this.#heads.give(pending.head)
    pending.head = none
    pending.operation = undefined
    if (this.#free.length < 1024) this.#free.push(pending)
  }
}
