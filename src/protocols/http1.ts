import { RequestHead } from '../lib/http-head.ts'
import type { Call, Exchange } from '../model/exchange.ts'
import type { Protocol, ProtocolOptions, ProtocolUnit } from '../model/protocol.ts'
import type { StreamConnection, StreamDecoder } from '../model/stream.ts'
import { HttpCalls } from './http-calls.ts'
import { Http1Requests } from './http1/requests.ts'
import { Http1Stream } from './http1/stream.ts'

/** HTTP/1.0 and 1.1 (RFC 9112), told as `HttpCalls` does it. */
export const http1: ProtocolUnit = {
  name: 'http1',
  title: 'HTTP/1',
  summary: 'HTTP/1.0 and HTTP/1.1 requests and responses.',
  key: 'http',
  create: options => new Http1(options),
}

class Http1 implements Protocol {
  readonly name = http1.name
  private readonly calls: HttpCalls
  private readonly head = new RequestHead()
  private readonly requests: Http1Requests

  constructor(options: ProtocolOptions) {
    this.calls = new HttpCalls(options)
    const { captureBytes = Number.POSITIVE_INFINITY } = options
    this.requests = new Http1Requests((exchange, call, tls) => this.read(exchange, call, tls), captureBytes)
  }

  parse(exchange: Exchange, call: Call): boolean {
    return this.read(exchange, call, false)
  }

  open(connection: StreamConnection): StreamDecoder {
    return new Http1Stream(this.requests, connection)
  }

  private read(exchange: Exchange, call: Call, tls: boolean): boolean {
    const { head } = this
    const { bytes } = exchange
    const end = Math.min(exchange.requestEnd, bytes.length)
    if (!head.read(bytes, Math.max(0, exchange.requestStart), end)) return false
    // A target in origin form says nothing of its scheme.
    if (tls && head.target.host.empty) head.scheme = 'https://'
    return this.calls.describe(head, exchange, call)
  }
}
