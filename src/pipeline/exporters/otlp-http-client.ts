import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { gunzip } from 'node:zlib'
import { ConnectError, Dialer, type DialerOptions } from '../../foundation/lib/dialer.ts'
import { hostPort } from '../../foundation/lib/host-port.ts'
import { bodyOf, type HttpFault, headOf, isNoHttp } from '../../foundation/lib/http-answer.ts'

export interface OtlpHttpClientOptions extends DialerOptions {
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
  /** Decompressed; empty where it could not be read. */
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

/** Posts over HTTP/1.1 to one server, on connections that are kept. */
export class OtlpHttpClient {
  readonly #options: OtlpHttpClientOptions
  readonly #dialer: Dialer
  readonly #agent: DialingAgent
  readonly #host: string
  #closed = false

  constructor(options: OtlpHttpClientOptions) {
    const { host, port, tls } = options
    this.#options = options
    this.#dialer = new Dialer(options, ['http/1.1'])
    this.#agent = new DialingAgent(this.#dialer, options)
    this.#host = port === (tls ? 443 : 80) ? hostPort(host, port).replace(/:\d+$/, '') : hostPort(host, port)
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

  async #attempt(wanted: HttpRequest, deadline: number, stop: AbortSignal): Promise<HttpAnswer> {
    if (this.#closed) throw new HttpError('the client is closed', 'connect')
    if (stop.aborted) throw new HttpError('the request was cancelled', 'cancelled')
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
    let connected = false
    call.once('socket', () => {
      connected = true
    })
    const leftMs = () => Math.max(0, deadline - performance.now())
    const answer = await headOf(call, { timeoutMs: leftMs(), stop, body }).catch((fault: HttpFault) => {
      throw failure(fault, connected, timeoutMs)
    })
    const { statusCode: status = 0, headers: fields } = answer
    // Not an answer to this request, but a farewell to a connection that was idle (RFC 9110, section 15.5.9).
    if (status === 408 && fields.connection?.toLowerCase() === 'close' && call.reusedSocket) {
      call.destroy()
      throw new HttpError('the server closed the idle connection (HTTP 408)', 'unavailable', { stale: true })
    }
    try {
      const compressed = await bodyOf(answer, maxAnswerBytes, leftMs())
      // A server may answer before it has read all, and the rest would keep the connection from the next request.
      if (!call.writableFinished) call.destroy()
      const plain = await inflate(compressed, fields['content-encoding'], maxAnswerBytes)
      return { status, headers: fields, body: plain, fault: '' }
    } catch (error) {
      // With the head of an answer the server has spoken, and that is the outcome.
      const { why, message } = error as HttpFault
      const isStopped = stop.aborted && why === 'lost'
      const fault = isStopped ? 'the request was cancelled' : why === 'late' ? silence(timeoutMs) : message
      return { status, headers: fields, body: Buffer.alloc(0), fault }
    }
  }
}

function failure(
  { why, message, stale, cause }: HttpFault,
  connected: boolean,
  timeoutMs: number,
): HttpError {
  if (why === 'stopped') return new HttpError('the request was cancelled', 'cancelled')
  if (why === 'late')
    return connected
      ? new HttpError(silence(timeoutMs), 'deadline_exceeded')
      : new HttpError(`no connection within ${timeoutMs} ms`, 'connect')
  if (cause instanceof ConnectError) return new HttpError(cause.message, cause.type, { cause })
  if (cause === undefined) return new HttpError(message, 'unavailable')
  const text = isNoHttp(cause as Error)
    ? `the server does not speak HTTP/1.1 (${(cause as Error).message}); it may be a gRPC port`
    : `the connection was lost: ${message}`
  return new HttpError(text, 'unavailable', { stale, cause })
}

function silence(timeoutMs: number): string {
  return `no answer within ${timeoutMs} ms`
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
        reject(new Error(`it is larger than ${maxBytes} bytes`))
      else reject(new Error(`it is not valid gzip: ${error.message}`))
    })
  })
}

/** Node's keeper of connections, with ours in place of its own, and an age at which they are given up. */
class DialingAgent extends Agent {
  readonly #dialer: Dialer
  readonly #maxAgeMs: number
  readonly #replaceAt = new Map<Socket, number>()

  constructor(dialer: Dialer, { keptConnections, maxAgeMs = 30 * 60_000 }: OtlpHttpClientOptions) {
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
