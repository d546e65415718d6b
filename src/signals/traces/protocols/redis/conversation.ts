import type { StreamConnection } from '../../../../foundation/model/stream.ts'
import { InOrder } from '../in-order.ts'

/** A client's connection to Redis: the state shared by its two directions. */
export abstract class Conversation extends InOrder {
  /** Arrays may be messages of a channel. */
  subscribed = false
  /** Lines may be commands that others execute. */
  monitoring = false
  /** The selected database as text; '' if unknown. */
  database: string
  /** A command came in an unambiguous form. */
  certain = false

  constructor(connection: StreamConnection) {
    super(connection)
    this.database = connection.joined ? '' : '0'
  }

  override close(): void {
    if (this.certain) this.confirmed = true
    super.close()
  }
}
