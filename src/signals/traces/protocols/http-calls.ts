import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import type { Authority } from '../../../foundation/lib/http-authority.ts'
import type { RequestHead } from '../../../foundation/lib/http-head.ts'
import { Interner } from '../../../foundation/lib/interner.ts'
import { small } from '../../../foundation/lib/small-tables.ts'
import { UrlBytes } from '../../../foundation/lib/url-bytes.ts'
import type { Connection } from '../../../foundation/model/connection.ts'
import type { ProtocolOptions, RouteOf } from '../../../foundation/model/protocol.ts'
import { SpanKind } from '../../../foundation/model/span.ts'
import type { Operation } from '../../../foundation/model/stream.ts'
import { httpClient, httpServer } from './durations.ts'
import { brokenOff } from './failure.ts'

/** RFC 9110, PATCH (RFC 5789) and QUERY. */
const standardMethods = [
  'CONNECT',
  'DELETE',
  'GET',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'POST',
  'PUT',
  'QUERY',
  'TRACE',
]

/** Span name if the method is unknown. */
const otherMethod = 'HTTP'

/** Paths to which OTLP over HTTP is posted. */
const telemetryPaths = new Set(['/v1/traces', '/v1/metrics', '/v1/logs', '/v1development/profiles'])

/**
 * Describes an HTTP operation by the conventions 1.44, for any version of HTTP. `error.type` is the status code as text
 * (5xx for a server, 4xx and 5xx for a client) or, if the exchange broke off, the result of `brokenOff`, `no_response`,
 * or `_OTHER`.
 */
export class HttpCalls {
  readonly #route: RouteOf
  readonly #knownMethods: ReadonlySet<string>
  #head!: RequestHead
  #bytes!: Buffer
  /** Hosts, methods and user agents recur far more often than URLs, so they are kept apart from them. */
  readonly #words = small(new Interner({ slots: 2_048, maxLength: 256 }))
  readonly #urls = small(new Interner({ slots: 4_096, maxLength: 512 }))
  /** Twice the captured maximum of a message, because redacting makes short values longer. */
  readonly #url = new UrlBytes(16_384)
  /** Span names by method, then by route. */
  readonly #names = new Map<string, BoundedMap<string, string>>()
  readonly #statusTexts: string[] = []

