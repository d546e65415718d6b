import type { ByteFlow } from '../lib/byte-flow.ts'
import type { Operation, StreamConnection } from '../model/stream.ts'
import { brokenOff } from './broken-off.ts'

/** Impossible messages between two good ones, at most. */
const mostContradictions = 3
/** Calls of the server that are no responses, before the first one that is. */
const mostStrays = 16
/** Slots that a connection keeps when nothing is under way. */
const kept = 256

/**
 * The requests of a connection that answers in the order of asking. It stays right about their number, if not about
 * each one's end, when bytes of either direction were not seen: a client that asks again after the server spoke has
 * most likely got all that it had asked for.
 */
export class InOrder {
  readonly connection: StreamConnection
  /** The connection was given up: it speaks something else. */
  over = false
  /** The server has answered in the protocol: only then is anything told. */
  agreed = false
  /** The request that is being read: it is not yet whole. */
  asking: Operation | undefined = undefined
  private contradictions = 0
  private strays = 0
  private readonly most: number
  /** A ring; undefined stands for a request that there was no operation for. */
  private ring: (Operation | undefined)[] = []
  private head = 0
  private size = 0
  /** Requests that found the ring full: they are behind all others. */
  private beyond = 0
  /** Responses to some of the requests went by unseen; settled when the client asks again. */
  blind = false
  /** Requests went by unseen while none was under way: the responses that are missed next are most likely theirs. */
  private unseen: boolean
  /** Requests that stand before those that went by unseen; -1: none were missed. */
  private ahead = -1
  /** The newest bytes were the server's; when, and whether a response ended with them. */
  private serverSpoke = false
  private spokeNs = 0
  private whole = true

  /** `most`: requests under way; further ones are abandoned. */
  constructor(connection: StreamConnection, most = 2_048) {
    this.connection = connection
    this.most = most
    this.unseen = connection.joined
  }

  /** The request that the next response answers. */
  get first(): Operation | undefined {
    return this.expects ? this.ring[this.head] : undefined
  }

  /** A response would answer a request that was seen. */
  get expects(): boolean {
    return this.size > 0 && this.ahead !== 0
  }

  /** A request, and what stands for it (undefined: there was no room). */
  add(operation: Operation | undefined): void {
    if (this.size === this.most || this.beyond > 0) {
      this.beyond++
      if (operation !== undefined) this.connection.abandon(operation)
      return
    }
    if (this.size === this.ring.length) this.grow()
    this.ring[(this.head + this.size) & (this.ring.length - 1)] = operation
    this.size++
  }

  /** Takes out the request that a response has answered, which ends in `flow`; undefined where none is known. */
  answer(flow: ByteFlow): Operation | undefined {
    // A request that was not seen is a loss, now that it shows.
    const lost = this.ahead === 0 ? this.connection.begin(flow) : undefined
    if (lost !== undefined) this.connection.abandon(lost)
    return this.take()
  }

  /** Takes out the first request, unless those that were not seen stand before it. */
  take(): Operation | undefined {
    if (this.ahead === 0) return undefined
    if (this.size === 0) {
      if (this.beyond > 0) this.beyond--
      return undefined
    }
    if (this.ahead > 0) this.ahead--
    return this.shift()
  }

  /** Bytes of the client came. `begins`: with them a request begins, as a call does. */
  asked(begins: boolean): void {
    const answered = this.serverSpoke
    this.serverSpoke = false
    if (!begins || !answered) return
    if (this.blind || (this.ahead === 0 && this.whole)) this.settle()
  }

  /** Bytes of the server came; `whole`: a response ended with them. */
  answered(nowNs: number, whole: boolean): void {
    this.serverSpoke = true
    this.unseen = false
    this.spokeNs = nowNs
    this.whole = whole
  }

  /** The request that is being read is none after all, or its end was not seen. */
  letGo(): void {
    if (this.asking !== undefined) this.connection.release(this.asking)
    this.asking = undefined
  }

  /** An unknown number of requests was not seen. */
  lostRequests(): void {
    if (this.size === 0 && this.whole) this.unseen = true
    if (this.ahead < 0) this.ahead = this.size
  }

  /** An unknown number of responses was not seen; `inside`: they went on with one that was well formed so far. */
  lostResponses(inside: boolean): void {
    if (this.size > 0 && (inside || !this.unseen)) this.blind = true
    this.unseen = false
    if (inside) this.agreed = true
  }

  /** A request has had its response, and both were well formed. */
  agree(): void {
    this.agreed = true
    this.contradictions = 0
  }

  /** These bytes cannot be of the protocol. */
  contradict(): void {
    const first = !this.agreed && !this.connection.joined
    if (first || ++this.contradictions >= mostContradictions) this.refuse()
  }

  /** Where framing is lost, a call of the server begins with none of the protocol's messages. */
  stray(): void {
    if (!this.agreed && this.expects && !this.blind && ++this.strays >= mostStrays) this.refuse()
  }

  /** What follows is not looked at. */
  refuse(): void {
    if (this.over) return
    this.over = true
    this.release()
    this.connection.refuse()
  }

  /** The connection ended. What was not answered failed. */
  close(): void {
    this.letGo()
    const answered = this.blind && this.whole
    while (this.size > 0) {
      const operation = this.shift()
      if (operation === undefined) continue
      if (answered && operation.startNs <= this.spokeNs) operation.endNs = this.spokeNs
      else fail(operation, brokenOff(this.connection.errno))
      this.connection.end(operation)
    }
  }

  /** Lets all of them go without a trace. */
  release(): void {
    this.letGo()
    while (this.size > 0) {
      const operation = this.shift()
      if (operation !== undefined) this.connection.release(operation)
    }
    this.reset()
  }

  /** What was asked before is answered by now, as far as anybody can tell. */
  private settle(): void {
    if (!this.agreed) this.release()
    while (this.size > 0) {
      const operation = this.shift()
      if (operation === undefined) continue
      operation.endNs = Math.max(operation.startNs, this.spokeNs)
      this.connection.end(operation)
    }
    this.reset()
  }

  private reset(): void {
    this.beyond = 0
    this.blind = false
    this.ahead = -1
  }

  private shift(): Operation | undefined {
    const operation = this.ring[this.head]
    this.ring[this.head] = undefined
    this.head = (this.head + 1) & (this.ring.length - 1)
    this.size--
    if (this.size === 0) {
      this.head = 0
      if (this.ring.length > kept) this.ring = []
    }
    return operation
  }

  private grow(): void {
    const ring = new Array<Operation | undefined>(Math.max(8, 2 * this.ring.length)).fill(undefined)
    for (let i = 0; i < this.size; i++) ring[i] = this.ring[(this.head + i) & (this.ring.length - 1)]
    this.ring = ring
    this.head = 0
  }
}

/** Marks an operation as failed, unless it is already. */
export function fail(operation: Operation, type: string): void {
  const { call } = operation
  if (call.error !== '') return
  call.error = type
  call.attributes.add('error.type', type)
  call.dimensions.add('error.type', type)
}
