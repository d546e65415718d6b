// The management API's HTTP server. Every answer, also to a request that is no HTTP, is a document of the API.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { type Heartbeat, startHeartbeat } from '../lib/heartbeat.ts'
import { addressText, parseListenAddress } from '../lib/listen-address.ts'
import { errorText, type Logger, limitRepeats } from '../lib/logger.ts'
import { portHolder } from '../lib/port-holder.ts'
import { ExitCode, StartError } from '../lib/start-error.ts'
import { type Answer, failure, rawAnswer } from './answer.ts'
import { bearerCheck } from './bearer.ts'
import { notFound, probePaths, type Routes, routes } from './routes.ts'
import type { AgentView, Health } from './types.ts'

/** How long the event loop may be stuck before `/healthz` says so. */
export const stuckAfterMs = 10_000

/** The keys of `self_telemetry` that the server follows, spelled as in the file. */
export interface ApiSettings {
  readonly listen: string
  readonly path: string
  readonly auth: {
    readonly enabled: boolean
    readonly bearer_token: string
    readonly bearer_tokens: readonly string[]
    readonly exempt: readonly string[]
  }
  readonly tls: { readonly enabled: boolean }
}

/** Bounds on what a peer may ask for. Times are milliseconds, sizes bytes. */
export interface ApiLimits {
  readonly connections: number
  readonly headerBytes: number
  readonly urlBytes: number
  readonly bodyBytes: number
  readonly headersMs: number
  readonly requestMs: number
  readonly idleMs: number
}

const defaultLimits: ApiLimits = {
  connections: 256,
  headerBytes: 16 * 1024,
  urlBytes: 8 * 1024,
  bodyBytes: 64 * 1024,
  headersMs: 10_000,
  requestMs: 30_000,
  // Longer than the usual scrape interval, so that a scraper keeps its connection.
  idleMs: 75_000,
}

export interface ApiOptions {
  readonly settings: ApiSettings
  readonly view: AgentView
  readonly log: Logger
  readonly limits?: Partial<ApiLimits>
}

export interface Api {
  readonly port: number
  /** The URL of a path, with an address that works from this host. */
  url(path: string): string
  close(): Promise<void>
}

/** Starts to listen. Rejects with a `StartError` when it cannot, or when it was asked for what it cannot guard. */
export async function startApi(options: ApiOptions): Promise<Api> {
  const { settings, view, log } = options
  const limits = { ...defaultLimits, ...options.limits }
  if (settings.tls.enabled) {
    throw new StartError(
      'cannot serve the management API: self_telemetry.tls.enabled is true and TLS is not built in this version; ' +
        'set it to false and listen on 127.0.0.1, or put a TLS proxy before it',
      ExitCode.usage,
    )
  }
  const address = parseListenAddress(settings.listen)
  if (!address) {
    throw new StartError(
      `cannot serve the management API: self_telemetry.listen is "${settings.listen}", and ":19090", "127.0.0.1:19090" or "[::1]:19090" is meant`,
      ExitCode.usage,
    )
  }
  const allowed = guard(settings)
  const heartbeat = startHeartbeat(stuckAfterMs)
  const answerTo = responder(
    routesFor(settings, view, () => judge(heartbeat, view)),
    allowed,
    limits,
    log,
  )
  const server = createServer(
    {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.idleMs,
      connectionsCheckingInterval: Math.min(1000, limits.headersMs),
      // Node's own answer to a missing Host header has no body; `answerTo` looks for it.
      requireHostHeader: false,
    },
    answerTo,
  )
  server.maxConnections = limits.connections
  // Of silence, for a peer that does not read its answer. Longer than the time for a request, which is answered.
  server.timeout = 2 * limits.requestMs
  server.on('checkContinue', answerTo)
  server.on('checkExpectation', (_request, response: ServerResponse) => {
    response.shouldKeepAlive = false
    send(response, failure(417, 'cannot meet the expectation: only 100-continue is known'))
  })
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    end(socket, failure(405, 'cannot CONNECT: this is no proxy', {}, { Allow: 'GET, HEAD, OPTIONS' }))
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => end(socket, parserFailure(error.code)))
  try {
    await listen(server, address, settings.listen)
  } catch (error) {
    heartbeat.stop()
    throw error
  }
  server.on('error', error => log.error('the management API failed', { error }))
  const bound = server.address() as AddressInfo
  const host = ['::', '0.0.0.0'].includes(bound.address) ? '127.0.0.1' : bound.address
  let closing: Promise<void> | undefined
  return {
    port: bound.port,
    url: path => `http://${addressText(host, bound.port)}${path}`,
    close: () => {
      heartbeat.stop()
      closing ??= close(server)
      return closing
    },
  }
}

function routesFor(settings: ApiSettings, view: AgentView, health: () => Health): Routes {
  try {
    return routes(view, settings.path, health)
  } catch (error) {
    throw new StartError(`${errorText(error)}; change self_telemetry.path`, ExitCode.usage)
  }
}

function judge(heartbeat: Heartbeat, view: AgentView): Health {
  const reason = heartbeat.stuck()
  return reason === undefined ? view.health() : { healthy: false, reason }
}

/** Whether a request may be answered: everything but the probes and the exempt paths needs a token when auth is on. */
function guard({ auth }: ApiSettings): (path: string, authorization: string | undefined) => boolean {
  if (!auth.enabled) return () => true
  const tokens = [auth.bearer_token, ...auth.bearer_tokens]
  if (tokens.every(token => token === '')) {
    throw new StartError(
      'cannot serve the management API: self_telemetry.auth.enabled is true and bearer_token is empty; set a token, or enabled: false',
      ExitCode.usage,
    )
  }
  const known = bearerCheck(tokens)
  const open = new Set<string>([...probePaths, ...auth.exempt])
  return (path, authorization) => open.has(path) || known(authorization)
}

