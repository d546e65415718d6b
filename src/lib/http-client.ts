import { Agent, type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { gunzip } from 'node:zlib'
import { authority, ConnectError, Dialer, type DialerOptions, faultText } from './dialer.ts'
import { GatheredBytes } from './gathered-bytes.ts'

export interface HttpClientOptions extends DialerOptions {
  /** What is beyond this, compressed or not, is not read. */
  readonly maxAnswerBytes: number
  /** Each request that runs has a connection of its own, and afterwards so many are kept for others. */
  readonly keptConnections: number
  /** A connection this old is not used again, so that a balancer may place us anew; spread by a tenth either way. */
  readonly maxAgeMs?: number
}

export interface HttpRequest {
  readonly path: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** For everything, the making of a connection included. */
  readonly timeoutMs: number
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Unpacked; empty where it could not be read. */
  readonly body: Uint8Array
  /** Why the body could not be read; '' when it is whole. */
  readonly fault: string
}

/** A request that got no answer. The server may have acted on it all the same, unless no connection was made. */
export class HttpError extends Error {
  readonly type: 'connect' | 'dns' | 'tls' | 'unavailable' | 'deadline_exceeded' | 'cancelled'
  /** It went over a connection that was used before, which the server seems to have closed in that moment. */
  readonly stale: boolean

  constructor(message: string, type: HttpError['type'], options: { stale?: boolean; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.name = 'HttpError'
    this.type = type
    this.stale = options.stale ?? false
  }
}

const idleMs = 60_000

/** POST over HTTP/1.1 to one server, on connections that are kept. */
export class HttpClient {
  readonly #options: HttpClientOptions
  readonly #dialer: Dialer
  readonly #agent: DialingAgent
  readonly #host: string
  #closed = false

  constructor(options: HttpClientOptions) {
    const { host, port, tls } = options
    this.#options = options
    this.#dialer = new Dialer(options, ['http/1.1'])
    this.#agent = new DialingAgent(this.#dialer, options)
    this.#host =
      port === (tls ? 443 : 80) ? authority(host, port).replace(/:\d+$/, '') : authority(host, port)
  }

  get connected(): boolean {
    return this.#agent.open > 0
  }

  /**
   * Resolves with the answer of any status as soon as its head is there and the body is read or cannot be. Rejects with
   * an `HttpError`, also when `stop` is raised or time is up before that.
   */
  async post(request: HttpRequest, stop: AbortSignal): Promise<HttpAnswer> {
    const deadline = performance.now() + request.timeoutMs
    try {
      return await this.#attempt(request, deadline, stop)
    } catch (error) {
      // Servers close idle connections while we choose one. The others may have met the same end, so a new one is made.
      if (!(error instanceof HttpError && error.stale) || stop.aborted) throw error
      this.#agent.dropIdle()
      return await this.#attempt(request, deadline, stop)
    }
  }

  close(): void {
    this.#closed = true
    this.#dialer.close()
    this.#agent.destroy()
  }

  #attempt(wanted: HttpRequest, deadline: number, stop: AbortSignal): Promise<HttpAnswer> {
    if (this.#closed) return Promise.reject(new HttpError('the client is closed', 'connect'))
    if (stop.aborted) return Promise.reject(new HttpError('the request was cancelled', 'cancelled'))
    return new Promise((resolve, reject) => {
      const { host, port, maxAnswerBytes } = this.#options
      const { path, headers, body, timeoutMs } = wanted
      const call = request({
        agent: this.#agent,
        host,
        port,
        method: 'POST',
        path,
        headers: {
          ...headers,
          host: this.#host,
          'accept-encoding': 'gzip',
          'content-length': String(body.length),
        },
      })
      const exchange = new Exchange(call, maxAnswerBytes, end => {
        clearTimeout(timer)
        stop.removeEventListener('abort', stopped)
        if (end instanceof Error) reject(end)
        else resolve(end)
      })
      const stopped = (): void => exchange.end(new HttpError('the request was cancelled', 'cancelled'))
      const late = (): void =>
        exchange.end(
          exchange.connected
            ? new HttpError(`no answer within ${timeoutMs} ms`, 'deadline_exceeded')
            : new HttpError(`no connection within ${timeoutMs} ms`, 'connect'),
        )
      const timer = setTimeout(late, Math.max(0, deadline - performance.now()))
      stop.addEventListener('abort', stopped)
      call.end(body)
    })
  }
}

/** One request and its answer. */
class Exchange {
  readonly #call: ClientRequest
  readonly #maxBytes: number
  readonly #settle: (end: HttpAnswer | HttpError) => void
  readonly #body: GatheredBytes
  #message: IncomingMessage | undefined
  #done = false
  /** The request has a connection. */
  connected = false

  constructor(call: ClientRequest, maxBytes: number, settle: (end: HttpAnswer | HttpError) => void) {
    this.#call = call
    this.#maxBytes = maxBytes
    this.#body = new GatheredBytes(maxBytes)
    this.#settle = settle
    call.once('socket', () => {
      this.connected = true
    })
    call.once('response', message => this.#read(message))
    call.on('error', error => this.end(this.#failure(error)))
    // Without an error before it, as when the agent is destroyed.
    call.once('close', () => this.end(new HttpError('the connection was lost', 'unavailable')))
  }

  /** Ends it, if it has not ended. With the head of an answer the server has spoken, and that is the outcome. */
  end(error: HttpError): void {
    if (this.#done) return
    this.#done = true
    if (this.#message) this.#settle(this.#answer(Buffer.alloc(0), error.message))
    else this.#settle(error)
    this.#call.destroy()
  }

  #read(message: IncomingMessage): void {
    // Not an answer to this request, but a farewell to a connection that was idle (RFC 9110, section 15.5.9).
    const farewell = message.statusCode === 408 && message.headers.connection?.toLowerCase() === 'close'
    if (farewell && this.#call.reusedSocket) {
      this.end(
        new HttpError('the server closed the idle connection (HTTP 408)', 'unavailable', { stale: true }),
      )
      return
    }
    this.#message = message
    message.on('data', (chunk: Buffer) => {
      if (!this.#body.add(chunk)) this.end(new HttpError(tooLarge(this.#maxBytes), 'unavailable'))
    })
    message.on('error', error =>
      this.end(
        new HttpError(`the answer was interrupted: ${faultText(error)}`, 'unavailable', { cause: error }),
      ),
    )
    message.once('end', () => {
      if (this.#done) return
      this.#done = true
      // A server may answer before it has read all, and the rest would keep the connection from the next request.
      if (!this.#call.writableFinished) this.#call.destroy()
      const body = this.#body.bytes
      inflate(body, message.headers['content-encoding'], this.#maxBytes).then(
        plain => this.#settle(this.#answer(plain, '')),
        (error: Error) => this.#settle(this.#answer(Buffer.alloc(0), error.message)),
      )
    })
  }

  #answer(body: Uint8Array, fault: string): HttpAnswer {
    const { statusCode = 0, headers } = this.#message!
    return { status: statusCode, headers, body, fault }
  }

  #failure(error: NodeJS.ErrnoException): HttpError {
    if (error instanceof ConnectError) return new HttpError(error.message, error.type, { cause: error })
    if (error.code?.startsWith('HPE_') && error.code !== 'HPE_HEADER_OVERFLOW')
      return new HttpError(
        `the server does not speak HTTP/1.1 (${error.message}); it may be a gRPC port`,
        'unavailable',
        {
          cause: error,
        },
      )
    return new HttpError(`the connection was lost: ${faultText(error)}`, 'unavailable', {
      stale: this.#call.reusedSocket,
      cause: error,
    })
  }
}

function inflate(body: Buffer, encoding: string | undefined, maxBytes: number): Promise<Uint8Array> {
  if (encoding === undefined || encoding === '' || encoding === 'identity' || body.length === 0)
    return Promise.resolve(body)
  if (encoding !== 'gzip' && encoding !== 'x-gzip')
    return Promise.reject(new Error(`it is compressed with ${encoding.slice(0, 32)}`))
  return new Promise((resolve, reject) => {
    gunzip(body, { maxOutputLength: maxBytes }, (error, plain) => {
      if (!error) resolve(plain)
      else if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE')
        reject(new Error(tooLarge(maxBytes)))
      else reject(new Error(`it is not valid gzip: ${error.message}`))
    })
  })
}

function tooLarge(maxBytes: number): string {
  return `it is larger than ${maxBytes} bytes`
}

/** Node's keeper of connections, with ours in place of its own, and an age at which they are given up. */
class DialingAgent extends Agent {
  readonly #dialer: Dialer
  readonly #maxAgeMs: number
  readonly #replaceAt = new Map<Socket, number>()

  constructor(dialer: Dialer, { keptConnections, maxAgeMs = 30 * 60_000 }: HttpClientOptions) {
    super({ keepAlive: true, maxFreeSockets: keptConnections, timeout: idleMs })
    this.#dialer = dialer
    this.#maxAgeMs = maxAgeMs
  }

  get open(): number {
    return this.#replaceAt.size
  }

  dropIdle(): void {
    for (const sockets of Object.values(this.freeSockets))
      for (const socket of sockets ?? []) socket.destroy()
  }

  override createConnection(
    _options: unknown,
    callback?: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    this.#dialer.dial().then(
      socket => {
        this.#replaceAt.set(socket, performance.now() + this.#maxAgeMs * (0.9 + 0.2 * Math.random()))
        socket.once('close', () => this.#replaceAt.delete(socket))
        callback?.(null, socket)
      },
      (error: Error) => callback?.(error, undefined as never),
    )
  }

  override keepSocketAlive(socket: Duplex): boolean {
    const old = performance.now() >= (this.#replaceAt.get(socket as Socket) ?? 0)
    // Its declaration says void, and what it returns decides.
    const kept: unknown = old ? false : super.keepSocketAlive(socket)
    return kept === true
  }
}
