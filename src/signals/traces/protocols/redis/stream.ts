import type { ByteFlow, FlowReader } from '../../../../foundation/lib/byte-flow.ts'
import type { StreamConnection } from '../../../../foundation/model/stream.ts'
import { Conversation } from './conversation.ts'
import type { CommandDescription } from './description.ts'
import { Replies } from './replies.ts'
import { Requests } from './requests.ts'

/** A client's connection to Redis. */
export class RedisStream extends Conversation {
  readonly #requests: FlowReader
  readonly #replies: FlowReader

  constructor(telling: CommandDescription, connection: StreamConnection) {
    super(connection)
    this.#requests = new Requests(telling, this)
    this.#replies = new Replies(telling, this)
  }

  protected piece(flow: ByteFlow): void {
    ;(flow.request ? this.#requests : this.#replies).read(flow)
  }

  protected gap(flow: ByteFlow): void {
    ;(flow.request ? this.#requests : this.#replies).lost(flow)
  }
}
