import { RequestHead } from '../../../foundation/lib/http-head.ts'
import type { Protocol, ProtocolOptions, ProtocolUnit } from '../../../foundation/model/protocol.ts'
import type { Operation, StreamConnection, StreamDecoder } from '../../../foundation/model/stream.ts'
import { HttpCalls } from './http-calls.ts'
import { Http1Requests } from './http1/requests.ts'
import { Http1Stream } from './http1/stream.ts'

/** HTTP/1.0 and 1.1 (RFC 9112), described by `HttpCalls`. */
export const http1: ProtocolUnit = {
  name: 'http1',
  title: 'HTTP/1',
  summary: 'HTTP/1.0 and HTTP/1.1 requests and responses.',
  key: 'http',
  create: options => new Http1(options),
}

class Http1 implements Protocol {
  readonly name = http1.name
  readonly #calls: HttpCalls
  readonly #head = new RequestHead()
  readonly #requests: Http1Requests

  constructor(options: ProtocolOptions) {
    this.#calls = new HttpCalls(options)
    const { captureBytes = Number.POSITIVE_INFINITY } = options
    this.#requests = new Http1Requests(
      (operation, bytes, length) => this.#read(operation, bytes, 0, length),
      captureBytes,
    )
  }

  open(connection: StreamConnection): StreamDecoder {
    return new Http1Stream(this.#requests, connection)
  }

  fillCall(operation: Operation): boolean {
    const { bytes, start, end } = operation.head
    return this.#read(operation, bytes, Math.max(0, start), Math.min(end, bytes.length))
  }

  #read(operation: Operation, bytes: Buffer, start: number, end: number): boolean {
    const head = this.#head
    if (!head.read(bytes, start, end)) return false
    // A target in origin form has no scheme.
    if (operation.connection.tls && head.target.host.empty) head.scheme = 'https://'
    return this.#calls.describe(head, bytes, operation)
  }
}
