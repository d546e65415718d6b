import type { ByteFlow } from '../../../foundation/lib/byte-flow.ts'
import type { Operation, StreamConnection } from '../../../foundation/model/stream.ts'
import { brokenOff, fail } from './failure.ts'
import { Framing, type Patience } from './framing.ts'
import { RequestsInFlight } from './requests-in-flight.ts'

const patience: Patience = { faults: 3, firstFaults: 1, strays: 16 }
/** The first bytes of a connection that is older than the agent may be in the middle of a message. */
const joinedPatience: Patience = { ...patience, firstFaults: patience.faults }
/** Requests in flight on one connection; further ones are abandoned. */
const most = 2_048

/**
 * A connection that answers in the order of the requests. It stays right about their number, if not about each one's
 * end, when bytes of either direction were not seen: a client that asks again after the server spoke has most likely got
 * all that it had asked for.
 */
export abstract class InOrder extends Framing {
  /** The request that is being read: it is not yet whole. */
  asking: Operation | undefined = undefined
  /** Responses to some of the requests went by unseen; settled when the client asks again. */
  blind = false
  /** Undefined: a request that there was no operation for. */
  readonly #requests = new RequestsInFlight(most)
  /** Requests that found no room: they are behind all others. */
  #beyond = 0
  /** Requests went by unseen while none was in flight: the responses that are missed next are most likely theirs. */
  #unseen: boolean
  /** Requests that stand before those that went by unseen; -1: none were missed. */
  #ahead = -1
  /** The newest bytes were the server's; when, and whether a response ended with them. */
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

  /** A response would answer a request that was seen. */
  get expects(): boolean {
    return this.#requests.size > 0 && this.#ahead !== 0
  }

  /** A request is whole; `operation` undefined: there was no room for one. */
  add(operation: Operation | undefined): void {
    if (this.#beyond === 0 && this.#requests.push(operation)) return
    this.#beyond++
    if (operation !== undefined) this.connection.abandon(operation)
  }

  /** Takes out the request that a response has answered, which ends in `flow`; undefined where none is known. */
  answer(flow: ByteFlow): Operation | undefined {
    // A request that was not seen is a loss, now that it shows.
    const lost = this.#ahead === 0 ? this.connection.begin(flow) : undefined
    if (lost !== undefined) this.connection.abandon(lost)
    return this.take()
  }

  /** Takes out the first request, unless those that were not seen stand before it. */
  take(): Operation | undefined {
    if (this.#ahead === 0) return undefined
    if (this.#requests.size === 0) {
      if (this.#beyond > 0) this.#beyond--
      return undefined
    }
    if (this.#ahead > 0) this.#ahead--
    return this.#requests.shift()
  }

  /** Bytes of the client came. `begins`: with them a request begins, as a call does. */
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

  /** The request that is being read is none after all, or its end was not seen. */
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

  /** An unknown number of responses was not seen; `inside`: they went on with one that was well formed so far. */
  lostResponses(inside: boolean): void {
    if (this.#requests.size > 0 && (inside || !this.#unseen)) this.blind = true
    this.#unseen = false
    if (inside) this.confirmed = true
  }

  /** A request has had its response, and both were well formed. */
  agree(): void {
    this.confirmed = true
    this.good()
  }

  override stray(): void {
    if (this.expects && !this.blind) super.stray()
  }

  /** Requests without an answer failed. */
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

  /** All requests are answered by now, most likely. */
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