type Responder = (request: IncomingMessage, response: ServerResponse) => void

function responder(
  table: Routes,
  allowed: (path: string, authorization: string | undefined) => boolean,
  limits: ApiLimits,
  log: Logger,
): Responder {
  const limited = limitRepeats(log, 60_000)
  const decide = (request: IncomingMessage): Answer => {
    const url = request.url ?? '/'
    if (url.length > limits.urlBytes)
      return failure(414, `cannot read the request: its URL is longer than ${limits.urlBytes} bytes`)
    if (request.headers.host === undefined && request.httpVersion === '1.1')
      return failure(400, 'cannot read the request: HTTP/1.1 needs a Host header')
    const path = pathOf(url)
    if (!allowed(path, request.headers.authorization))
      return failure(401, 'a valid bearer token is needed', {}, { 'WWW-Authenticate': 'Bearer' })
    // RFC 9110 §9.3.7: an asterisk asks of the server as a whole.
    if (path === '*' && request.method === 'OPTIONS') return options('GET, HEAD, OPTIONS')
    const methods = table.get(path)
    if (!methods) return notFound(path)
    const allow = `${Object.keys(methods)
      .map(method => (method === 'GET' ? 'GET, HEAD' : method))
      .join(', ')}, OPTIONS`
    const method = request.method ?? ''
    if (method === 'OPTIONS') return options(allow)
    const handler = methods[method === 'HEAD' ? 'GET' : (method as 'GET' | 'POST')]
    if (!handler)
      return failure(
        405,
        `cannot ${method} ${path}: allowed are ${allow}`,
        { method, path },
        { Allow: allow },
      )
    try {
      return handler({ path, headers: request.headers })
    } catch (error) {
      limited('error', path, 'cannot answer a request of the management API', { path, error })
      return failure(500, `cannot answer ${path}: an internal error, see the agent's log`, { path })
    }
  }
  return (request, response) => {
    const announced = Number(request.headers['content-length'] ?? 0)
    if (announced === 0 && request.headers['transfer-encoding'] === undefined) {
      send(response, decide(request))
      return
    }
    const tooLarge = () => {
      response.shouldKeepAlive = false
      send(response, failure(413, `cannot take the request: its body is over ${limits.bodyBytes} bytes`))
    }
    const waits = request.headers.expect !== undefined
    if (announced > (waits ? limits.bodyBytes : 16 * limits.bodyBytes)) {
      tooLarge()
      return
    }
    if (waits) response.writeContinue()
    discardBody(request, 16 * limits.bodyBytes, size => {
      if (size > limits.bodyBytes) tooLarge()
      else send(response, decide(request))
    })
  }
}

function options(allow: string): Answer {
  return { status: 204, body: Buffer.alloc(0), headers: { Allow: allow } }
}

/**
 * Reads a body to its end and says how long it was, or that it passed `most`. A body that is too long is read on for
 * a while before it is refused: a connection closed on unread bytes is reset, and the peer loses the answer.
 */
function discardBody(request: IncomingMessage, most: number, done: (size: number) => void): void {
  let size = 0
  let over = false
  request.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > most && !over) {
      over = true
      done(size)
    }
  })
  request.on('end', () => over || done(size))
  // The peer went away or broke the framing; 'clientError' answers what can be answered.
  request.on('error', () => undefined)
}

/** The path of a request target in origin form or absolute form (RFC 9112 §3.2), without query. */
function pathOf(url: string): string {
  const from = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*/i, '')
  const end = from.search(/[?#]/)
  const path = end < 0 ? from : from.slice(0, end)
  return path === '' ? '/' : path
}

function send(response: ServerResponse, { status, headers, body }: Answer): void {
  response.writeHead(status, headers)
  response.end(body)
}

function parserFailure(code: string | undefined): Answer {
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

/** Ends a connection with an answer. What the peer still sends is read for a second, or a reset would overtake the answer. */
function end(socket: Duplex, last: Answer): void {
  // The rest of a request that could not be read is an error again.
  if (socket.writableEnded || socket.destroyed) return
  socket.on('error', () => socket.destroy())
  socket.end(rawAnswer(last))
  socket.resume()
  setTimeout(() => socket.destroy(), 1000).unref()
}

function listen(server: Server, address: { host?: string; port: number }, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      const [cause, exitCode] = listenFailure(error, address.port)
      reject(new StartError(`cannot listen on ${text} (self_telemetry.listen): ${cause}`, exitCode, error))
    }
    server.once('error', failed)
    server.listen(address, () => {
      server.off('error', failed)
      resolve()
    })
  })
}

/** Why an address could not be bound, with the mend, for a message. */
export function listenFailure(
  error: NodeJS.ErrnoException,
  port: number,
): readonly [cause: string, exitCode: ExitCode] {
  switch (error.code) {
    case 'EADDRINUSE': {
      const holder = portHolder(port)
      const who = holder ? `${holder.name} (pid ${holder.pid})` : 'another process'
      return [`the port is taken by ${who}; stop it or choose another port`, ExitCode.general]
    }
    case 'EACCES':
      return [`ports below 1024 need root or CAP_NET_BIND_SERVICE; choose another port`, ExitCode.permission]
    case 'EADDRNOTAVAIL':
      return ['the address is none of this host; choose one of `ip address`', ExitCode.general]
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return ['the host name has no address', ExitCode.general]
    default:
      return [error.message, ExitCode.general]
  }
}

/** Lets answers that are being written end, for a second. */
function close(server: Server): Promise<void> {
  return new Promise(resolve => {
    server.close(() => resolve())
    server.closeIdleConnections()
    setTimeout(() => server.closeAllConnections(), 1000).unref()
  })
}
