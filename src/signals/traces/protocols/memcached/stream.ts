import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import type { Interner } from '../../../../foundation/lib/interner.ts'
import type { StreamConnection } from '../../../../foundation/model/stream.ts'
import { InOrder } from '../in-order.ts'
import { requestMagic } from './binary.ts'
import { BinaryRequests } from './binary-requests.ts'
import { BinaryResponses } from './binary-responses.ts'
import { TextRequests } from './text-requests.ts'
import { TextResponses } from './text-responses.ts'

/** A client's connection to memcached. Its first request shows which of the protocols it speaks. */
export class MemcachedStream extends InOrder {
  readonly #words: Interner
  #requests: BinaryRequests | TextRequests | undefined
  #responses: BinaryResponses | TextResponses | undefined

  constructor(words: Interner, connection: StreamConnection) {
    super(connection)
    this.#words = words
  }

  override close(): void {
    this.#responses?.close()
    super.close()
  }

  protected piece(flow: ByteFlow): void {
    if (this.#requests === undefined && flow.request) this.#choose(flow.bytes[flow.at]!)
    const reader = flow.request ? this.#requests : this.#responses
    if (reader === undefined) flow.at = flow.end
    else reader.read(flow)
  }

  protected gap(flow: ByteFlow): void {
    const reader = flow.request ? this.#requests : this.#responses
    reader?.lost(flow)
  }

  #choose(first: number): void {
    if (first === requestMagic) {
      this.#requests = new BinaryRequests(this)
      this.#responses = new BinaryResponses(this)
    } else {
      this.#requests = new TextRequests(this.#words, this)
      this.#responses = new TextResponses(this.#words, this)
    }
  }
}
