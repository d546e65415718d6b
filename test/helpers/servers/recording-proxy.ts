import { type AddressInfo, connect, createServer, type Server } from 'node:net'

/** Bytes of one call, and who sent them. */
export interface Said {
  readonly client: boolean
  readonly bytes: Buffer
}

/** A TCP proxy that writes down what both sides of each connection say, in the order in which it passes through. */
export class RecordingProxy {
  readonly port: number
  /** By connection, in the order of their beginning. */
  readonly talks: Said[][]
  readonly #server: Server

  private constructor(server: Server, talks: Said[][]) {
    this.#server = server
    this.port = (server.address() as AddressInfo).port
    this.talks = talks
  }

  static async start(targetPort: number): Promise<RecordingProxy> {
    const talks: Said[][] = []
    const server = createServer(socket => {
      const talk: Said[] = []
      talks.push(talk)
      const target = connect(targetPort, '127.0.0.1')
      socket.on('data', bytes => {
        talk.push({ client: true, bytes: bytes as Buffer })
        target.write(bytes)
      })
      target.on('data', bytes => {
        talk.push({ client: false, bytes: bytes as Buffer })
        socket.write(bytes)
      })
      socket.on('end', () => target.end())
      target.on('end', () => socket.end())
      socket.on('error', () => target.destroy())
      target.on('error', () => socket.destroy())
    })
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    return new RecordingProxy(server, talks)
  }

  close(): Promise<void> {
    return new Promise(done => this.#server.close(() => done()))
  }
}
