import type { ByteFlow } from '../../lib/byte-flow.ts'
import type { StreamConnection, StreamDecoder } from '../../model/stream.ts'
import { Conversation } from './conversation.ts'
import { Replies } from './replies.ts'
import { Requests } from './requests.ts'
import type { Telling } from './telling.ts'

/** A client's connection to Redis. */
export class RedisStream implements StreamDecoder {
  private readonly conversation: Conversation
  private readonly requests: Requests
  private readonly replies: Replies

  constructor(telling: Telling, connection: StreamConnection) {
    this.conversation = new Conversation(connection)
    this.requests = new Requests(telling, this.conversation)
    this.replies = new Replies(telling, this.conversation)
  }

  read(flow: ByteFlow): void {
    const { order } = this.conversation
    if (order.connection.server) order.refuse()
    if (order.over) flow.at = flow.end
    else if (flow.request) this.requests.read(flow)
    else this.replies.read(flow)
  }

  lost(flow: ByteFlow): void {
    if (this.conversation.order.over) return
    if (flow.request) this.requests.lost(flow)
    else this.replies.lost(flow)
  }

  close(): void {
    const { order, certain } = this.conversation
    if (order.agreed || certain) order.close()
    else order.release()
  }
}
