// Listening sockets of a server, and events on connections that are not requests.

import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { ListenAddress } from '../../foundation/lib/listen-address.ts'
import { type Logger, limitRepeats } from '../../foundation/lib/logger.ts'
import { portHolder } from '../../foundation/lib/port-holder.ts'
import { counted } from '../../foundation/lib/small-tables.ts'
import { ExitCode, StartError } from '../../foundation/lib/start-error.ts'
import { type Answer, type ErrorForm, rawAnswer } from './answer.ts'
import { Connections } from './connections.ts'
import type { Dispatcher } from './dispatch.ts'
import { type Duplicate, openDoors } from './doors.ts'
import { parseInPieces } from './pieces.ts'
import type { TlsMaterial } from './tls-files.ts'

/** Limits for peers. Times are milliseconds, sizes bytes. */
export interface ApiLimits {
  readonly connections: number
  readonly headerBytes: number
  readonly urlBytes: number
  readonly bodyBytes: number
  readonly headersMs: number
  readonly requestMs: number
  readonly idleMs: number
}

export const defaultLimits: ApiLimits = {
  connections: 256,
  headerBytes: 16 * 1024,
  urlBytes: 8 * 1024,
  bodyBytes: 64 * 1024,
  headersMs: 10_000,
  requestMs: 30_000,
  // Longer than the usual scrape interval, so that a scraper keeps its connection.
  idleMs: 75_000,
}

export interface ListenerOptions {
  /** The name of the server in messages: `the management API`. */
  readonly subject: string
  readonly dispatcher: Dispatcher
  readonly limits: ApiLimits
  readonly log: Logger
  /** Requests have full access. */
  readonly admin: boolean
}

/** A server that does not listen yet, with bounded connections and answers to errors. */
export class Listener {
  readonly server: Server
  readonly connections: Connections
  readonly #subject: string
  readonly #log: ReturnType<typeof limitRepeats>
  #tls: TlsServer | undefined
  #failedHandshakes = 0
  #admits: ((socket: TLSSocket) => boolean) | undefined
  #closing: Promise<void> | undefined
  #closeDoors: (() => void) | undefined

  private constructor(server: Server, { subject, dispatcher, limits, admin, log }: ListenerOptions) {
    this.server = server
    this.#subject = subject
    this.connections = counted(new Connections(limits.connections))
    this.#log = limitRepeats(log, 60_000)
    const serve = (request: IncomingMessage, response: ServerResponse) =>
      dispatcher.serve(request, response, this.connections, admin)
    server.on('request', serve)
    server.on('checkContinue', serve)
    server.on('checkExpectation', serve)
    const end = (socket: Duplex, last: Answer) => {
      dispatcher.count(last.status)
      endWith(socket, last)
    }
    // An unreadable request may follow requests whose answers come first; then it ends the connection.
    const leaves = (socket: Duplex): boolean => {
      const connection = this.connections.of(socket)
      if (!connection?.working) return false
      connection.leaving = true
      return true
    }
    server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
      // The runtime has handed over the connection, and no longer handles its errors or data.
      socket.removeAllListeners('data')
      const why = 'cannot CONNECT: this is not a proxy'
      if (!leaves(socket)) {
        end(socket, dispatcher.failure(405, why, {}, { Allow: 'GET, HEAD, POST, OPTIONS' }))
        return
      }
      socket.on('error', () => socket.destroy())
      socket.resume()
    })
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
      if (leaves(socket)) return
      // The handshake failed, or the connection was closed to make room.
      if (this.connections.of(socket) === undefined) socket.destroy()
      // The rest of an unreadable request is another error.
      else if (!socket.writableEnded && !socket.destroyed)
        end(socket, parserFailure(dispatcher.failure, error.code))
    })
    // Closes peers that do not read their answer. Longer than the time for a request, which gets an answer instead.
    server.timeout = 2 * limits.requestMs
    server.on('timeout', (socket: Socket) => {
      const isAtWork = this.connections.of(socket)?.working === true
      // A followed document may be idle for long.
      if (!isAtWork || socket.writableLength > 0) socket.destroy()
    })
  }

  static plain(options: ListenerOptions): Listener {
    const listener = new Listener(createHttpServer(serverOptions(options.limits)), options)
    listener.server.on('connection', (socket: Socket) => {
      options.dispatcher.accepted()
      listener.connections.admit(socket)
      parseInPieces(socket)
    })
    return listener
  }

  static async tls(options: ListenerOptions, material: TlsMaterial): Promise<Listener> {
    // Loaded on demand: it takes memory, and most hosts do not use it.
    const { createServer } = await import('node:https')
    const { limits } = options
    const server = createServer({ ...serverOptions(limits), handshakeTimeout: limits.headersMs })
    const listener = new Listener(server, options)
    listener.#tls = server
    listener.#watchHandshakes(() => options.dispatcher.accepted())
    listener.setTls(material)
    return listener
  }

  get failedHandshakes(): number {
    return this.#failedHandshakes
  }

  /** Uses these certificates for every later connection. */
  setTls(material: TlsMaterial): void {
    const { clients, ...context } = material
    this.#admits = clients?.admits
    this.#tls?.setSecureContext(context)
    // Read for each connection, as `createServer` takes them; `#watchHandshakes` does not rely on it.
    Object.assign(this.server, {
      requestCert: clients !== undefined,
      rejectUnauthorized: clients?.verified === true,
    })
  }

  /** Accepts more than one connection per turn of the loop. The server must listen already. */
  openDoors(duplicate: Duplicate): void {
    this.#closeDoors = openDoors(this.server, duplicate, mostWaiting)
  }

  /** Lets answers in progress finish, for up to a second. Later calls wait for the first. */
  close(): Promise<void> {
    this.#closing ??= new Promise(resolve => {
      this.#closeDoors?.()
      const timer = setTimeout(() => this.connections.destroyAll(), 1000)
      this.server.close(() => {
        clearTimeout(timer)
        resolve()
      })
      this.connections.finish()
      this.server.closeIdleConnections()
    })
    return this.#closing
  }

  #watchHandshakes(accepted: () => void): void {
    const { server, connections } = this
    const waiting = new Map<string, Socket>()
    const keyOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
    server.on('connection', (socket: Socket) => {
      const key = keyOf(socket)
      waiting.set(key, socket)
      socket.once('close', () => {
        if (waiting.get(key) === socket) waiting.delete(key)
      })
      accepted()
      connections.admit(socket)
    })
    server.on('secureConnection', (socket: TLSSocket) => {
      const key = keyOf(socket)
      const below = waiting.get(key)
      waiting.delete(key)
      if (below === undefined || this.#admits?.(socket) === false) socket.destroy()
      else connections.replace(below, socket)
      parseInPieces(socket)
    })
    server.on('tlsClientError', (error: NodeJS.ErrnoException) => {
      this.#failedHandshakes++
      const code = error.code ?? 'unknown'
      this.#log('debug', code, `a TLS handshake with ${this.#subject} failed`, { code })
    })
  }
}

