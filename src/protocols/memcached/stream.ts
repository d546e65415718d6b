import type { ByteFlow } from '../../lib/byte-flow.ts'
import type { Interner } from '../../lib/interner.ts'
import type { StreamConnection, StreamDecoder } from '../../model/stream.ts'
import { InOrder } from '../in-order.ts'
import { requestMagic } from './binary.ts'
import { BinaryRequests } from './binary-requests.ts'
import { BinaryResponses } from './binary-responses.ts'
import type { Half } from './half.ts'
import { TextRequests } from './text-requests.ts'
import { TextResponses } from './text-responses.ts'

/** A client's connection to memcached. Its first request tells which of the protocols it speaks. */
export class MemcachedStream implements StreamDecoder {
  private readonly words: Interner
  private readonly order: InOrder
  private requests: Half | undefined
  private responses: Half | undefined

  constructor(words: Interner, connection: StreamConnection) {
    this.words = words
    this.order = new InOrder(connection)
  }

  read(flow: ByteFlow): void {
    const { order } = this
    if (order.connection.server) order.refuse()
    if (this.requests === undefined && flow.request && !order.over) this.choose(flow.bytes[flow.at]!)
    const half = flow.request ? this.requests : this.responses
    if (half === undefined || order.over) flow.at = flow.end
    else half.read(flow)
  }

  lost(flow: ByteFlow): void {
    const half = flow.request ? this.requests : this.responses
    if (!this.order.over) half?.lost(flow)
  }

  close(): void {
    this.responses?.close?.()
    if (this.order.agreed) this.order.close()
    else this.order.release()
  }

  private choose(first: number): void {
    const { order, words } = this
    if (first === requestMagic) {
      this.requests = new BinaryRequests(order)
      this.responses = new BinaryResponses(order)
    } else {
      this.requests = new TextRequests(words, order)
      this.responses = new TextResponses(words, order)
    }
  }
}
