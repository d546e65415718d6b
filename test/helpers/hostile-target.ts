// Targets of scrapes that misbehave, byte for byte.
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'

/** What a target does with a request, whose head it is given. */
export type Behaviour = (socket: Socket, request: string) => void

export interface HostileTarget {
  readonly port: number
  readonly url: string
  /** Heads of the requests that came. */
  readonly requests: string[]
  /** Connections that were made, and those that are open. */
  made: number
  readonly open: ReadonlySet<Socket>
  behaviour: Behaviour
  close(): Promise<void>
}

/** Listens on loopback. `greet` writes to a connection before anything is asked. */
export async function startHostileTarget(
  behaviour: Behaviour,
  greet?: (socket: Socket) => void,
): Promise<HostileTarget> {
  const open = new Set<Socket>()
  const server: Server = createServer(socket => {
    target.made++
    open.add(socket)
    socket.on('error', () => {}) // the client leaves whenever it likes
    socket.once('close', () => open.delete(socket))
    greet?.(socket)
    let seen = ''
    socket.on('data', bytes => {
      seen += bytes.toString('latin1')
      for (let end = seen.indexOf('\r\n\r\n'); end >= 0; end = seen.indexOf('\r\n\r\n')) {
        const request = seen.slice(0, end)
        seen = seen.slice(end + 4)
        target.requests.push(request)
        target.behaviour(socket, request)
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const target: HostileTarget = {
    port,
    url: `http://127.0.0.1:${port}/metrics`,
    requests: [],
    made: 0,
    open,
    behaviour,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of open) socket.destroy()
      await closed
    },
  }
  return target
}

/** An answer with its length. */
export function answer(
  body: string | Buffer,
  fields: Readonly<Record<string, string>> = {},
  status = '200 OK',
): Buffer {
  const bytes = Buffer.from(body)
  const lines = Object.entries({
    'Content-Type': 'text/plain; version=0.0.4',
    'Content-Length': bytes.length,
    ...fields,
  })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return Buffer.concat([Buffer.from(`HTTP/1.1 ${status}\r\n${head}\r\n`), bytes])
}

/** Writes a piece again and again, as fast as it is taken, until the client leaves. */
export function pour(socket: Socket, piece: string | Buffer): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(piece));
  }
  socket.on('drain', more)
  more()
}

/** Writes a byte every 20 ms until the client leaves. */
export function drip(socket: Socket, byte: string): void {
  const timer = setInterval(() => socket.write(byte), 20)
  socket.once('close', () => clearInterval(timer))
}

/** Zeros that became gzip: 1 MB of it are 1 GB. */
export function gzipBomb(packedBytes: number): Buffer {
  const member = gzipSync(Buffer.alloc(16 * 1024 * 1024))
  return Buffer.concat(Array.from({ length: Math.ceil(packedBytes / member.length) }, () => member))
}