function serverOptions(limits: ApiLimits): ServerOptions {
  return {
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.idleMs,
    connectionsCheckingInterval: Math.min(1000, limits.headersMs),
    // Node's own answer to a missing Host header has no body; the dispatcher looks for it.
    requireHostHeader: false,
  }
}

function parserFailure(failure: ErrorForm, code: string | undefined): Answer {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return failure(431, 'cannot read the request: its headers are too long')
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return failure(413, 'cannot read the request: its chunk extensions are too long')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return failure(408, 'cannot read the request: it did not arrive in time')
    default:
      return failure(400, 'cannot read the request: it is not valid HTTP')
  }
}

/** Ends a connection with an answer. Input is read for another second: a reset would overtake the answer. */
function endWith(socket: Duplex, last: Answer): void {
  socket.on('error', () => socket.destroy())
  socket.end(rawAnswer(last))
  socket.resume()
  setTimeout(() => socket.destroy(), 1000).unref()
}

/**
 * Backlog of connections to accept. A rejected client retries after 1, 3, 7 and 15 s, and any user can fill a few
 * hundred entries; the kernel limits this to net.core.somaxconn (usually 4,096).
 */
const mostWaiting = 65_535

/** Listens on an address; `text` is its form in the configuration at `key`. Rejects with a `StartError`. */
export function listen(server: Server, address: ListenAddress, text: string, key: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      const [cause, exitCode] = listenFailure(error, address.port)
      reject(new StartError(`cannot listen on ${text} (${key}): ${cause}`, exitCode, error))
    }
    server.once('error', failed)
    server.listen({ ...address, backlog: mostWaiting }, () => {
      server.off('error', failed)
      resolve()
    })
  })
}

/** Listens on an open socket. */
export function listenOnDescriptor(server: Server, fd: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: Error) =>
      reject(new StartError(`cannot listen on descriptor ${fd}: ${error.message}`, ExitCode.general, error))
    server.once('error', failed)
    server.listen({ fd, backlog: mostWaiting }, () => {
      server.off('error', failed)
      resolve()
    })
  })
}

/** Message and hint for an address that could not be bound. */
function listenFailure(
  error: NodeJS.ErrnoException,
  port: number,
): readonly [cause: string, exitCode: ExitCode] {
  switch (error.code) {
    case 'EADDRINUSE': {
      const holder = portHolder(port)
      const who = holder ? `${holder.name} (pid ${holder.pid})` : 'another process'
      return [`the port is in use by ${who}; stop it or choose another port`, ExitCode.general]
    }
    case 'EACCES':
      return [`ports below 1024 need root or CAP_NET_BIND_SERVICE; choose another port`, ExitCode.permission]
    case 'EADDRNOTAVAIL':
      return ['the address is not one of this host; choose one from `ip address`', ExitCode.general]
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return ['the host name has no address', ExitCode.general]
    default:
      return [error.message, ExitCode.general]
  }
}
