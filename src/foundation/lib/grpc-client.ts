import type {
  ClientHttp2Stream,
  IncomingHttpHeaders,
  IncomingHttpStatusHeader,
  OutgoingHttpHeaders,
} from 'node:http2'
import { ConnectError, faultText } from './dialer.ts'
import { type AnswerBody, EachMessage, type MessageStream, OneMessage, prefixBytes } from './grpc-answer.ts'
import {
  decodeStatusMessage,
  GrpcError,
  GrpcStatus,
  resetName,
  statusName,
  statusOfHttp,
  statusOfReset,
} from './grpc-status.ts'
import { type Http2Connection, Http2Connector, type Http2ConnectorOptions } from './http2-connector.ts'

export interface GrpcClientOptions extends Http2ConnectorOptions {
  /** A larger response, compressed or not, fails the call. */
  readonly maxResponseBytes: number
}

export interface GrpcRequest {
  /** `/package.Service/Method` */
  readonly path: string
  readonly message: Uint8Array
  /** Compression of the message, as in `grpc-encoding`. */
  readonly encoding: 'identity' | 'gzip' | 'zstd'
  /** Metadata, keys in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Undefined: no time limit. */
  readonly timeoutMs?: number
}

const cancel = 8 // CANCEL, RFC 9113, section 7
const refusedStream = 7
/** Maximum length of a server's message, which is shown to people. */
const maxWords = 4096

/** gRPC calls with one message, over one HTTP/2 connection that is opened on demand (grpc/doc/PROTOCOL-HTTP2.md). */
export class GrpcClient {
  readonly #connector: Http2Connector
  readonly #maxResponseBytes: number

  constructor(options: GrpcClientOptions) {
    this.#connector = new Http2Connector(options)
    this.#maxResponseBytes = options.maxResponseBytes
  }

  get connected(): boolean {
    return this.#connector.connected
  }

  /** Resolves with the response message. Rejects with a `GrpcError`, also when `stop` is raised or time is up. */
  async call(request: GrpcRequest, stop: AbortSignal): Promise<Uint8Array> {
    const { body, encoding } = await this.#exchange(
      request,
      () => new OneMessage(this.#maxResponseBytes),
      stop,
    )
    return body.message(encoding)
  }

  /** Passes on each message of a response stream, and resolves when the server ends it. Rejects like `call`. */
  async follow(request: GrpcRequest, stream: MessageStream, stop: AbortSignal): Promise<void> {
    const { body } = await this.#exchange(request, () => new EachMessage(stream), stop)
    body.end()
  }

  close(): void {
    this.#connector.close()
  }

  async #exchange<B extends AnswerBody>(
    request: GrpcRequest,
    body: () => B,
    stop: AbortSignal,
  ): Promise<Answer<B>> {
    const deadline = performance.now() + (request.timeoutMs ?? Number.POSITIVE_INFINITY)
    try {
      return await this.#attempt(request, body(), deadline, stop)
    } catch (error) {
      // A server that shuts down refuses requests that it has not processed: retry at once over the next connection.
      if (error instanceof GrpcError && error.untouched)
        return await this.#attempt(request, body(), deadline, stop)
      throw error
    }
  }

  #attempt<B extends AnswerBody>(
    request: GrpcRequest,
    body: B,
    deadline: number,
    stop: AbortSignal,
  ): Promise<Answer<B>> {
    return new Promise((resolve, reject) => {
      let exchange: Exchange<B> | undefined
      let done = false
      const finish = (settle: () => void): void => {
        if (done) return
        done = true
        clearTimeout(timer)
        stop.removeEventListener('abort', stopped)
        settle()
      }
      const fail = (error: unknown): void => finish(() => reject(error))
      const stopped = (): void => {
        fail(new GrpcError('the call was cancelled', { code: GrpcStatus.cancelled }))
        exchange?.abandon()
      }
      const late = (): void => {
        const limit = `within ${request.timeoutMs} ms`
        if (!exchange) {
          fail(new GrpcError(`no connection ${limit}`, { code: GrpcStatus.unavailable, type: 'connect' }))
          return
        }
        fail(new GrpcError(`no answer ${limit}`, { code: GrpcStatus.deadline_exceeded }))
        // The path may be dead without an error, as when a firewall dropped its state: the next call uses a new
        // connection.
        exchange.connection.retire()
        exchange.abandon()
      }
      const timer =
        request.timeoutMs === undefined
          ? undefined
          : setTimeout(late, Math.max(0, deadline - performance.now()))
      stop.addEventListener('abort', stopped)
      if (stop.aborted) return stopped()
      this.#connector.connection().then(
        connection => {
          if (done) return
          exchange = new Exchange(connection, body)
          exchange.run(request, deadline).then(answer => finish(() => resolve(answer)), fail)
        },
        error => fail(connectFailure(error)),
      )
    })
  }
}

/** With status ok. */
interface Answer<B> {
  readonly body: B
  /** Compression of its messages. */
  readonly encoding: unknown
}

/** One request and its response on one stream. */
class Exchange<B extends AnswerBody> {
  readonly connection: Http2Connection
  readonly #body: B
  #headers: (IncomingHttpHeaders & IncomingHttpStatusHeader) | undefined
  #trailers: IncomingHttpHeaders | undefined
  #stream: ClientHttp2Stream | undefined
  #cause: Error | undefined

  constructor(connection: Http2Connection, body: B) {
    this.connection = connection
    this.#body = body
  }

