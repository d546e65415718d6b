import { setMaxListeners } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { ConnectError, Dialer, type DialerOptions } from '../../../foundation/lib/dialer.ts'
import { errorCode } from '../../../foundation/lib/error-code.ts'
import { hostPort } from '../../../foundation/lib/host-port.ts'
import { bodyOf, dialed, type HttpFault, headOf, startOf } from '../../../foundation/lib/http-answer.ts'
import { parseObject, textOf } from '../../../foundation/lib/json-fields.ts'
import { LineSplitter } from '../../../foundation/lib/line-splitter.ts'
import type { Place } from '../_runtime-source.ts'

/** A request without a usable answer. */
export class EngineError extends Error {
  override readonly name = 'EngineError'
  /** HTTP status; 0 without an answer. */
  readonly status: number
  /** System error code of a failed connection, such as `EACCES`; '' if there is none. */
  readonly code: string
  /** TLS failed. */
  readonly isTls: boolean

  constructor(message: string, more: Details = {}) {
    super(message, { cause: more.cause })
    this.status = more.status ?? 0
    this.code = more.code ?? ''
    this.isTls = more.isTls ?? false
  }
}

interface Details {
  readonly status?: number
  readonly code?: string
  readonly isTls?: boolean
  readonly cause?: unknown
}

export interface EngineQuestion {
  readonly path: string
  readonly maxBytes: number
  readonly timeoutMs: number
}

export interface EngineStream {
  readonly path: string
  /** Timeout for the response headers, in milliseconds; the body has no time limit. */
  readonly timeoutMs: number
  /** Maximum line length; longer lines are skipped. */
  readonly maxLineBytes: number
  line(bytes: Buffer): void
  /** Called after skipped lines. */
  missed(): void
  /** Called when a started stream ends. */
  ended(error: EngineError): void
}

/** Maximum size of an error body. */
const maxReasonBytes = 4096

/** A Unix socket (`socketPath`), or a TCP port with or without TLS. */
export interface EnginePlace extends Place, Pick<DialerOptions, 'host' | 'port' | 'tls'> {
  /** '' for a TCP port. */
  readonly socketPath: string
}

const connectTimeoutMs = 5_000

/** Client of the Docker Engine API. Each request has its own connection. */
export class EngineClient {
  readonly #dialer: Dialer
  /** Value of the Host header. */
  readonly #host: string
  readonly #closing = new AbortController()

  constructor({ host, port, socketPath, tls }: EnginePlace) {
    this.#dialer = new Dialer({ host, port, socketPath, tls, connectTimeoutMs }, ['http/1.1'])
    this.#host = socketPath === '' ? hostPort(host, port) : host
    // Every request adds a listener.
    setMaxListeners(0, this.#closing.signal)
  }

  /** Whole body of an answer with status 200. Rejects with an `EngineError`. */
  async ask({ path, maxBytes, timeoutMs }: EngineQuestion): Promise<Buffer> {
    const endMs = performance.now() + timeoutMs
    const answer = await this.#open(path, timeoutMs)
    return bodyOf(answer, maxBytes, endMs - performance.now()).catch((fault: HttpFault) => {
      if (fault.why === 'late') throw tooLate(path, timeoutMs)
      throw new EngineError(`the answer to ${path} ${fault.message.replace(/^it /, '')}`, { cause: fault })
    })
  }

  /** Resolves at the start of an answer with status 200, and calls `ended` once afterwards. */
  async follow({ path, timeoutMs, maxLineBytes, line, missed, ended }: EngineStream): Promise<void> {
    const answer = await this.#open(path, timeoutMs)
    const splitter = new LineSplitter(maxLineBytes)
    let tooLong = 0
    const fail = (message: string) => ended(new EngineError(message))
    answer.on('data', (chunk: Buffer) => {
      for (const bytes of splitter.lines(chunk)) line(bytes)
      if (splitter.tooLong > tooLong) missed()
      tooLong = splitter.tooLong
    })
    answer.once('end', () => fail('the daemon ended the event stream'))
    answer.once('error', error => fail(`the answer to ${path} was cut off: ${error.message}`))
  }

  /** Cancels requests in flight, and rejects new ones. */
  close(): void {
    this.#closing.abort()
    this.#dialer.close()
  }

  /** An answer of status 200 whose body is to be read. */
  async #open(path: string, timeoutMs: number): Promise<IncomingMessage> {
    const { signal: stop } = this.#closing
    const endMs = performance.now() + timeoutMs
    const headers = { host: this.#host, connection: 'close' }
    const call = request({ path, headers, createConnection: dialed(this.#dialer) })
    const answer = await headOf(call, { timeoutMs, stop }).catch((fault: HttpFault) => {
      throw fault.why === 'late' ? tooLate(path, timeoutMs) : engineError(fault)
    })
    if (answer.statusCode === 200) return answer
    throw await refusal(answer, path, endMs - performance.now())
  }
}

function tooLate(path: string, timeoutMs: number): EngineError {
  return new EngineError(`no answer to ${path} within ${timeoutMs} ms`)
}

function engineError(fault: HttpFault): EngineError {
  const { cause, message } = fault
  if (fault.why === 'stopped') return new EngineError('the request was cancelled')
  const code = errorCode(cause)
  // A daemon that rejects our certificate may report it after the handshake (RFC 8446, section 4.4.2.4).
  const isTls = cause instanceof ConnectError ? cause.type === 'tls' : code.startsWith('ERR_SSL_')
  return new EngineError(message, { code, isTls, cause })
}

/** Error answers of Docker have a reason in JSON (`{"message": "…"}`). */
async function refusal(answer: IncomingMessage, path: string, timeoutMs: number): Promise<EngineError> {
  const status = answer.statusCode ?? 0
  // The status is enough if the rest does not arrive.
  const { bytes } = await startOf(answer, maxReasonBytes, timeoutMs).catch(() => ({ bytes: Buffer.alloc(0) }))
  const reason = textOf(parseObject(bytes)?.message, 200)
  return new EngineError(`HTTP ${status} to ${path}${reason === '' ? '' : `: ${reason}`}`, { status })
}
