import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { authority, ConnectError, Dialer, type DialerOptions, faultText } from '../../lib/dialer.ts'
import { GatheredBytes } from '../../lib/gathered-bytes.ts'
import { parseObject, textOf } from '../../lib/json-fields.ts'
import { LineSplitter } from '../../lib/line-splitter.ts'
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
  private readonly dialer: Dialer
  /** Value of the Host header. */
  private readonly host: string
  private readonly calls = new Set<Call>()
  private closed = false

  constructor({ host, port, socketPath, tls }: EnginePlace) {
    this.dialer = new Dialer({ host, port, socketPath, tls, connectTimeoutMs }, ['http/1.1'])
    this.host = socketPath === '' ? authority(host, port) : host
  }

  /** Whole body of an answer with status 200. Rejects with an `EngineError`. */
  ask({ path, maxBytes, timeoutMs }: EngineQuestion): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const call = this.call(path, timeoutMs, reject)
      const body = new GatheredBytes(maxBytes)
      call.begin = answer => {
        answer.on('data', (chunk: Buffer) => {
          if (!body.add(chunk)) call.fail(`the answer to ${path} is larger than ${maxBytes} bytes`)
        })
        answer.once('end', () => {
          call.finish()
          resolve(body.bytes)
        })
      }
    })
  }

  /** Resolves at the start of an answer with status 200, and calls `ended` once afterwards. */
  follow({ path, timeoutMs, maxLineBytes, line, missed, ended }: EngineStream): Promise<void> {
    return new Promise((resolve, reject) => {
      let begun = false
      const call = this.call(path, timeoutMs, error => (begun ? ended(error) : reject(error)))
      const splitter = new LineSplitter(maxLineBytes)
      call.begin = answer => {
        begun = true
        call.waitForever()
        resolve()
        let tooLong = 0
        answer.on('data', (chunk: Buffer) => {
          for (const bytes of splitter.lines(chunk)) line(bytes)
          if (splitter.tooLong > tooLong) missed()
          tooLong = splitter.tooLong
        })
        answer.once('end', () => call.fail('the daemon ended the event stream'))
      }
    })
  }

  /** Cancels requests in flight, and rejects new ones. */
  close(): void {
    this.closed = true
    this.dialer.close()
    for (const call of [...this.calls]) call.fail('the request was cancelled')
  }

  private call(path: string, timeoutMs: number, failed: (error: EngineError) => void): Call {
    if (this.closed) throw new EngineError('the request was cancelled')
    const call = new Call(this.dialer, this.host, path, timeoutMs, error => {
      this.calls.delete(call)
      if (error !== undefined) failed(error)
    })
    this.calls.add(call)
    return call
  }
}

/** One request, from its connection to its end. */
class Call {
  /** Called with an answer of status 200. */
  begin: (answer: IncomingMessage) => void = () => undefined
  private readonly path: string
  private readonly request: ClientRequest
  private readonly timer: NodeJS.Timeout
  private readonly ended: (error: EngineError | undefined) => void
  private over = false

  constructor(
    dialer: Dialer,
    host: string,
    path: string,
    timeoutMs: number,
    ended: (error: EngineError | undefined) => void,
  ) {
    this.path = path
    this.ended = ended
    this.timer = setTimeout(() => this.fail(`no answer to ${path} within ${timeoutMs} ms`), timeoutMs)
    this.timer.unref()
    this.request = request({
      path,
      headers: { host, connection: 'close' },
      createConnection: (_, ready) => {
        dialer.dial().then(
          connection => ready(null, connection),
          (error: Error) => ready(error, undefined as never),
        )
        return undefined
      },
    })
    this.request.on('response', answer => this.take(answer))
    this.request.on('error', (error: NodeJS.ErrnoException) => this.lose(error))
    // Without a previous error, the answer was cut off.
    this.request.once('close', () => this.fail(`the answer to ${path} was cut off`))
    this.request.end()
  }

  waitForever(): void {
    clearTimeout(this.timer)
  }

  finish(): void {
    this.settle(undefined)
  }

  fail(message: string, more: Details = {}): void {
    if (this.over) return
    this.settle(new EngineError(message, more))
    this.request.destroy()
  }

  private settle(error: EngineError | undefined): void {
    if (this.over) return
    this.over = true
    clearTimeout(this.timer)
    this.ended(error)
  }

  private lose(error: NodeJS.ErrnoException): void {
    const text = error.code?.startsWith('HPE_') ? 'the answer is not HTTP' : faultText(error)
    const isOurs = error instanceof ConnectError
    const { code = '' } = (isOurs ? (error.cause as NodeJS.ErrnoException | undefined) : error) ?? {}
    // A daemon that rejects our certificate may report it after the handshake (RFC 8446, section 4.4.2.4).
    const isTls = isOurs ? error.type === 'tls' : code.startsWith('ERR_SSL_')
    this.fail(text, { code, isTls, cause: error })
  }

  private take(answer: IncomingMessage): void {
    answer.on('error', error => this.fail(`the answer to ${this.path} was cut off: ${error.message}`))
    if (answer.statusCode === 200) this.begin(answer)
    else this.refuse(answer)
  }

  /** Error answers of Docker have a reason in JSON (`{"message": "…"}`). */
  private refuse(answer: IncomingMessage): void {
    const status = answer.statusCode ?? 0
    const body = new GatheredBytes(maxReasonBytes)
    const refused = (): void => {
      const reason = textOf(parseObject(body.bytes)?.message, 200)
      this.fail(`HTTP ${status} to ${this.path}${reason === '' ? '' : `: ${reason}`}`, { status })
    }
    answer.on('data', (chunk: Buffer) => {
      if (!body.add(chunk)) refused()
    })
    answer.once('end', refused)
  }
}
