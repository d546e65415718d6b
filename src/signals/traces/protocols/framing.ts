import type { ByteFlow } from '../../../foundation/lib/byte-flow.ts'
import type { StreamConnection, StreamDecoder } from '../../../foundation/model/stream.ts'

/** Error limits above which a connection counts as another protocol's. */
export interface Patience {
  /** Consecutive impossible messages after which it is given up. */
  readonly faults: number
  /** The same while the peer has not confirmed the protocol. */
  readonly firstFaults: number
  /** Pieces without the start of a message after which it is given up, before the peer has confirmed the protocol. */
  readonly strays: number
}

/**
 * Reads a client's connection as long as it speaks the protocol. A protocol extends it, usually through one of the
 * classes that also keep the requests in flight: `InOrder`, `Numbered`, `BrokerStream`, `SqlStream`.
 */
export abstract class Framing implements StreamDecoder {
  readonly connection: StreamConnection
  /** The peer has answered in the protocol: nothing is reported before that. */
  confirmed = false
  /** The connection is no longer read: it speaks another protocol, or it ended. */
  over = false
  readonly #patience: Patience
  #faults = 0
  #strays = 0

  constructor(connection: StreamConnection, patience: Patience) {
    this.connection = connection
    this.#patience = patience
  }

  read(flow: ByteFlow): void {
    // Such calls are reported from the client's side.
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

  /** An impossible message begins at `flow.at`: framing is lost, and the search for it starts at `next`. */
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

  /** Framing is lost, and no message begins in the available bytes: skips them. */
  passOver(flow: ByteFlow): false {
    flow.at = flow.end
    this.stray()
    return false
  }

  /** No message begins where one was expected. */
  stray(): void {
    if (!this.confirmed && ++this.#strays >= this.#patience.strays) this.refuse()
  }

  /** A message was found: resets the count of pieces without one. */
  protected found(): void {
    this.#strays = 0
  }

  /** The connection speaks another protocol, or cannot be read from here on. */
  refuse(): false {
    if (this.over) return false
    this.over = true
    this.release()
    this.connection.refuse()
    return false
  }

  /** Reads the available bytes, as specified by `FlowReader.read`. */
  protected abstract piece(flow: ByteFlow): void

  /** Bytes are missing, as specified by `FlowReader.lost`. */
  protected abstract gap(flow: ByteFlow): void

  /** The connection ended: ends or abandons all requests in flight. */
  protected abstract ended(): void

  /** Releases all requests in flight without reporting them. */
  protected abstract release(): void
}

/** Announced bytes of one direction that are not read. They are skipped by position, so gaps within them do no harm. */
export class Passage {
  /** Number of bytes still to come. */
  left = 0
  /** The last byte that was seen. */
  last = 0
  #endAt = 0

  /** Skips the next `count` bytes. */
  start(flow: ByteFlow, count: number): void {
    this.left = count
    this.#endAt = flow.offset + count
  }

  /** More bytes follow those. */
  extend(count: number): void {
    this.left += count
    this.#endAt += count
  }

  /** Skips the available bytes. True when all have passed. */
  pass(flow: ByteFlow): boolean {
    const here = Math.min(this.left, flow.end - flow.at)
    if (here > 0) {
      flow.at += here
      this.left -= here
      this.last = flow.bytes[flow.at - 1]!
    }
    return this.left === 0
  }

  /** After a gap: true if the gap ended within or at the end of the skipped bytes, so that framing is not lost. */
  outlasts(flow: ByteFlow): boolean {
    const left = this.#endAt - flow.received
    if (this.left === 0 || left < 0 || left > this.left) return false
    this.left = left
    return true
  }
}

/** Offset of the next line feed in `bytes[at, end)`; `end` if there is none. */
export function lineFeedAt(bytes: Buffer, at: number, end: number): number {
  for (let feed = at; feed < end; feed++) if (bytes[feed] === 0x0a) return feed
  return end
}
