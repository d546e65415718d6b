import { readFile } from 'node:fs/promises'
import type { ClientHttp2Session } from 'node:http2'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'

/** How to be sure of the server, and who we are to it. Files are PEM and are read at every connect: they rotate. */
export interface TlsOptions {
  /** '': the roots that the runtime brings. */
  readonly caFile: string
  /** Our certificate for mutual TLS, with `keyFile`. '': none. */
  readonly certFile: string
  readonly keyFile: string
  /** Name that the server's certificate must carry. '': the host that we connect to. */
  readonly serverName: string
  readonly insecureSkipVerify: boolean
}

export interface Http2ConnectorOptions {
  readonly host: string
  readonly port: number
  /** Undefined: plain HTTP/2 with prior knowledge. */
  readonly tls: TlsOptions | undefined
  readonly connectTimeoutMs: number
  /** A connection this old is replaced, so that a balancer may place us anew; spread by a tenth either way. */
  readonly maxAgeMs?: number
  /** While requests run, ask this often whether the peer still lives. */
  readonly keepaliveMs?: number
  /** A peer that does not answer within this time is given up. */
  readonly keepaliveTimeoutMs?: number
}

/** A connection that could not be made. `type` says where it failed. */
export class ConnectError extends Error {
  readonly type: 'connect' | 'dns' | 'tls'

  constructor(message: string, type: 'connect' | 'dns' | 'tls', cause?: unknown) {
    super(message, { cause })
    this.name = 'ConnectError'
    this.type = type
  }
}

const MiB = 1024 * 1024
const tooManyRequests = 11 // ENHANCE_YOUR_CALM, RFC 9113, section 7

/** One HTTP/2 connection and the count of requests on it, which decides when it may be closed. */
export class Http2Connection {
  readonly session: ClientHttp2Session
  /** The socket is gone, or the session with it. */
  lost = false
  /** What ended it; '' as long as nothing did. */
  reason = ''
  #active = 0
  #retired = false

  constructor(session: ClientHttp2Session) {
    this.session = session
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
    if (this.#retired && this.#active === 0) this.session.destroy()
  }

  /** Takes no more requests; closes when those that run have ended. */
  retire(): void {
    this.#retired = true
    if (this.#active === 0) this.session.destroy()
  }

  /** Ends it now. Requests that run fail. */
  destroy(reason: string): void {
    this.#retired = true
    this.reason ||= reason
    this.session.destroy()
  }
}

/**
 * Keeps one HTTP/2 connection to a server and makes a new one when it is lost, retired or old. Connects when
 * asked, never by itself. The name is resolved at every connect, and addresses are tried in turn (RFC 8305).
 */
export class Http2Connector {
  readonly #options: Http2ConnectorOptions
  readonly #open = new Set<Http2Connection>()
  #current: Http2Connection | undefined
  #replaceAt = 0
  #dialing: Promise<Http2Connection> | undefined
  #socket: Socket | undefined
  #keepaliveMs: number
  #closed = false

  constructor(options: Http2ConnectorOptions) {
    this.#options = options
    this.#keepaliveMs = options.keepaliveMs ?? 30_000
  }

  get connected(): boolean {
    return this.#current?.usable ?? false
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
      this.#socket = undefined
    })
    return this.#dialing
  }

