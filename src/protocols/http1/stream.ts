import type { ByteFlow } from '../../lib/byte-flow.ts'
import type { Protocol } from '../../model/exchange.ts'
import type { StreamConnection, StreamDecoder } from '../../model/stream.ts'

/** HTTP/1 where the kernel side does not frame it: inside TLS, and on kernels without socket tracepoints. */
export class Http1Stream implements StreamDecoder {
  private readonly connection: StreamConnection

  constructor(_protocol: Protocol, connection: StreamConnection) {
    this.connection = connection
  }

  read(flow: ByteFlow): void {
    flow.at = flow.end
    this.connection.refuse()
  }

  lost(_flow: ByteFlow): void {}

  close(): void {}
}
