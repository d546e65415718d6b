import { connect, type Socket } from 'node:net'
import { Program } from './program.ts'

/** One message as it goes over the wire, in pieces that are a write each. */
export type Pieces = readonly string[]

/** A request and its answer, byte for byte. */
export interface Turn {
  readonly request: Pieces
  readonly answer: Pieces
  /** The server answers when it has so many bytes of the request; all of them when left out. */
  readonly early?: number
  /** What the server does after its answer; `keep` when left out. */
  readonly next?: 'keep' | 'close' | 'reset'
}

/** Speaks both sides of a connection byte by byte, the server's in a process of its own. */
export class RawTalk {
  readonly port: number
  readonly #server: Program

  private constructor(server: Program) {
    this.#server = server
    this.port = server.ready.port
  }

  static async start(port: number): Promise<RawTalk> {
    return new RawTalk(await Program.start('raw-server.ts', { port }))
  }

  get pid(): number {
    return this.#server.pid
  }

  close(): Promise<void> {
    return this.#server.close()
  }

  /**
   * Has one connection: each request is sent when the answers before it are there. At the end the client closes, or
   * waits for the server where that closes. `stopAfter`: the client leaves when it has so many bytes.
   */
  async have(turns: readonly Turn[], { stopAfter = Number.POSITIVE_INFINITY } = {}): Promise<void> {
    let after = 0
    const script = turns.map(({ request, answer, early = sizeOf(request), next = 'keep' }) => {
      const answered = { after: after + early, pieces: answer, next }
      after += sizeOf(request)
      return answered
    })
    await this.#server.ask(JSON.stringify(script))
    const socket = connect({ port: this.port, host: '127.0.0.1', noDelay: true })
    const reader = new Reader(socket)
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve)
      socket.once('error', reject)
    })
    let want = 0
    for (const { request, answer, next = 'keep' } of turns) {
      for (const piece of request) {
        await new Promise<void>(resolve => socket.write(piece, 'latin1', () => resolve()))
        await new Promise(resolve => setImmediate(resolve))
      }
      want += sizeOf(answer)
      await reader.upTo(Math.min(want, stopAfter))
      if (next !== 'keep') await reader.closed
    }
    socket.destroy()
    await reader.closed
  }
}

class Reader {
  readonly closed: Promise<void>
  #received = 0
  #wanted = 0
  #found: (() => void) | undefined
  #gone = false

  constructor(socket: Socket) {
    socket.on('data', bytes => {
      this.#received += bytes.length
      this.#look()
    })
    socket.on('error', () => {}) // a reset is an end like others
    this.closed = new Promise(resolve => {
      socket.once('close', () => {
        this.#gone = true
        this.#look()
        resolve()
      })
    })
  }

  /** Resolves when so many bytes have come in all, or no more will. */
  upTo(bytes: number): Promise<void> {
    return new Promise(resolve => {
      this.#wanted = bytes
      this.#found = resolve
      this.#look()
    })
  }

  #look(): void {
    if (this.#gone || this.#received >= this.#wanted) this.#found?.()
  }
}

export function sizeOf(pieces: Pieces): number {
  return pieces.reduce((sum, piece) => sum + piece.length, 0)
}

/** A message in pieces of `size` bytes. */
export function split(message: string, size: number): Pieces {
  return Array.from({ length: Math.ceil(message.length / size) }, (_, i) =>
    message.slice(i * size, (i + 1) * size),
  )
}

/** Lines of a head, as HTTP ends them. */
export function head(...lines: readonly string[]): string {
  return `${lines.join('\r\n')}\r\n\r\n`
}

/** A body in chunks. */
export function chunked(...chunks: readonly string[]): string {
  return `${chunks.map(chunk => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')}0\r\n\r\n`
}
