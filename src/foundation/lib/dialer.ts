import { type LookupAddress, lookup as lookupName } from 'node:dns'
import { readFile } from 'node:fs/promises'
import { connect, isIP, type LookupFunction, type OnReadOpts, type Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { hostPort } from './host-port.ts'
import type { ProxyChoice, ProxyTarget } from './proxy.ts'

/** How to verify the server and authenticate to it. Files are PEM, read at every connect, as they may rotate. */
export interface TlsOptions {
  /** '': the runtime's roots. */
  readonly caFile: string
  /** Client certificate for mutual TLS, with `keyFile`. '': none. */
  readonly certFile: string
  readonly keyFile: string
  /** Name that the server's certificate must have. '': the host of the connection. */
  readonly serverName: string
  readonly insecureSkipVerify: boolean
}

export interface DialerOptions {
  readonly host: string
  readonly port: number
  /** A Unix socket instead of host and port. '' or undefined: none. */
  readonly socketPath?: string
  /** Undefined: without TLS. */
  readonly tls: TlsOptions | undefined
  /** For the whole connection, including name resolution, proxy and TLS. */
  readonly connectTimeoutMs: number
  /** Called at every connect. Undefined: no proxy. */
  readonly proxy?: ProxyChoice | undefined
  /** Resolves names; default: the system's resolver. */
  readonly lookup?: LookupFunction
  /** Read buffer; used only for connections without TLS and without a tunnel. */
  readonly onread?: OnReadOpts
}

/** A connection failed. `type` is the stage. */
export class ConnectError extends Error {
  readonly type: 'connect' | 'dns' | 'tls'

  constructor(message: string, type: 'connect' | 'dns' | 'tls', cause?: unknown) {
    super(message, { cause })
    this.name = 'ConnectError'
    this.type = type
  }
}

/**
 * Above a round trip around the world, so that a far address is not abandoned for the next one. Node's default is 250
 * ms.
 */
const addressTimeoutMs = 1000
const maxProxyAnswerBytes = 16 * 1024

/**
 * Connects to one server. Names are resolved at every connect; addresses take turns in being first, within the family
 * order that the system prefers, and all are tried (RFC 8305).
 */
export class Dialer {
  readonly #options: DialerOptions
  readonly #protocols: readonly string[]
  readonly #dialing = new Set<Attempt>()
  /** Agents that start together must not all begin with the same address. */
  #turn = Math.floor(Math.random() * 1024)
  #closed = false

  /** @param protocols that TLS offers (ALPN) */
  constructor(options: DialerOptions, protocols: readonly string[]) {
    this.#options = options
    this.#protocols = protocols
  }

  /** Resolves with a connection that is ready for its first byte. Rejects with a `ConnectError`. */
  async dial(): Promise<Socket> {
    const { tls, host } = this.#options
    const secure = tls && {
      ...(await tlsOptions(tls, tls.serverName || host)),
      ALPNProtocols: [...this.#protocols],
    }
    if (this.#closed) throw new ConnectError('the client is closed', 'connect')
    const attempt = new Attempt(this.#options, rotating(this.#options.lookup ?? lookupName, this.#turn++))
    this.#dialing.add(attempt)
    try {
      return await attempt.run(secure)
    } finally {
      this.#dialing.delete(attempt)
    }
  }

  /** Aborts running attempts and rejects new ones. */
  close(): void {
    this.#closed = true
    for (const attempt of this.#dialing) attempt.end('the client is closed')
  }
}

/** One connection attempt: TCP, a proxy's tunnel if there is one, TLS. */
class Attempt {
  readonly #options: DialerOptions
  readonly #lookup: LookupFunction
  #socket: Socket | undefined

  constructor(options: DialerOptions, lookup: LookupFunction) {
    this.#options = options
    this.#lookup = lookup
  }

  end(reason: string): void {
    this.#socket?.destroy(new Error(reason))
  }

  async run(secure: ConnectionOptions | undefined): Promise<Socket> {
    const { host, port, connectTimeoutMs } = this.#options
    const timer = setTimeout(() => this.end(`no connection within ${connectTimeoutMs} ms`), connectTimeoutMs)
    try {
      const proxy = this.#options.proxy?.(host, port, secure !== undefined)
      let socket = proxy
        ? await this.#tunnel(proxy)
        : await this.#connect({ host, port }, secure ? undefined : this.#options.onread)
      if (secure) socket = await this.#secure(socket, secure)
      socket.setNoDelay(true)
      return socket
    } catch (error) {
      this.#socket?.destroy()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  async #connect(place: { host: string; port: number }, onread?: OnReadOpts): Promise<Socket> {
    const reading = onread && { onread }
    const { socketPath: path = '' } = this.#options
    const socket =
      path === ''
        ? connect({
            ...place,
            ...reading,
            lookup: this.#lookup,
            autoSelectFamily: true,
            autoSelectFamilyAttemptTimeout: addressTimeoutMs,
          })
        : connect({ path, ...reading })
    this.#socket = socket
    await reached(socket, 'connect', error => tcpError(error, place.host))
    return socket
  }

  async #secure(socket: Socket, options: ConnectionOptions): Promise<Socket> {
    // Loaded with the first connection that needs it, since it takes 4 MB.
    const { connect: connectTls } = process.getBuiltinModule?.('node:tls') ?? (await import('node:tls'))
    let safe: Socket
    try {
      safe = connectTls({ ...options, socket })
    } catch (error) {
      // During rotation, certificate and key may briefly not match.
      throw new ConnectError(`cannot use cert_file with key_file: ${faultText(error as Error)}`, 'tls', error)
    }
    this.#socket = safe
    await reached(safe, 'secureConnect', error => new ConnectError(faultText(error), 'tls', error))
    return safe
  }

  async #tunnel(proxy: ProxyTarget): Promise<Socket> {
    const { host, port } = this.#options
    const through = `through the proxy ${hostPort(proxy.host, proxy.port)}: `
    try {
      let socket = await this.#connect({ host: proxy.host, port: proxy.port })
      if (proxy.secure) socket = await this.#secure(socket, serverOptions(proxy.host))
      await askForTunnel(socket, hostPort(host, port), proxy)
      return socket
    } catch (error) {
      const { type = 'connect', message } = error as ConnectError
      throw new ConnectError(through + message, type, error)
    }
  }
}

function rotating(resolve: typeof lookupName | LookupFunction, turn: number): LookupFunction {
  return (host, options, callback) =>
    (resolve as LookupFunction)(host, { ...options, all: true }, (error, found) => {
      const addresses = Array.isArray(found) ? rotated(found, turn) : []
      const [first] = addresses
      if (error || options.all || !first) callback(error, addresses)
      else callback(null, first.address, first.family)
    })
}

/** Rotates the addresses of each family by `turn`. */
function rotated(addresses: readonly LookupAddress[], turn: number): LookupAddress[] {
  const places = new Map<number, LookupAddress[]>()
  for (const address of addresses) {
    const family = places.get(address.family)
    if (family) family.push(address)
    else places.set(address.family, [address])
  }
  return [...places.values()].flatMap(family => {
    const first = turn % family.length
    return [...family.slice(first), ...family.slice(0, first)]
  })
}

/** Resolves with the event, rejects if the socket ends before it. */
function reached(socket: Socket, event: string, failure: (error: Error) => ConnectError): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: Error): void => reject(failure(error))
    const closed = (): void => failed(new Error('the other side closed the connection'))
    socket.once('error', failed)
    socket.once('close', closed)
    socket.once(event, () => {
      socket.off('error', failed)
      socket.off('close', closed)
      resolve()
    })
  })
}

