import type { Protocol, ProtocolOptions, ProtocolUnit } from '../../../foundation/model/protocol.ts'
import type { StreamConnection, StreamDecoder } from '../../../foundation/model/stream.ts'
import { Http2Calls } from './http2/calls.ts'
import { Http2Stream } from './http2/stream.ts'

/**
 * HTTP/2 (RFC 9113), and gRPC in it, on both sides. Requests are reported like those of HTTP/1, gRPC calls by the RPC
 * conventions 1.44. `error.type` of a stream that was reset is the error code's name, such as `CANCEL`.
 */
export const http2: ProtocolUnit = {
  name: 'http2',
  title: 'gRPC and HTTP/2',
  summary: 'HTTP/2 requests and gRPC calls.',
  key: 'grpc',
  confidence: 'preface',
  create: options => new Http2(options),
}

class Http2 implements Protocol {
  readonly name = http2.name
  readonly #calls: Http2Calls

  constructor(options: ProtocolOptions) {
    this.#calls = new Http2Calls(options)
  }

  open(connection: StreamConnection): StreamDecoder {
    return new Http2Stream(this.#calls, connection)
  }
}
