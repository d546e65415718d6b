// From a request to its answer: the checks in order, the operation, the counters.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Logger, limitRepeats } from '../../foundation/lib/logger.ts'
import { type Answer, type ErrorForm, headersOnly, noContent } from './answer.ts'
import { bodyFault, bodyObject, readBody } from './body.ts'
import type { BrowserKey } from './browser-key.ts'
import { type Connections, requestBytes } from './connections.ts'
import { Cors, type CorsSettings } from './cors.ts'
import { Exchange } from './exchange.ts'
import { Followers } from './follow.ts'
import { type Arrival, Guard, type GuardSettings, type PeerUser } from './guard.ts'
import { HostNames } from './host-names.ts'
import { allowOf, operationTable, type Route, type Routes, readParameters } from './operation.ts'
import { RateLimit } from './rate-limit.ts'
import { Turns } from './turns.ts'

/** Settings that may change between two requests. */
export interface PolicySettings extends GuardSettings {
  readonly debug: boolean
  readonly cors: CorsSettings
  /** Accepted names of this host, besides its own. */
  readonly allowed_hosts: readonly string[]
  readonly rate_limit: { readonly enabled: boolean; readonly requests_per_second: number }
}

export interface Policy {
  readonly debug: boolean
  readonly guard: Guard
  readonly cors: Cors
  readonly rateLimit: RateLimit | undefined
}

/** A request that was answered. */
export interface Answered {
  readonly method: string
  /** The operation's path, '' if there is none. */
  readonly route: string
  readonly status: number
  readonly seconds: number
  /** Microseconds since the epoch. */
  readonly startUs: number
}

export interface DispatcherOptions {
  /** The name of the server in messages: `the management API`. */
  readonly subject: string
  readonly operations: readonly Route[]
  /** Answers paths without an operation; if absent, those are errors. */
  readonly fallback?: Route
  readonly failure: ErrorForm
  readonly settings: PolicySettings
  readonly arrival: Arrival
  /** Current names of this host. If absent, any name is accepted. */
  readonly ownNames?: () => Iterable<string>
  /** If absent, all clients are unknown and may use `open` operations only. */
  readonly people?: People
  readonly urlBytes: number
  readonly bodyBytes: number
  readonly log: Logger
  readonly observe: ((request: Answered) => void) | undefined
}

/** Identification of clients without a token. */
export interface People {
  readonly peerUser: PeerUser
  /** Lets browsers in. */
  readonly key: BrowserKey | undefined
}

/** Maximum number of concurrent expensive requests and of concurrent changes. */
const mostCostly = 8
const mostPosts = 64
/** `Retry-After` of requests above that limit. */
const retryAfterSeconds = '5'

/** Hint for other users. */
const asOthers =
  'use sudo, open the link that "sudo svc ui" prints, or set self_telemetry.auth and send its token'

const nothing = Buffer.alloc(0)
const serverMethods = 'GET, HEAD, POST, OPTIONS'

export class Dispatcher {
  /** Answers by status. */
  readonly answered = new Map<number, number>()
  readonly refused = { unauthorized: 0, forbidden: 0, rate_limited: 0, pipelined: 0 }
  readonly failure: ErrorForm
  readonly #all: Routes
  /** Without the operations of debug mode. */
  readonly #plain: Routes
  readonly #open: readonly string[]
  readonly #probes: ReadonlySet<string>
  readonly #options: DispatcherOptions
  readonly #log: ReturnType<typeof limitRepeats>
  readonly #followers: Followers
  readonly #turns = new Turns()
  #policy: Policy
  #costly = 0
  #posts = 0

