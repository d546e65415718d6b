import type { ClientHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { ConnectError, Dialer, type DialerOptions, faultText } from './dialer.ts'
import { hostPort } from './host-port.ts'

/** Without TLS it is HTTP/2 with prior knowledge. */
export interface Http2ConnectorOptions extends DialerOptions {
  /** A connection of this age is replaced, so that a load balancer can choose another server; varied by ±10 %. */
  readonly maxAgeMs?: number
  /** While requests are in flight, ping the peer at this interval. */
  readonly keepaliveMs?: number
  /** A peer that does not answer a ping within this time is considered dead. */
  readonly keepaliveTimeoutMs?: number
}

const MiB = 1024 * 1024
/** Servers accept at least one ping every five minutes (gRPC's proposal A8); a timer is limited to 24 days. */
const maxKeepaliveMs = 2 * 60 * 60_000
const tooManyRequests = 11 // ENHANCE_YOUR_CALM, RFC 9113, section 7

/** One HTTP/2 connection and the number of its requests, which determines when it may be closed. */
export class Http2Connection {
  readonly session: ClientHttp2Session
  readonly #socket: Socket
  /** The socket or the session is closed. */
  lost = false
  /** Why it ended; '' while it is alive. */
  reason = ''
  #active = 0
  #retired = false

  constructor(session: ClientHttp2Session, socket: Socket) {
    this.session = session
    this.#socket = socket
  }

  get usable(): boolean {
    return !(this.#retired || this.lost || this.session.closed || this.session.destroyed)
  }

  get active(): number {
    return this.#active
  }

  begin(): void {
    this.#active++
  }

  end(): void {
    this.#active--
    if (this.#active === 0 && !this.usable) this.#close()
  }

  /** Accepts no more requests; closes when those in flight have ended. */
  retire(): void {
    this.#retired = true
    if (this.#active === 0) this.#close()
  }

  /** Closes it now. Requests in flight fail. */
  destroy(reason: string): void {
    this.#retired = true
    this.reason ||= reason
    this.#close()
  }

  #close(): void {
    this.session.destroy()
    // After a GOAWAY the session only closes our direction, and a server that does not close its own would keep the
    // socket.
    setImmediate(() => this.#socket.destroy())
  }
}

/** Keeps one HTTP/2 connection to a server and replaces it when it is lost, retired or old. Connects on demand only. */
export class Http2Connector {
  readonly #options: Http2ConnectorOptions
  readonly #dialer: Dialer
  readonly #open = new Set<Http2Connection>()
  #current: Http2Connection | undefined
  #replaceAt = 0
  #dialing: Promise<Http2Connection> | undefined
  #keepaliveMs: number
  #closed = false

  constructor(options: Http2ConnectorOptions) {
    this.#options = options
    this.#dialer = new Dialer(options, ['h2'])
    this.#keepaliveMs = options.keepaliveMs ?? 30_000
  }

  get connected(): boolean {
    return this.#current?.usable ?? false
  }

  /** Ping interval of new connections: longer after a server complained. */
  get keepaliveMs(): number {
    return this.#keepaliveMs
  }

  /** The connection for the next request. Rejects with a `ConnectError`. */
  connection(): Promise<Http2Connection> {
    const current = this.#current
    if (current?.usable) {
      if (performance.now() < this.#replaceAt) return Promise.resolve(current)
      current.retire()
    }
    if (this.#closed) return Promise.reject(new ConnectError('the client is closed', 'connect'))
    this.#dialing ??= this.#dial().finally(() => {
      this.#dialing = undefined
    })
    return this.#dialing
  }

  /** Closes all connections, and aborts a connection attempt. */
  close(): void {
    this.#closed = true
    this.#dialer.close()
    for (const connection of this.#open) connection.destroy('the client is closed')
  }

  async #dial(): Promise<Http2Connection> {
    // Loaded with the first connection, since an agent that exports nothing needs neither.
    const http2 = process.getBuiltinModule?.('node:http2') ?? (await import('node:http2'))
    const socket = await this.#dialer.dial()
    if (this.#closed) {
      socket.destroy()
      throw new ConnectError('the client is closed', 'connect')
    }
    if ('alpnProtocol' in socket && socket.alpnProtocol !== 'h2') {
      socket.destroy()
      throw new ConnectError('the server supports TLS but no HTTP/2 (ALPN h2)', 'tls')
    }
    const { host, port, tls, maxAgeMs = 30 * 60_000 } = this.#options
    const session = http2.connect(`${tls ? 'https' : 'http'}://${hostPort(host, port)}`, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: MiB },
      // Covers bodies that wait for the peer's window; Node's default of 10 would reject a few large ones.
      maxSessionMemory: 256,
    })
    const connection = new Http2Connection(session, socket)
    this.#watch(connection, socket)
    this.#current = connection
    this.#replaceAt = performance.now() + maxAgeMs * (0.9 + 0.2 * Math.random())
    return connection
  }

  #watch(connection: Http2Connection, socket: Socket): void {
    const { session } = connection
    this.#open.add(connection)
    socket.once('close', () => {
      connection.lost = true
    })
    session.on('error', error => {
      connection.reason ||= faultText(error)
    })
    const keepalive = new Keepalive(connection, this.#options.keepaliveTimeoutMs ?? 20_000)
    session.on('goaway', code => {
      // Some servers stop answering pings when they shut down, and a ping must not abort requests that they promised to
      // finish.
      keepalive.stop()
      if (code === 0) {
        connection.retire()
        return
      }
      const name = code === tooManyRequests ? 'ENHANCE_YOUR_CALM' : `HTTP/2 error ${code}`
      connection.reason ||= `the server closed the connection with ${name}`
      // As gRPC's proposal A8 requires.
      if (code === tooManyRequests) this.#keepaliveMs = Math.min(2 * this.#keepaliveMs, maxKeepaliveMs)
    })
    keepalive.start(this.#keepaliveMs)
    session.once('close', () => {
      connection.lost = true
      keepalive.stop()
      this.#open.delete(connection)
      if (this.#current === connection) this.#current = undefined
    })
  }
}

/** Pings a server with requests in flight, and closes the connection if it does not answer. */
class Keepalive {
  readonly #connection: Http2Connection
  readonly #timeoutMs: number
  #interval: NodeJS.Timeout | undefined
  #timeout: NodeJS.Timeout | undefined

  constructor(connection: Http2Connection, timeoutMs: number) {
    this.#connection = connection
    this.#timeoutMs = timeoutMs
  }

  start(everyMs: number): void {
    this.#interval = setInterval(() => this.#ping(), everyMs)
    this.#interval.unref()
  }

  stop(): void {
    clearInterval(this.#interval)
    clearTimeout(this.#timeout)
  }

  /** Servers close connections that ping without requests in flight, so idle connections are not pinged. */
  #ping(): void {
    const { active, session } = this.#connection
    if (this.#timeout || active === 0 || session.destroyed) return
    const lost = (): void => this.#connection.destroy('the server sent no HTTP/2 ping response')
    this.#timeout = setTimeout(lost, this.#timeoutMs)
    session.ping(() => {
      clearTimeout(this.#timeout)
      this.#timeout = undefined
    })
  }
}