  run(request: GrpcRequest, deadline: number): Promise<Answer<B>> {
    return new Promise((resolve, reject) => {
      let stream: ClientHttp2Stream
      try {
        stream = this.connection.session.request(requestHeaders(request, deadline, this.#body.accepts))
      } catch (error) {
        reject(unsent(error as Error))
        return
      }
      const settle = (): void => {
        const fault = this.#fault()
        if (fault === undefined) resolve({ body: this.#body, encoding: this.#headers?.['grpc-encoding'] })
        else reject(fault)
      }
      this.#stream = stream
      this.connection.begin()
      stream.on('response', headers => {
        this.#headers = headers
      })
      stream.on('trailers', trailers => {
        this.#trailers = trailers
      })
      stream.on('data', (chunk: Buffer) => {
        const fault = this.#body.add(chunk)
        if (fault === undefined) return
        reject(fault)
        this.abandon()
      })
      stream.on('error', error => {
        this.#cause = error
      })
      // A server may respond before it has read everything, which leaves the stream half open: the status ends the
      // call.
      stream.on('end', () => {
        if (this.#status === undefined) return
        settle()
        if (!stream.writableFinished) this.abandon()
      })
      stream.on('close', () => {
        settle()
        this.connection.end() // may end the connection, which must not count as the cause
      })
      const prefix = Buffer.allocUnsafe(prefixBytes)
      prefix[0] = request.encoding === 'identity' ? 0 : 1
      prefix.writeUInt32BE(request.message.length, 1)
      stream.cork()
      stream.write(prefix)
      stream.end(request.message)
      stream.uncork()
    })
  }

  /** Resets the stream and frees it at once, although the reset may never arrive. */
  abandon(): void {
    this.#stream?.close(cancel)
    this.#stream?.destroy()
  }

  get #status(): string | undefined {
    const status = this.#trailers?.['grpc-status'] ?? this.#headers?.['grpc-status']
    return Array.isArray(status) ? status[0] : status
  }

  /** Why the call failed; undefined: its status is ok. */
  #fault(): GrpcError | undefined {
    const status = this.#status
    if (status === undefined) return this.#withoutStatus()
    return /^0+$/.test(status) ? undefined : this.#refusal(status)
  }

  #refusal(status: string): GrpcError {
    const code = /^\d+$/.test(status) ? Number(status) : GrpcStatus.unknown
    const said = this.#trailers?.['grpc-status'] === undefined ? this.#headers : this.#trailers
    const message = decodeStatusMessage(String(said?.['grpc-message'] ?? '').slice(0, maxWords))
    const details = said?.['grpc-status-details-bin']
    const name = statusName(code).toUpperCase()
    return new GrpcError(message ? `${name}: ${message}` : name, {
      code,
      ...(typeof details === 'string' && { details: Buffer.from(details, 'base64') }),
    })
  }

  #withoutStatus(): GrpcError {
    const http = this.#headers?.[':status']
    // A response without gRPC, as from a web server or a failing proxy, is no verdict on the request.
    const foreign = !String(this.#headers?.['content-type'] ?? '').startsWith('application/grpc')
    if (http !== undefined && http !== 200)
      return new GrpcError(`the server answered HTTP ${http} without a gRPC status`, {
        code: foreign && http >= 500 && http !== 501 ? GrpcStatus.unavailable : statusOfHttp(http),
        ...(http === 413 && { type: 'too_large' }),
      })
    const { connection } = this
    const cause = this.#cause
    if (connection.lost || connection.session.destroyed) {
      const reason = connection.reason || (cause && faultText(cause)) || 'the other side closed it'
      return new GrpcError(`the connection was lost: ${reason}`, { code: GrpcStatus.unavailable, cause })
    }
    const reset = this.#stream?.rstCode ?? 0
    if (reset !== 0)
      return new GrpcError(`the server reset the stream with ${resetName(reset)}`, {
        code: statusOfReset(reset),
        untouched: reset === refusedStream,
        cause,
      })
    if (http === undefined)
      return new GrpcError('the server ended the stream without an answer', {
        code: GrpcStatus.unavailable,
        cause,
      })
    return new GrpcError('the answer has no gRPC status; check that it is a gRPC server', {
      code: foreign ? GrpcStatus.unavailable : GrpcStatus.unknown,
      cause,
    })
  }
}

function requestHeaders(request: GrpcRequest, deadline: number, accepts: string): OutgoingHttpHeaders {
  return {
    ...request.headers,
    ':method': 'POST',
    ':path': request.path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...(request.timeoutMs !== undefined && { 'grpc-timeout': grpcTimeout(deadline - performance.now()) }),
    'grpc-accept-encoding': accepts,
    ...(request.encoding !== 'identity' && { 'grpc-encoding': request.encoding }),
  }
}

/** At most eight digits and a unit (grpc/doc/PROTOCOL-HTTP2.md). */
function grpcTimeout(ms: number): string {
  const whole = Math.max(1, Math.ceil(ms))
  return whole < 1e8 ? `${whole}m` : `${Math.min(99_999_999, Math.ceil(whole / 1000))}S`
}

function connectFailure(error: unknown): GrpcError {
  const type = error instanceof ConnectError ? error.type : 'connect'
  return new GrpcError((error as Error).message, { code: GrpcStatus.unavailable, type, cause: error })
}

/** The session ended between its selection and its use. */
function unsent(error: Error): GrpcError {
  return new GrpcError(`the connection was lost: ${error.message}`, {
    code: GrpcStatus.unavailable,
    untouched: true,
    cause: error,
  })
}