  /** Throws a readable error if two operations share a path and method, or tokens are required but not set. */
  constructor(options: DispatcherOptions) {
    const { operations, settings, log } = options
    this.#options = options
    this.failure = options.failure
    this.#all = operationTable(operations)
    this.#plain = operationTable(operations.filter(({ debug }) => !debug))
    this.#open = operations.filter(({ access }) => access === 'open').map(({ path }) => path)
    this.#probes = new Set(operations.filter(({ tag }) => tag === 'probes').map(({ path }) => path))
    this.#log = limitRepeats(log, 60_000)
    this.#followers = new Followers(error =>
      this.#log('error', 'follow', `an answer of ${options.subject} ended early`, { error }),
    )
    this.#policy = this.policy(settings)
  }

  /** Prepares settings for `adopt`. Throws as the constructor does. */
  policy({ debug, auth, admin, allowed_hosts, cors: corsSettings, rate_limit }: PolicySettings): Policy {
    const cors = new Cors(corsSettings)
    const { ownNames, people } = this.#options
    const names = ownNames && new HostNames(ownNames(), allowed_hosts)
    const { key, peerUser } = people ?? {}
    const guard = new Guard({ settings: { auth, admin }, cors, open: this.#open, names, key, peerUser })
    const { enabled, requests_per_second } = rate_limit
    // Clients keep their buckets: a reload does not reset the rate limit.
    const before = this.#policy?.rateLimit
    const rateLimit = !enabled
      ? undefined
      : before?.requestsPerSecond === requests_per_second
        ? before
        : new RateLimit(requests_per_second)
    return { debug, guard, cors, rateLimit }
  }

  /** A connection was accepted. */
  accepted(): void {
    this.#turns.accepted()
  }

  adopt(policy: Policy): void {
    this.#policy = policy
  }

  /** Answers a request. Never throws. `admin`: it came over the admin socket. */
  serve(request: IncomingMessage, response: ServerResponse, connections: Connections, admin: boolean): void {
    const connection = connections.of(request.socket)
    if (connection === undefined) {
      request.destroy()
      return
    }
    if (connection.full) {
      this.refused.pipelined++
      connection.socket.destroy()
      return
    }
    if (connection.ended) {
      connection.queue(response, requestBytes)
      return
    }
    connections.used(connection)
    const exchange = new Exchange(request, response, connection, admin)
    let refusal: Answer | undefined
    try {
      refusal = this.#refusal(exchange)
    } catch (error) {
      refusal = this.#failed(exchange, error)
    }
    const { headers } = request
    const length = headers['content-length']
    if (headers['transfer-encoding'] === undefined && (length === undefined || length === '0'))
      this.#finish(exchange, refusal ?? this.#lacksBody(exchange))
    else this.#receive(exchange, refusal, Number(length ?? 0))
  }

  /** Counts an answer; those to unreadable requests are counted elsewhere. */
  count(status: number): void {
    this.answered.set(status, (this.answered.get(status) ?? 0) + 1)
  }

  /** The answer if no operation may serve the request; undefined if one may, and it was found. */
  #refusal(exchange: Exchange): Answer | undefined {
    const { request, path, admin } = exchange
    const { arrival, fallback } = this.#options
    const { failure } = this
    const { cors, guard, debug } = this.#policy
    const { method = '', headers } = request
    exchange.guard = guard
    const unread = this.#overLimit(exchange) ?? this.#malformed(request)
    if (unread !== undefined) return unread
    const methods = (debug ? this.#all : this.#plain).get(path)
    if (cors.enabled && method === 'OPTIONS') {
      // Without a token, missing and existing paths look alike.
      const preflight = cors.preflight(headers, methods ? allowOf(methods) : 'GET, HEAD, OPTIONS')
      if (preflight !== undefined) return preflight
    }
    const admitted = admin ? 'token' : guard.admits(path, request, arrival)
    if (admitted === 'refused') {
      this.refused.unauthorized++
      return failure(401, 'a valid bearer token is needed', {}, { 'WWW-Authenticate': 'Bearer' })
    }
    // Browsers do not add a token on their own, and probes contain nothing confidential.
    if (admitted !== 'token' && !this.#probes.has(path)) {
      const why = guard.foreignName(request)
      if (why !== undefined) return this.#forbidden(path, why)
    }
    // RFC 9110 §9.3.7: an asterisk means the server as a whole.
    if (path === '*' && method === 'OPTIONS') return noContent({ Allow: serverMethods })
    if (methods === undefined && fallback !== undefined) {
      exchange.operation = fallback
      return undefined
    }
    if (methods === undefined) return this.#notFound(path)
    if (method === 'OPTIONS') return noContent({ Allow: allowOf(methods) })
    const operation = methods[method === 'HEAD' ? 'GET' : (method as 'GET' | 'POST')]
    if (operation === undefined) return this.#notAllowed(method, path, allowOf(methods))
    let isForeign = false
    const changes = operation.method === 'POST' && !operation.anyBody
    if (admitted !== 'token' && (operation.access !== 'open' || changes)) {
      const why = guard.foreignPage(request, arrival)
      isForeign = why !== undefined
      if (why !== undefined && !(operation.access === 'public' && guard.mayRead(headers)))
        return this.#forbidden(path, why)
    }
    exchange.isPublic =
      isForeign ||
      (admitted === 'none' && (operation.access === 'open' || !guard.trusts(exchange.connection, headers)))
    if (exchange.isPublic && operation.access === 'private') {
      this.refused.unauthorized++
      const why = `cannot answer ${path}: without a token, only root and the user of svc on this host have access; ${asOthers}`
      return failure(401, why, { path, hint: asOthers }, { 'WWW-Authenticate': 'Bearer' })
    }
    if (operation.parameters !== undefined) {
      const read = readParameters(operation, exchange.query)
      if ('status' in read) return read
      exchange.parameters = read.parameters
      exchange.texts = read.texts
    }
    exchange.operation = operation
    return undefined
  }

  #notAllowed(method: string, path: string, allow: string): Answer {
    const why = `cannot ${method} ${path}: use ${allow}`
    return this.failure(405, why, { method, path }, { Allow: allow })
  }

  #overLimit(exchange: Exchange): Answer | undefined {
    const { rateLimit } = this.#policy
    if (rateLimit === undefined || exchange.admin || this.#probes.has(exchange.path)) return undefined
    const seconds = rateLimit.take(exchange.client)
    if (seconds <= 0) return undefined
    this.refused.rate_limited++
    const why = `rate limit exceeded: ${rateLimit.requestsPerSecond} requests per second from one address, or one user of this host; try again later`
    return this.failure(429, why, {}, { 'Retry-After': String(seconds) })
  }

  #malformed({ url = '', headers, httpVersion, rawHeaders }: Exchange['request']): Answer | undefined {
    const { urlBytes } = this.#options
    const { failure } = this
    if (url.length > urlBytes)
      return failure(414, `cannot read the request: its URL is longer than ${urlBytes} bytes`)
    if (headers.host === undefined && httpVersion === '1.1')
      return failure(400, 'cannot read the request: HTTP/1.1 needs a Host header')
    if (hasSecondHost(rawHeaders))
      return failure(400, 'cannot read the request: it has more than one Host header')
    if (headers.expect !== undefined && !/100-continue/i.test(headers.expect))
      return failure(417, 'cannot meet the expectation: only 100-continue is supported')
    return undefined
  }

  /** Reads the body before it answers, so that the connection can continue, or ends with an answer that arrives. */
  #receive(exchange: Exchange, refusal: Answer | undefined, announced: number): void {
    const { request, response, operation } = exchange
    const { bodyBytes } = this.#options
    const { failure } = this
    const tooLarge = () => {
      response.shouldKeepAlive = false
      this.#send(
        exchange,
        failure(413, `cannot accept the request: its body is larger than ${bodyBytes} bytes`),
      )
    }
    const waits = request.headers.expect !== undefined
    const most = 16 * bodyBytes
    if (announced > (waits ? bodyBytes : most)) {
      tooLarge()
      return
    }
    if (waits) {
      if (refusal !== undefined) {
        // The client may or may not send the body now: the next bytes cannot be parsed as a request.
        response.shouldKeepAlive = false
        this.#send(exchange, refusal)
        return
      }
      response.writeContinue()
    }
    const keep = operation?.method === 'POST' && !operation.anyBody ? bodyBytes : 0
    readBody(request, { most, keep }, (size, body) => {
      if (size > bodyBytes) tooLarge()
      else if (keep === 0) this.#finish(exchange, refusal)
      else this.#finish(exchange, refusal ?? this.#bodyFault(exchange, body))
    })
  }

  #lacksBody(exchange: Exchange): Answer | undefined {
    return exchange.operation?.body === undefined ? undefined : this.#bodyFault(exchange, nothing)
  }

  /** Passes the body to an operation that accepts one. */
  #bodyFault(exchange: Exchange, body: Buffer): Answer | undefined {
    const { request, operation, path } = exchange
    if (operation?.body === undefined) return bodyFault(`POST ${path}`, request, body)
    const read = bodyObject(`POST ${path}`, request, body)
    if ('fault' in read) return read.fault
    exchange.body = read.object
    return undefined
  }

  #finish(exchange: Exchange, refusal: Answer | undefined): void {
    const { operation } = exchange
    if (refusal !== undefined || operation === undefined) {
      this.#send(exchange, refusal ?? this.#notFound(exchange.path))
      return
    }
    const costly = operation.costly === true
    if (costly && exchange.request.method === 'HEAD') {
      const [type = 'application/octet-stream'] = Object.keys(operation.outcomes?.[200]?.content ?? {})
      this.#send(exchange, headersOnly(type))
      return
    }
    const post = operation.method === 'POST' && !operation.anyBody
    const tooMany = (which: string) => {
      const why = `cannot answer ${exchange.path}: too many requests ${which} in progress; try again later`
      return this.failure(503, why, {}, { 'Retry-After': retryAfterSeconds })
    }
    if ((costly && this.#costly >= mostCostly) || (post && this.#posts >= mostPosts)) {
      this.#send(exchange, tooMany('of this kind'))
      return
    }
    let made: Answer | Promise<Answer>
    try {
      made = this.#probes.has(exchange.path)
        ? operation.handle(exchange)
        : (this.#inTurn(exchange, operation) ?? tooMany('from this client'))
    } catch (error) {
      made = this.#failed(exchange, error)
    }
    if (isAnswer(made)) {
      this.#send(exchange, made)
      return
    }
    void this.#wait(exchange, made, costly, post)
  }

  async #wait(exchange: Exchange, made: Promise<Answer>, costly: boolean, post: boolean): Promise<void> {
    if (costly) this.#costly++
    if (post) this.#posts++
    exchange.connection.begin(exchange)
    const answer = await made.catch(error =>
      exchange.wasLeft(error) ? undefined : this.#failed(exchange, error),
    )
    exchange.connection.end(exchange)
    if (costly) this.#costly--
    if (post) this.#posts--
    if (answer === undefined) return
    if (exchange.isGone) answer.live?.close?.()
    else this.#send(exchange, answer)
  }

  /** Undefined if too many requests are waiting. */
  #inTurn(exchange: Exchange, operation: Route): Answer | Promise<Answer> | undefined {
    const { connection } = exchange
    const client = () => {
      exchange.waited = true
      connection.queue(exchange.response, requestBytes)
      return exchange.client
    }
    const made = this.#turns.make(client, () => {
      if (exchange.waited) {
        connection.waiting--
        // The client has gone: no answer.
        exchange.signal.throwIfAborted()
      }
      return operation.handle(exchange)
    })
    if (exchange.waited && made !== undefined) connection.waiting++
    return made
  }

  #failed({ path }: Exchange, error: unknown): Answer {
    this.#log('error', path, `cannot answer a request to ${this.#options.subject}`, { path, error })
    return this.failure(500, `cannot answer ${path}: internal error; see the agent's log`, { path })
  }

  #send(exchange: Exchange, made: Answer): void {
    const { request, response, connection, path, startMs } = exchange
    const { status, headers, body, live } = this.#bounded(path, made)
    try {
      if (connection.leaving) response.shouldKeepAlive = false
      if (!response.shouldKeepAlive) connection.ended = true
      if (response.socket === null)
        connection.queue(response, exchange.waited ? body.length : requestBytes + body.length)
      this.count(status)
      response.writeHead(status, this.#policy.cors.headers(headers, request.headers.origin))
      if (live === undefined) response.end(body)
      else {
        response.write(body)
        this.#followers.follow(response, connection, live, () => this.#mayGoOn(exchange))
      }
      this.#options.observe?.({
        method: request.method ?? '',
        route: (this.#policy.debug ? this.#all : this.#plain).has(path) ? path : '',
        status,
        seconds: (performance.now() - startMs) / 1000,
        startUs: (performance.timeOrigin + startMs) * 1000,
      })
    } catch (error) {
      live?.close?.()
      this.#log('error', path, `cannot send an answer of ${this.#options.subject}`, { path, error })
      response.destroy()
    }
  }

  /** Whether the current settings would still allow it. */
  #mayGoOn({ request, path, admin, operation, connection }: Exchange): boolean {
    const { arrival } = this.#options
    if (admin) return true
    const { guard } = this.#policy
    const admitted = guard.admits(path, request, arrival)
    if (admitted === 'token') return true
    if (admitted === 'refused' || guard.foreignName(request) !== undefined) return false
    if (operation?.access !== 'private') return true
    if (guard.foreignPage(request, arrival) !== undefined) return false
    return admitted === 'cookie' || guard.trusts(connection, request.headers)
  }

  #forbidden(path: string, why: string): Answer {
    this.refused.forbidden++
    return this.failure(403, `cannot answer ${path}: ${why}`, { path })
  }

  /** Limits the number of followed documents. */
  #bounded(path: string, made: Answer): Answer {
    if (made.live === undefined || !this.#followers.full) return made
    made.live.close?.()
    const why = `cannot answer ${path}: too many open streams; close a page or a command`
    return this.failure(503, why, {}, { 'Retry-After': retryAfterSeconds })
  }

  #notFound(path: string): Answer {
    const why =
      !this.#policy.debug && path.startsWith('/debug/')
        ? 'debug mode is off; set self_telemetry.debug: true'
        : 'path not found'
    return this.failure(404, `cannot answer ${path}: ${why}`, { path })
  }
}

function isAnswer(value: object): value is Answer {
  return 'status' in value && 'body' in value
}

/** A proxy may have used either header (RFC 9112, section 3.2). Names and values alternate. */
function hasSecondHost(headers: readonly string[]): boolean {
  let hosts = 0
  for (let i = 0; i < headers.length; i += 2)
    if (headers[i]!.length === 4 && headers[i]!.toLowerCase() === 'host') hosts++
  return hosts > 1
}