  /** Ends all connections, and the attempt to make one. */
  close(): void {
    this.#closed = true
    this.#socket?.destroy(new Error('the client is closed'))
    for (const connection of this.#open) connection.destroy('the client is closed')
  }

  async #dial(): Promise<Http2Connection> {
    // Loaded with the first connection, for an agent that exports nothing needs neither of them.
    const http2 = process.getBuiltinModule?.('node:http2') ?? (await import('node:http2'))
    const socket = await this.#connect()
    if (this.#closed) {
      socket.destroy()
      throw new ConnectError('the client is closed', 'connect')
    }
    const { host, port, tls, maxAgeMs = 30 * 60_000 } = this.#options
    const session = http2.connect(`${tls ? 'https' : 'http'}://${bracketed(host)}:${port}`, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: MiB },
      // Counts the bodies that wait for the peer's window; Node's own limit of 10 refuses a few large ones.
      maxSessionMemory: 256,
    })
    const connection = new Http2Connection(session)
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
      connection.reason ||= error.message
    })
    session.on('goaway', code => {
      if (code === 0) return
      connection.reason ||= `the server closed the connection with ${code === tooManyRequests ? 'ENHANCE_YOUR_CALM' : `HTTP/2 error ${code}`}`
      if (code === tooManyRequests) this.#keepaliveMs *= 2 // as gRPC's proposal A8 asks
    })
    const keepalive = setInterval(() => this.#ping(connection), this.#keepaliveMs)
    keepalive.unref()
    session.once('close', () => {
      connection.lost = true
      clearInterval(keepalive)
      this.#open.delete(connection)
      if (this.#current === connection) this.#current = undefined
    })
  }

  /** Servers close connections that ping without a request running, so an idle one is left alone. */
  #ping(connection: Http2Connection): void {
    if (connection.active === 0 || connection.session.destroyed) return
    const timer = setTimeout(
      () => connection.destroy('the server answers no HTTP/2 ping'),
      this.#options.keepaliveTimeoutMs ?? 20_000,
    )
    connection.session.ping(() => clearTimeout(timer))
  }

  async #connect(): Promise<Socket> {
    const { host, port, tls, connectTimeoutMs } = this.#options
    const options = tls ? await this.#tlsOptions(tls) : undefined
    const node = options ? (process.getBuiltinModule?.('node:tls') ?? (await import('node:tls'))) : undefined
    return new Promise((resolve, reject) => {
      const socket = node ? node.connect({ ...options, host, port }) : connectTcp({ host, port })
      let reached = false
      this.#socket = socket
      const timer = setTimeout(
        () => socket.destroy(new Error(`no connection within ${connectTimeoutMs} ms`)),
        connectTimeoutMs,
      )
      socket.once('connect', () => {
        reached = true
      })
      socket.once(node ? 'secureConnect' : 'connect', () => {
        clearTimeout(timer)
        socket.off('error', failed)
        if (node && 'alpnProtocol' in socket && socket.alpnProtocol !== 'h2') {
          socket.destroy()
          reject(new ConnectError('the server speaks TLS but no HTTP/2 (ALPN h2)', 'tls'))
          return
        }
        socket.setNoDelay(true)
        resolve(socket)
      })
      const failed = (error: NodeJS.ErrnoException): void => {
        clearTimeout(timer)
        reject(connectError(error, reached && node !== undefined, host))
      }
      socket.once('error', failed)
    })
  }

  async #tlsOptions(tls: TlsOptions): Promise<ConnectionOptions> {
    const { host } = this.#options
    const [ca, cert, key] = await Promise.all([
      readPem('ca_file', tls.caFile),
      readPem('cert_file', tls.certFile),
      readPem('key_file', tls.keyFile),
    ])
    const name = tls.serverName || (isIP(host) ? '' : host)
    return {
      ALPNProtocols: ['h2'],
      minVersion: 'TLSv1.2',
      rejectUnauthorized: !tls.insecureSkipVerify,
      ...(name && { servername: name }),
      ...(ca && { ca }),
      ...(cert && { cert }),
      ...(key && { key }),
    }
  }
}

async function readPem(key: string, path: string): Promise<Buffer | undefined> {
  if (path === '') return undefined
  try {
    return await readFile(path)
  } catch (error) {
    throw new ConnectError(`cannot read ${key} ${path}: ${(error as Error).message}`, 'tls', error)
  }
}

function connectError(error: NodeJS.ErrnoException, duringTls: boolean, host: string): ConnectError {
  if (error.syscall === 'getaddrinfo')
    return new ConnectError(`the name ${host} does not resolve (${error.code})`, 'dns', error)
  // Happy eyeballs: one error for each address stands behind an empty message.
  const causes = error instanceof AggregateError ? error.errors.map(e => (e as Error).message).join(', ') : ''
  return new ConnectError(
    error.message || causes || error.code || 'unknown',
    duringTls ? 'tls' : 'connect',
    error,
  )
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}
