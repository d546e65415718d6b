import type { StreamConnection } from '../../../../foundation/model/stream.ts'
import { InOrder } from '../in-order.ts'

/** A client's connection to Redis: what its two directions tell each other. */
export abstract class Conversation extends InOrder {
  /** Arrays may be messages of a channel. */
  subscribed = false
  /** Lines may be what others execute. */
  monitoring = false
  /** The database that commands go to, as text; '' where it is not known. */
  database: string
  /** A command came in the form that nothing else has. */
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