/** Requests a tunnel; later bytes remain on the socket. */
function askForTunnel(socket: Socket, target: string, proxy: ProxyTarget): Promise<void> {
  return new Promise((resolve, reject) => {
    let answer: Buffer = Buffer.alloc(0)
    const finish = (settle: () => void): void => {
      socket.off('readable', read)
      socket.off('error', fail)
      socket.off('close', closed)
      settle()
    }
    const fail = (error: Error): void =>
      finish(() => reject(new ConnectError(faultText(error), 'connect', error)))
    const closed = (): void => fail(new Error('it closed the connection without an answer'))
    // Read explicitly, since a flowing socket would lose bytes before its next reader attaches.
    const read = (): void => {
      const chunk: Buffer | null = socket.read()
      if (chunk === null) return
      answer = Buffer.concat([answer, chunk])
      const end = answer.indexOf('\r\n\r\n')
      if (end < 0) {
        if (answer.length > maxProxyAnswerBytes) fail(new Error('its answer is not HTTP'))
        return
      }
      const fault = tunnelFault(answer.toString('latin1', 0, Math.min(end, 256)), target, proxy)
      if (fault === '') finish(() => resolve(leave(socket, answer.subarray(end + 4))))
      else fail(new Error(fault))
    }
    socket.on('readable', read)
    socket.once('error', fail)
    socket.once('close', closed)
    const authorization = proxy.authorization && `Proxy-Authorization: ${proxy.authorization}\r\n`
    socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${authorization}\r\n`)
  })
}

/** Puts back bytes after the proxy's response: the server may send first. */
function leave(socket: Socket, rest: Buffer): void {
  if (rest.length > 0) socket.unshift(rest)
}

/** Why the response opens no tunnel; '' if it does. */
function tunnelFault(head: string, target: string, { authorization, variable }: ProxyTarget): string {
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1]
  if (status === undefined) return 'its answer is not HTTP'
  if (status.startsWith('2')) return ''
  if (status === '407')
    return authorization
      ? `it rejects user and password (407): correct them in ${variable}`
      : `it requires a user and a password (407): add them to ${variable}`
  return `it does not open a tunnel to ${target} (HTTP ${status})`
}

async function tlsOptions(tls: TlsOptions, name: string): Promise<ConnectionOptions> {
  const [ca, cert, key] = await Promise.all([
    readPem('ca_file', tls.caFile),
    readPem('cert_file', tls.certFile),
    readPem('key_file', tls.keyFile),
  ])
  if (ca && !ca.includes('-----BEGIN '))
    throw new ConnectError(`cannot use ca_file ${tls.caFile}: it contains no PEM certificate`, 'tls')
  return {
    ...serverOptions(name),
    rejectUnauthorized: !tls.insecureSkipVerify,
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
  }
}

/**
 * An address goes into `host`, because SNI allows only names (RFC 6066, section 3); the certificate is checked for
 * either.
 */
function serverOptions(name: string): ConnectionOptions {
  return { minVersion: 'TLSv1.2', host: name, ...(!isIP(name) && { servername: name }) }
}

async function readPem(key: string, path: string): Promise<Buffer | undefined> {
  if (path === '') return undefined
  try {
    return await readFile(path)
  } catch (error) {
    throw new ConnectError(`cannot read ${key} ${path}: ${(error as Error).message}`, 'tls', error)
  }
}

function tcpError(error: NodeJS.ErrnoException, host: string): ConnectError {
  if (error.syscall === 'getaddrinfo')
    return new ConnectError(`the name ${host} does not resolve (${error.code})`, 'dns', error)
  return new ConnectError(faultText(error), 'connect', error)
}

type SocketError = NodeJS.ErrnoException & { readonly reason?: unknown }

/** A connection error in one line for people, with a hint about `ca_file` if it may help. */
export function faultText(error: SocketError): string {
  const text = bareFaultText(error)
  return unknownIssuers.has(error.code ?? '') ? `${text}; check that ca_file contains its CA` : text
}

/** The same without the hint, for callers without a key of this name. */
export function bareFaultText(error: SocketError): string {
  // Happy eyeballs: an empty message with one error per address.
  const causes = error instanceof AggregateError ? error.errors.map(e => (e as Error).message).join(', ') : ''
  const { code = '' } = error
  // OpenSSL's message contains source lines around the reason.
  if (/^ERR_O?SSL_/.test(code) && typeof error.reason === 'string') return `${error.reason} (${code})`
  if (unknownIssuers.has(code)) return error.message.split(';', 1)[0]!
  return error.message || causes || code || 'unknown'
}

/** Node appends hints for programmers to these. */
const unknownIssuers = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])