  constructor(options: ProtocolOptions) {
    this.#route = options.route
    this.#knownMethods = new Set(options.knownMethods ?? standardMethods)
    for (const method of [...this.#knownMethods, otherMethod])
      this.#names.set(method, small(new BoundedMap(1_024)))
  }

  /**
   * Fills the operation's call, which is cleared. `head` was parsed from `bytes`. `failure` is the error if neither the
   * status nor the connection shows it; `unseen`: there may have been a response that was not seen. False, with nothing
   * filled in, if there are too few bytes.
   */
  describe(head: RequestHead, bytes: Buffer, operation: Operation, failure = '', unseen = false): boolean {
    const { call } = operation
    const { server } = operation.connection
    this.#head = head
    this.#bytes = bytes
    const sent = this.#words.intern(bytes, head.method.start, head.method.end)
    const known = this.#knownMethods.has(sent)
    // In a truncated request line, a known method is the only evidence of HTTP.
    if (!known && head.version === '') return false
    const method = known ? sent : '_OTHER'
    call.attributes.add('http.request.method', method)
    if (!known && sent !== '_OTHER') call.attributes.add('http.request.method_original', sent)
    call.dimensions.add('http.request.method', method)
    call.kind = server ? SpanKind.server : SpanKind.client
    call.signalType = 'http'
    call.duration = server ? httpServer : httpClient
    call.path = this.#pathOf(bytes)
    call.error = this.#errorType(operation, failure, unseen)
    call.telemetry = method === 'POST' && this.#isTelemetry(bytes, call.path)
    if (server) this.#describeServer(operation, known ? method : otherMethod)
    else this.#describeClient(operation, known ? method : otherMethod)
    return true
  }

  #describeServer(operation: Operation, nameMethod: string): void {
    const head = this.#head
    const bytes = this.#bytes
    const { connection, call } = operation
    const { attributes, dimensions } = call
    const https = (head.forwarded.scheme || head.scheme).startsWith('https')
    const scheme = https ? 'https' : 'http'
    const route = call.path.startsWith('/') ? this.#route(operation, call.path) : ''
    call.name = this.#spanName(nameMethod, route)
    attributes.add('url.scheme', scheme)
    dimensions.add('url.scheme', scheme)
    if (call.path !== '') attributes.add('url.path', call.path)
    if (!head.query.empty) {
      this.#url.clear()
      this.#url.addQuery(bytes, head.query.start, head.query.end)
      attributes.add('url.query', this.#urls.intern(this.#url.bytes, 0, this.#url.length))
    }
    if (route !== '') {
      attributes.add('http.route', route)
      dimensions.add('http.route', route)
    }
    const server = givenOf(head.forwarded.host, head.target, head.host)
    if (server !== undefined) {
      attributes.add('server.address', this.#words.intern(bytes, server.host.start, server.host.end))
      attributes.add('server.port', server.port || (https ? 443 : 80))
    } else if (connection.localAddress !== '') {
      attributes.add('server.address', connection.localAddress)
      if (connection.localPort !== 0) attributes.add('server.port', connection.localPort)
    }
    const { client } = head.forwarded
    if (!client.empty) attributes.add('client.address', this.#words.intern(bytes, client.start, client.end))
    else if (connection.peerAddress !== '') attributes.add('client.address', connection.peerAddress)
    const { userAgent } = head
    if (!userAgent.empty)
      attributes.add('user_agent.original', this.#words.intern(bytes, userAgent.start, userAgent.end))
    this.#describeOutcome(operation)
  }

  #describeClient(operation: Operation, nameMethod: string): void {
    const head = this.#head
    const { connection, call } = operation
    const { attributes, dimensions } = call
    const server = givenOf(head.target, head.host)
    let address = connection.peerAddress
    let port = connection.peerPort
    if (server !== undefined) {
      address = this.#words.intern(this.#bytes, server.host.start, server.host.end)
      port = server.port || (head.scheme === 'https://' ? 443 : 80)
    }
    call.name = nameMethod
    attributes.add('server.address', address)
    attributes.add('server.port', port)
    attributes.add('url.full', this.#fullUrl(connection, server))
    dimensions.add('server.address', address)
    dimensions.add('server.port', port)
    this.#describeOutcome(operation)
  }

  /** Sets what both sides have in common. */
  #describeOutcome(operation: Operation): void {
    const { connection, call, status } = operation
    const { attributes, dimensions } = call
    if (status !== 0) {
      attributes.add('http.response.status_code', status)
      dimensions.add('http.response.status_code', status)
    }
    if (call.error !== '') {
      attributes.add('error.type', call.error)
      dimensions.add('error.type', call.error)
    }
    if (this.#head.version !== '') {
      attributes.add('network.protocol.version', this.#head.version)
      dimensions.add('network.protocol.version', this.#head.version)
    }
    if (connection.peerAddress !== '') {
      attributes.add('network.peer.address', connection.peerAddress)
      if (connection.peerPort !== 0) attributes.add('network.peer.port', connection.peerPort)
    }
    attributes.add('http.request.body.size', operation.requestBodyBytes)
    if (status !== 0) attributes.add('http.response.body.size', operation.responseBodyBytes)
  }

  /** The path; `/` for an absolute URL that has none, '' for CONNECT. */
  #pathOf(bytes: Buffer): string {
    const { path, hasPath } = this.#head
    if (path.empty) return hasPath ? '/' : ''
    return this.#urls.intern(bytes, path.start, path.end)
  }

  #fullUrl(connection: Connection, server: Authority | undefined): string {
    const url = this.#url
    const head = this.#head
    const bytes = this.#bytes
    url.clear()
    url.addText(head.scheme)
    if (server === undefined) {
      this.#addPeer(connection)
    } else {
      if (server.hasUser) url.addText('REDACTED:REDACTED@')
      url.addBytes(bytes, server.whole.start, server.whole.end)
    }
    // `OPTIONS *` concerns the server as a whole: its URL has no path (RFC 9112, section 3.2.4).
    if (bytes[head.path.start] !== 0x2a) url.addBytes(bytes, head.path.start, head.path.end)
    if (!head.query.empty) {
      url.addText('?')
      url.addQuery(bytes, head.query.start, head.query.end)
    }
    return this.#urls.intern(url.bytes, 0, url.length)
  }

  /** The other end of the connection as an authority, for a client that sent no host. */
  #addPeer({ peerAddress, peerPort }: Connection): void {
    const url = this.#url
    const bracketed = peerAddress.includes(':')
    if (bracketed) url.addText('[')
    url.addText(peerAddress)
    if (bracketed) url.addText(']')
    if (peerPort === 0 || peerPort === (this.#head.scheme === 'https://' ? 443 : 80)) return
    url.addText(':')
    url.addNumber(peerPort)
  }

  #errorType(operation: Operation, failure: string, unseen: boolean): string {
    const { connection, status, errno, aborted, responseNs } = operation
    if (status >= (connection.server ? 500 : 400)) return this.#statusText(status)
    if (failure !== '') return failure
    if (errno !== 0 || aborted) return brokenOff(errno)
    return status === 0 && responseNs === 0 && !unseen ? 'no_response' : ''
  }

  #statusText(status: number): string {
    if (status > 999) return '_OTHER'
    let text = this.#statusTexts[status]
    if (text === undefined) {
      text = String(status)
      this.#statusTexts[status] = text
    }
    return text
  }

  #spanName(method: string, route: string): string {
    const names = this.#names.get(method)
    if (route === '' || names === undefined) return method
    let name = names.get(route)
    if (name === undefined) {
      name = `${method} ${route}`
      names.set(route, name)
    }
    return name
  }

  /**
   * True for the two encodings of OTLP over HTTP, ignoring parameters after a `;`. Receivers may use a path prefix
   * (OTEL_EXPORTER_OTLP_ENDPOINT); JSON posted to such paths need not be telemetry.
   */
  #isTelemetry(bytes: Buffer, path: string): boolean {
    const { contentType } = this.#head
    if (contentType.begins(bytes, 'application/x-protobuf'))
      return telemetryPaths.has(path) || telemetryPaths.has(path.slice(secondLastSlash(path)))
    return telemetryPaths.has(path) && contentType.begins(bytes, 'application/json')
  }
}

/** Offset of the last two segments of a path. */
function secondLastSlash(path: string): number {
  return Math.max(0, path.lastIndexOf('/', path.lastIndexOf('/') - 1))
}

/** The first one that has a host. */
function givenOf(first: Authority, second: Authority, third?: Authority): Authority | undefined {
  if (!first.host.empty) return first
  if (!second.host.empty) return second
  return third === undefined || third.host.empty ? undefined : third
}
