import type { Operation, StreamConnection } from '../model/stream.ts'

/** Operations that are kept back at most. */
const most = 64
/** Whole messages in an unbroken row that nothing but the protocol explains, where the peer need not answer. */
const enough = 4

/**
 * Keeps back what ended until the peer has answered in the same protocol: a connection that was taken for another one
 * tells nothing.
 */
export class Confirmation {
  sure = false
  private readonly connection: StreamConnection
  private readonly held: Operation[] = []
  private row = 0

  constructor(connection: StreamConnection) {
    this.connection = connection
  }

  /** The operation ended at `endNs`. */
  end(operation: Operation, endNs: number): void {
    operation.endNs = endNs
    if (this.sure) this.connection.end(operation)
    else if (this.held.length < most) this.held.push(operation)
    else this.connection.abandon(operation)
  }

  /** What became of it can no longer be told. */
  abandon(operation: Operation): void {
    if (this.sure) this.connection.abandon(operation)
    else this.connection.release(operation)
  }

  /** The peer has answered. */
  confirm(): void {
    if (this.sure) return
    this.sure = true
    for (const operation of this.held) this.connection.end(operation)
    this.held.length = 0
  }

  /** A whole message went by, framed to the byte. */
  exact(): void {
    if (!this.sure && ++this.row >= enough) this.confirm()
  }

  /** The connection is over or another protocol's. */
  drop(): void {
    for (const operation of this.held) this.connection.release(operation)
    this.held.length = 0
  }
}
