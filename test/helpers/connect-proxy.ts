// A proxy that opens tunnels (CONNECT), as companies have them.
import { createServer, type IncomingMessage } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'

export interface ConnectProxy {
  readonly port: number
  /** `host:port` of every tunnel that was asked for. */
  readonly targets: string[]
  /** Value of `Proxy-Authorization` of each, '' for none. */
  readonly authorizations: string[]
  /** How it answers: the status of a refusal, a silence, or what it writes instead. */
  answer: 'open' | 'stall' | 'cut' | { readonly status: number } | { readonly raw: string }
  close(): Promise<void>
}

/** `tls` are PEM texts of a proxy that is itself reached over TLS. */
export async function startConnectProxy(tls?: { cert: string; key: string }): Promise<ConnectProxy> {
  const sockets = new Set<Socket>()
  const keep = (socket: Socket): void => {
    sockets.add(socket)
    socket.on('error', () => {}) // either end may leave
    socket.once('close', () => sockets.delete(socket))
  }
  const server = tls ? createTlsServer(tls) : createServer()
  server.on('connection', keep)
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    const { answer } = proxy
    keep(socket)
    proxy.targets.push(request.url ?? '')
    proxy.authorizations.push(request.headers['proxy-authorization'] ?? '')
    if (answer === 'stall') return
    if (answer === 'cut') socket.destroy()
    else if (answer !== 'open')
      socket.end(
        'raw' in answer ? answer.raw : `HTTP/1.1 ${answer.status} Refused\r\nContent-Length: 0\r\n\r\n`,
      )
    else {
      const { hostname, port } = new URL(`http://${request.url}`)
      const server = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || 80 })
      keep(server)
      server.once('connect', () => {
        socket.write('HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n')
        socket.pipe(server).pipe(socket)
      })
      server.once('close', () => socket.destroy())
      socket.once('close', () => server.destroy())
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const proxy: ConnectProxy = {
    port: (server.address() as AddressInfo).port,
    targets: [],
    authorizations: [],
    answer: 'open',
    close: async () => {
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
  return proxy
}
