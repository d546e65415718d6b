import type { ByteFlow } from '../../../foundation/lib/byte-flow.ts'
import type { StreamConnection, StreamDecoder } from '../../../foundation/model/stream.ts'

/** How much a connection is forgiven before it counts as another protocol's. */
export interface Patience {
  /** Impossible messages in a row that give it up. */
  readonly faults: number
  /** The same as long as the peer has not confirmed the protocol. */
  readonly firstFaults: number
  /** Pieces without the start of a message that give it up, before the peer has confirmed the protocol. */
  readonly strays: number
}

/**
 * Reads a client's connection as long as it speaks the protocol. A protocol extends it, as a rule by one of the classes
 * that also keep the requests in flight: `InOrder`, `Numbered`, `BrokerStream`, `SqlStream`.
 */
export abstract class Framing implements StreamDecoder {
  readonly connection: StreamConnection
  /** The peer has answered in the protocol: nothing is reported before that. */
  confirmed = false
  /** Nothing of the connection is read any more: it speaks something else, or it ended. */
  over = false
  readonly #patience: Patience
  #faults = 0
  #strays = 0

  constructor(connection: StreamConnection, patience: Patience) {
    this.connection = connection
    this.#patience = patience
  }

  read(flow: ByteFlow): void {
    // Such calls are reported by the client's side.
    if (this.connection.server) this.refuse()
    if (!this.over) this.piece(flow)
    if (this.over) flow.at = flow.end
  }

  lost(flow: ByteFlow): void {
    if (!this.over) this.gap(flow)
  }

  /** The connection ended. */
  close(): void {
    if (this.over) return
    this.over = true
    this.ended()
  }

  abstract get bytes(): number

  /** A whole message was well formed. */
  good(): void {
    this.#faults = 0
  }

  /** An impossible message begins at `flow.at`: framing is lost, and is looked for again from `next` on. */
  fault(flow: ByteFlow, next: number = flow.end): false {
    flow.broken = true
    flow.at = Math.min(next, flow.end)
    this.suspect()
    return false
  }

  /** A message cannot be of this protocol. */
  suspect(): void {
    const { faults, firstFaults } = this.#patience
    if (++this.#faults >= (this.confirmed ? faults : firstFaults)) this.refuse()
  }

  /** Framing is lost, and no message begins in what is at hand: passes over it. */
  passOver(flow: ByteFlow): false {
    flow.at = flow.end
    this.stray()
    return false
  }

  /** No message begins where one was looked for. */
  stray(): void {
    if (!this.confirmed && ++this.#strays >= this.#patience.strays) this.refuse()
  }

  /** A message was found: pieces without one are counted from zero again. */
  protected found(): void {
    this.#strays = 0
  }

  /** The connection speaks something else, or cannot be read from here on. */
  refuse(): false {
    if (this.over) return false
    this.over = true
    this.release()
    this.connection.refuse()
    return false
  }

  /** Reads what is at hand, as `FlowReader.read` says. */
  protected abstract piece(flow: ByteFlow): void

  /** Bytes are missing, as `FlowReader.lost` says. */
  protected abstract gap(flow: ByteFlow): void

  /** The connection ended: ends or abandons all requests in flight. */
  protected abstract ended(): void

  /** Gives all requests in flight back without a trace. */
  protected abstract release(): void
}

/** Announced bytes of one direction that are not read. They pass by position, so that gaps among them do no harm. */
export class Passage {
  /** How many are still to come. */
  left = 0
  /** The newest one that was seen. */
  last = 0
  #endAt = 0

  /** The next `count` bytes pass. */
  start(flow: ByteFlow, count: number): void {
    this.left = count
    this.#endAt = flow.offset + count
  }

  /** More bytes pass behind those. */
  extend(count: number): void {
    this.left += count
    this.#endAt += count
  }

  /** Passes over what is at hand. True when all have passed. */
  pass(flow: ByteFlow): boolean {
    const here = Math.min(this.left, flow.end - flow.at)
    if (here > 0) {
      flow.at += here
      this.left -= here
      this.last = flow.bytes[flow.at - 1]!
    }
    return this.left === 0
  }

  /** After a gap: true when it ended among them or at their end, and framing is not lost. */
  outlasts(flow: ByteFlow): boolean {
    const left = this.#endAt - flow.received
    if (this.left === 0 || left < 0 || left > this.left) return false
    this.left = left
    return true
  }
}

/** Where the next line feed is in `bytes[at, end)`; `end` where there is none. */
export function lineFeedAt(bytes: Buffer, at: number, end: number): number {
  for (let feed = at; feed < end; feed++) if (bytes[feed] === 0x0a) return feed
  return end
}
