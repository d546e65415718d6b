// A server of HTTP/2 without TLS that writes its frames by hand: for what a well-behaved library never does.
import { type AddressInfo, createServer, type Socket } from 'node:net'

/** A frame as RFC 9113, section 4.1, has it. */
export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

export const FrameType = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goAway: 7 } as const

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
const ack = 1
const endStream = 1
const endHeaders = 4

/** One connection of the client. */
export class FrameConnection {
  readonly socket: Socket
  readonly #read: (frame: Frame, connection: FrameConnection) => void
  #bytes: Buffer = Buffer.alloc(0)

  constructor(socket: Socket, read: (frame: Frame, connection: FrameConnection) => void) {
    this.socket = socket
    this.#read = read
    socket.setNoDelay(true)
    socket.on('data', chunk => this.#take(chunk as Buffer))
    socket.on('error', () => {}) // either end may leave
    this.send(FrameType.settings, 0, 0)
  }

  send(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): void {
    const head = Buffer.alloc(9)
    head.writeUIntBE(payload.length, 0, 3)
    head[3] = type
    head[4] = flags
    head.writeUInt32BE(stream, 5)
    if (!this.socket.destroyed) this.socket.write(Buffer.concat([head, payload]))
  }

  /** `last` is the last stream that is answered. */
  goAway(last: number, code = 0, debug = ''): void {
    const payload = Buffer.alloc(8 + debug.length)
    payload.writeUInt32BE(last, 0)
    payload.writeUInt32BE(code, 4)
    payload.write(debug, 8, 'latin1')
    this.send(FrameType.goAway, 0, 0, payload)
  }

  /** An empty message of gRPC and the status ok. */
  succeed(stream: number): void {
    const head = [0x88, ...literal('content-type', 'application/grpc')] // 0x88 is :status 200
    this.send(FrameType.headers, endHeaders, stream, Buffer.from(head))
    this.send(FrameType.data, 0, stream, Buffer.alloc(5))
    this.send(FrameType.headers, endHeaders | endStream, stream, Buffer.from(literal('grpc-status', '0')))
  }

  #take(chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk])
    if (this.#bytes.toString('latin1', 0, preface.length) === preface)
      this.#bytes = this.#bytes.subarray(preface.length)
    while (this.#bytes.length >= 9) {
      const length = this.#bytes.readUIntBE(0, 3)
      if (this.#bytes.length < 9 + length) return
      const frame: Frame = {
        type: this.#bytes[3]!,
        flags: this.#bytes[4]!,
        stream: this.#bytes.readUInt32BE(5),
        payload: this.#bytes.subarray(9, 9 + length),
      }
      this.#bytes = this.#bytes.subarray(9 + length)
      if (frame.type === FrameType.settings && !(frame.flags & ack)) this.send(FrameType.settings, ack, 0)
      this.#read(frame, this)
    }
  }
}

/** A literal field without indexing, of a new name (RFC 7541, section 6.2.2). */
function literal(name: string, value: string): number[] {
  return [0, name.length, ...Buffer.from(name), value.length, ...Buffer.from(value)]
}

/** `read` gets every frame. Settings are acknowledged, and nothing else is answered by itself. */
export async function startFrameServer(read: (frame: Frame, connection: FrameConnection) => void): Promise<{
  readonly port: number
  readonly connections: FrameConnection[]
  close(): Promise<void>
}> {
  const connections: FrameConnection[] = []
  const server = createServer(socket => connections.push(new FrameConnection(socket, read)))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    connections,
    close: async () => {
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      for (const { socket } of connections) socket.destroy()
      await closed
    },
  }
}
