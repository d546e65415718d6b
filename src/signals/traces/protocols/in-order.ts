import type { ByteFlow } from '../../../foundation/lib/byte-flow.ts'
import type { Operation, StreamConnection } from '../../../foundation/model/stream.ts'
import { brokenOff, fail } from './failure.ts'
import { Framing, type Patience } from './framing.ts'
import { RequestsInFlight } from './requests-in-flight.ts'

const patience: Patience = { faults: 3, firstFaults: 1, strays: 16 }
/** The first bytes of a connection that already existed may be in the middle of a message. */
const joinedPatience: Patience = { ...patience, firstFaults: patience.faults }
/** Maximum number of requests in flight on one connection; further ones are abandoned. */
const most = 2_048

/**
 * A connection that answers in the order of the requests. If bytes of either direction were not seen, the number of
 * requests stays correct, though not each one's end: a client that sends a request after the server spoke has most
 * likely received all its earlier answers.
 */
export abstract class InOrder extends Framing {
  /** The request being read, which is incomplete. */
  asking: Operation | undefined = undefined
  /** Responses to some of the requests were not seen; settled when the client sends its next request. */
  blind = false
  /** Undefined entries are requests without an operation. */
  readonly #requests = new RequestsInFlight(most)
  /** Requests that found no room: they come after all others. */
  #beyond = 0
  /** Requests were missed while none was in flight: the next missing responses are most likely theirs. */
  #unseen: boolean
  /** Requests ahead of the missed ones; -1 if none were missed. */
  #ahead = -1
  /** Whether the newest bytes were the server's, their time, and whether a response ended with them. */
  #serverSpoke = false
  #spokeNs = 0
  #whole = true

  constructor(connection: StreamConnection) {
    super(connection, connection.joined ? joinedPatience : patience)
    this.#unseen = connection.joined
  }

  get bytes(): number {
    return this.#requests.bytes
  }

  /** The request that the next response answers. */
  get first(): Operation | undefined {
    return this.expects ? this.#requests.first : undefined
  }

  /** Whether the next response would answer a request that was seen. */
  get expects(): boolean {
    return this.#requests.size > 0 && this.#ahead !== 0
  }

  /** A request is complete; `operation` is undefined if there was no room for one. */
  add(operation: Operation | undefined): void {
    if (this.#beyond === 0 && this.#requests.push(operation)) return
    this.#beyond++
    if (operation !== undefined) this.connection.abandon(operation)
  }

  /** Removes the request answered by the response that ends in `flow`; undefined if it is unknown. */
  answer(flow: ByteFlow): Operation | undefined {
    // The response shows that a request was missed: it counts as lost.
    const lost = this.#ahead === 0 ? this.connection.begin(flow) : undefined
    if (lost !== undefined) this.connection.abandon(lost)
    return this.take()
  }

  /** Removes the first request, unless missed ones come before it. */
  take(): Operation | undefined {
    if (this.#ahead === 0) return undefined
    if (this.#requests.size === 0) {
      if (this.#beyond > 0) this.#beyond--
      return undefined
    }
    if (this.#ahead > 0) this.#ahead--
    return this.#requests.shift()
  }

  /** Bytes of the client came. `begins`: a request begins with them, as a call does. */
  asked(begins: boolean): void {
    const answered = this.#serverSpoke
    this.#serverSpoke = false
    if (!begins || !answered) return
    if (this.blind || (this.#ahead === 0 && this.#whole)) this.#settle()
  }

  /** Bytes of the server came; `whole`: a response ended with them. */
  answered(nowNs: number, whole: boolean): void {
    this.#serverSpoke = true
    this.#unseen = false
    this.#spokeNs = nowNs
    this.#whole = whole
  }

  /** The request being read turned out to be none, or its end was not seen. */
  discardPartial(): void {
    if (this.asking !== undefined) this.connection.release(this.asking)
    this.asking = undefined
  }

  /** An unknown number of requests was not seen. */
  lostRequests(): void {
    const { size } = this.#requests
    if (size === 0 && this.#whole) this.#unseen = true
    if (this.#ahead < 0) this.#ahead = size
  }

  /**
   * An unknown number of responses was not seen; `inside`: the gap began within a response that was well formed so far.
   */
  lostResponses(inside: boolean): void {
    if (this.#requests.size > 0 && (inside || !this.#unseen)) this.blind = true
    this.#unseen = false
    if (inside) this.confirmed = true
  }

  /** A request got its response, and both were well formed. */
  agree(): void {
    this.confirmed = true
    this.good()
  }

  override stray(): void {
    if (this.expects && !this.blind) super.stray()
  }

  /** Unanswered requests failed. */
  protected ended(): void {
    if (!this.confirmed) {
      this.release()
      return
    }
    this.discardPartial()
    const answered = this.blind && this.#whole
    const type = brokenOff(this.connection.errno)
    this.#requests.drain(operation => {
      if (answered && operation.startNs <= this.#spokeNs) operation.endNs = this.#spokeNs
      else fail(operation.call, type)
      this.connection.end(operation)
    })
  }

  protected release(): void {
    this.discardPartial()
    this.#requests.drain(operation => this.connection.release(operation))
    this.#reset()
  }

  /** All requests have most likely been answered. */
  #settle(): void {
    if (!this.confirmed) this.release()
    while (this.#requests.size > 0) {
      const operation = this.#requests.shift()
      if (operation === undefined) continue
      operation.endNs = Math.max(operation.startNs, this.#spokeNs)
      this.connection.end(operation)
    }
    this.#reset()
  }

  #reset(): void {
    this.#beyond = 0
    this.blind = false
    this.#ahead = -1
  }
}
