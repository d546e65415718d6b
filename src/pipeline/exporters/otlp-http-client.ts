import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { gunzip } from 'node:zlib'
import { ConnectError, Dialer, type DialerOptions } from '../../foundation/lib/dialer.ts'
import { hostPort } from '../../foundation/lib/host-port.ts'
import { bodyOf, type HttpFault, headOf, isNoHttp } from '../../foundation/lib/http-answer.ts'

export interface OtlpHttpClientOptions extends DialerOptions {
  /** Maximum bytes read of an answer, both compressed and decompressed. */
  readonly maxAnswerBytes: number
  /** Maximum idle connections kept for reuse; each running request has its own connection. */
  readonly keptConnections: number
  /** Age after which a connection is not reused, so that a load balancer can rebalance; randomized by ±10 %. */
  readonly maxAgeMs?: number
}

export interface HttpRequest {
  readonly path: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** Covers the whole request, connecting included. */
  readonly timeoutMs: number
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Decompressed; empty if it could not be read. */
  readonly body: Uint8Array
  /** Reason why the body could not be read; '' if it is complete. */
  readonly fault: string
}

/** A request without an answer. The server may have processed it anyway, unless there was no connection. */
export class HttpError extends Error {
  readonly type: 'connect' | 'dns' | 'tls' | 'unavailable' | 'deadline_exceeded' | 'cancelled'
  /** Whether it was sent over a reused connection that the server seems to have closed at that moment. */
  readonly stale: boolean

  constructor(message: string, type: HttpError['type'], options: { stale?: boolean; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.name = 'HttpError'
    this.type = type
    this.stale = options.stale ?? false
  }
}

const idleMs = 60_000

/** Sends POST requests over HTTP/1.1 to one server, over kept connections. */
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
   * Resolves with the answer, whatever its status, once its head has arrived and its body was read or failed. Rejects
   * with an `HttpError`, also if `stop` is raised or time is up before the head.
   */
  async post(request: HttpRequest, stop: AbortSignal): Promise<HttpAnswer> {
    const deadline = performance.now() + request.timeoutMs
    try {
      return await this.#attempt(request, deadline, stop)
    } catch (error) {
      // Servers may close an idle connection just as we use it. The other idle ones may be closed too, so a new one is
      // made.
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
    // Not an answer to this request: the server announces that it closes an idle connection (RFC 9110, section 15.5.9).
    if (status === 408 && fields.connection?.toLowerCase() === 'close' && call.reusedSocket) {
      call.destroy()
      throw new HttpError('the server closed the idle connection (HTTP 408)', 'unavailable', { stale: true })
    }
    try {
      const compressed = await bodyOf(answer, maxAnswerBytes, leftMs())
      // A server may answer before it has read the whole request; the connection is then not reusable.
      if (!call.writableFinished) call.destroy()
      const plain = await inflate(compressed, fields['content-encoding'], maxAnswerBytes)
      return { status, headers: fields, body: plain, fault: '' }
    } catch (error) {
      // Once the head has arrived, its status is the outcome.
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

/** Node's agent with our dialer, and a maximum age for its connections. */
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
    // Declared void, but Node uses the returned value.
    const kept: unknown = old ? false : super.keepSocketAlive(socket)
    return kept === true
  }
}
