import type { ByteFlow, FlowReader } from '../../../foundation/lib/byte-flow.ts'
import type { Operation, StreamConnection } from '../../../foundation/model/stream.ts'
import { Framing, type Patience } from './framing.ts'
import { NumberedRequests } from './requests-in-flight.ts'

/** Marks of operations; the lower bits belong to the protocol. */
export const mark = {
  /** `asked` was called, so the connection knows the operation. */
  asked: 1 << 30,
  /** It may have been answered unseen. */
  unseen: 1 << 29,
  /** It may get no response. */
  oneWay: 1 << 28,
  /** It has no span. */
  silent: 1 << 27,
  /** It gets no response: it ends with its last byte. */
  unanswered: 1 << 26,
} as const

/** Requests in flight on one connection. */
const most = 1_024
const patience: Patience = { faults: 3, firstFaults: 3, strays: 16 }
/** A connection that already existed may be in the middle of a long message. */
const joinedPatience: Patience = { ...patience, strays: 256 }

/** A connection whose responses have the number of their request. */
export abstract class Numbered extends Framing {
  /** The request being sent, as long as it has no response. */
  sending: Operation | undefined = undefined
  /** The request whose response is being received; it is no longer in flight. */
  answering: Operation | undefined = undefined
  protected abstract readonly requests: FlowReader
  protected abstract readonly answers: FlowReader
  readonly #inFlight = new NumberedRequests(most)
  /** The server's direction. */
  #spoken: ByteFlow | undefined = undefined

  constructor(connection: StreamConnection) {
    super(connection, connection.joined ? joinedPatience : patience)
  }

  get bytes(): number {
    return this.#inFlight.bytes
  }

  /** When the server spoke last; 0: never. */
  protected get spokeNs(): number {
    return this.#spoken?.nowNs ?? 0
  }

  /** A request begins. Undefined if there is no room, which is counted. */
  begin(flow: ByteFlow, id: number, marks: number): Operation | undefined {
    const operation = this.over ? undefined : this.connection.begin(flow)
    if (operation === undefined) return undefined
    operation.mark = marks
    if (this.#inFlight.isFull) {
      if (!this.confirmed) {
        this.connection.release(operation)
        this.refuse()
        return undefined
      }
      this.#abandonOldest()
    }
    this.#inFlight.add(id, operation)
    this.sending = operation
    return operation
  }

  /** The request is described. It is passed to the connection only after the peer has confirmed the protocol. */
  asked(operation: Operation): void {
    if ((operation.mark & (mark.asked | mark.silent)) !== 0 || !this.confirmed) return
    operation.mark |= mark.asked
    this.connection.asked(operation)
  }

  /** The last byte of the request has passed. */
  sent(flow: ByteFlow): void {
    const operation = this.sending
    this.sending = undefined
    if (operation === undefined || (operation.mark & mark.unanswered) === 0) return
    this.#inFlight.remove(operation)
    operation.endNs = flow.nowNs
    this.end(operation)
  }

  has(id: number): boolean {
    return this.#inFlight.has(id)
  }

  /** A response begins: removes its request. `answering` is undefined if that was not seen. */
  answered(flow: ByteFlow, id: number): void {
    this.answering = undefined
    const operation = this.#inFlight.get(id)
    if (operation === undefined) {
      if (!this.confirmed && !this.connection.joined) this.suspect()
      return
    }
    this.confirmed = true
    this.good()
    this.found()
    const { newer } = operation
    this.#remove(operation)
    if (operation.responseNs === 0) operation.responseNs = flow.startNs
    this.answering = operation
    this.settle(mark.unseen | mark.oneWay, newer)
  }

  /** More responses to a request are to come, under another number. */
  again(operation: Operation, id: number): void {
    if (this.#inFlight.isFull) this.#abandonOldest()
    this.#inFlight.add(id, operation)
  }

  /** The response is complete. The operation must not be used afterwards. */
  end(operation: Operation): void {
    this.asked(operation)
    if ((operation.mark & mark.asked) !== 0 && (operation.mark & mark.silent) === 0)
      this.connection.end(operation)
    else this.connection.release(operation)
  }

  /** Responses may have been missed. */
  doubt(): void {
    for (let each = this.#inFlight.oldest; each !== undefined; each = each.newer) each.mark |= mark.unseen
  }

  /** Settles requests with one of the marks. `end`: only those before it. */
  settle(marks: number, end?: Operation): void {
    for (let each = this.#inFlight.oldest; each !== end && each !== undefined; ) {
      const { newer } = each
      if ((each.mark & marks) !== 0) {
        this.#remove(each)
        this.unseen(each)
      }
      each = newer
    }
  }

  protected ended(): void {
    const { answering } = this
    this.answering = undefined
    this.sending = undefined
    if (answering !== undefined) this.#giveUp(answering)
    this.#inFlight.drain(operation => {
      if ((operation.mark & mark.unseen) !== 0) this.unseen(operation)
      else this.#giveUp(operation)
    })
  }

  /** Its outcome is unknown. */
  abandon(operation: Operation): void {
    if ((operation.mark & mark.silent) === 0) this.connection.abandon(operation)
    else this.connection.release(operation)
  }

  /** It was not a request of this protocol, or is of a kind that has no span. */
  drop(operation: Operation): void {
    if ((operation.mark & mark.asked) !== 0) this.connection.abandon(operation)
    else this.connection.release(operation)
  }

  /** Its response, if there was one, has passed. Ends, abandons or drops the operation. */
  protected abstract unseen(operation: Operation): void

  /** The connection ended before its response. Ends, abandons or drops the operation. */
  protected abstract broken(operation: Operation): void

  protected piece(flow: ByteFlow): void {
    this.#side(flow).read(flow)
  }

  protected gap(flow: ByteFlow): void {
    this.#side(flow).lost(flow)
  }

  protected release(): void {
    if (this.answering !== undefined) this.drop(this.answering)
    this.answering = undefined
    this.sending = undefined
    this.#inFlight.drain(operation => this.drop(operation))
  }

  #side(flow: ByteFlow): FlowReader {
    if (flow.request) return this.requests
    this.#spoken = flow
    return this.answers
  }

  #giveUp(operation: Operation): void {
    if ((operation.mark & mark.silent) !== 0) this.connection.release(operation)
    else this.broken(operation)
  }

  #abandonOldest(): void {
    const oldest = this.#inFlight.oldest!
    this.#remove(oldest)
    this.abandon(oldest)
  }

  #remove(operation: Operation): void {
    this.#inFlight.remove(operation)
    if (operation === this.sending) this.sending = undefined
  }
}
