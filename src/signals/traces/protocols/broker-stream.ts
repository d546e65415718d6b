import type { ByteFlow } from '../../../foundation/lib/byte-flow.ts'
import type { Operation, StreamConnection } from '../../../foundation/model/stream.ts'
import { brokenOff } from './failure.ts'
import { Framing, Passage, type Patience } from './framing.ts'

const patience: Patience = { faults: 5, firstFaults: 1, strays: Number.POSITIVE_INFINITY }
/** Maximum number of finished operations held back. */
const mostHeld = 64
/** Consecutive whole messages that confirm the protocol even though the peer need not answer. */
const enough = 4

/** One direction of a connection to a broker. */
export class BrokerSide {
  /** The unread part of a message. */
  readonly passage = new Passage()
}

/**
 * A client's connection to a broker, which need not answer. Finished operations are held back until the peer has spoken
 * the same protocol: a misdetected connection reports nothing.
 */
export abstract class BrokerStream<S extends BrokerSide = BrokerSide> extends Framing {
  /** Reason why the server ends the connection. */
  protected reason = ''
  protected abstract readonly sent: S
  protected abstract readonly received: S
  readonly #held: Operation[] = []
  #row = 0

  constructor(connection: StreamConnection) {
    super(connection, patience)
  }

  /** The operation ended at `endNs`. */
  end(operation: Operation, endNs: number): void {
    operation.endNs = endNs
    if (this.confirmed) this.connection.end(operation)
    else if (this.#held.length < mostHeld) this.#held.push(operation)
    else this.connection.abandon(operation)
  }

  /** Its outcome is unknown. */
  abandon(operation: Operation): void {
    if (this.confirmed) this.connection.abandon(operation)
    else this.connection.release(operation)
  }

  /** The peer has answered. */
  confirm(): void {
    if (this.confirmed) return
    this.confirmed = true
    for (const operation of this.#held) this.connection.end(operation)
    this.#held.length = 0
  }

  /** A whole message passed whose framing matched exactly. */
  protected exact(): void {
    if (!this.confirmed && ++this.#row >= enough) this.confirm()
  }

  /** Reads the message at `flow.at`. False if more bytes are needed. */
  protected abstract step(flow: ByteFlow, side: S): boolean

  /** The unread part of a message has passed. */
  protected abstract passed(flow: ByteFlow, side: S): void

  /** Bytes are missing, possibly including messages. */
  protected abstract missed(flow: ByteFlow, side: S): void

  /** The connection ended with this `error.type`: ends all requests in flight. */
  protected abstract broken(error: string): void

  /** Releases all requests in flight without reporting them. */
  protected abstract forget(): void

  /** Whether a message ends with the part that just passed. */
  protected endsWith(_last: number): boolean {
    return true
  }

  /** After a gap: whether the gap ended within the unread part. */
  protected outlasts(flow: ByteFlow, { passage }: S): boolean {
    return passage.outlasts(flow)
  }

  protected piece(flow: ByteFlow): void {
    const side = flow.request ? this.sent : this.received
    const { passage } = side
    while (!this.over && flow.at < flow.end) {
      if (passage.left === 0) {
        if (!this.step(flow, side)) return
        continue
      }
      if (!passage.pass(flow)) return
      this.passed(flow, side)
      if (!this.endsWith(passage.last)) this.fault(flow, flow.at + 1)
    }
  }

  protected gap(flow: ByteFlow): void {
    const side = flow.request ? this.sent : this.received
    if (this.outlasts(flow, side)) {
      flow.broken = false
      if (side.passage.left === 0) this.passed(flow, side)
      return
    }
    side.passage.left = 0
    this.missed(flow, side)
  }

  protected ended(): void {
    this.broken(this.reason || brokenOff(this.connection.errno))
    this.#dropHeld()
  }

  protected release(): void {
    this.forget()
    this.#dropHeld()
  }

  #dropHeld(): void {
    for (const operation of this.#held) this.connection.release(operation)
    this.#held.length = 0
  }
}
