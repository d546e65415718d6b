import type { StreamConnection } from '../../model/stream.ts'
import { InOrder } from '../in-order.ts'

/** What the two directions of a connection tell each other. */
export class Conversation {
  readonly order: InOrder
  /** Arrays may be messages of a channel. */
  subscribed = false
  /** Lines may be what others execute. */
  monitoring = false
  /** The database that commands go to, as text; '' where it is not known. */
  database: string
  /** A command came in the form that nothing else has. */
  certain = false

  constructor(connection: StreamConnection) {
    this.order = new InOrder(connection)
    this.database = connection.joined ? '' : '0'
  }
}
