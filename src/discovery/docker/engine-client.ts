import { setMaxListeners } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { ConnectError, Dialer, type DialerOptions } from '../../lib/dialer.ts'
import { errorCode } from '../../lib/error-code.ts'
import { hostPort } from '../../lib/host-port.ts'
import { bodyOf, dialed, type HttpFault, headOf, startOf } from '../../lib/http-answer.ts'
import { parseObject, textOf } from '../../lib/json-fields.ts'
import { LineSplitter } from '../../lib/line-splitter.ts'
import type { Place } from '../_runtime-source.ts'

/** A question that got no answer, or none of use. */
export class EngineError extends Error {
  override readonly name = 'EngineError'
  /** Of the answer; 0: there was none. */
  readonly status: number
  /** What the system says of a connection that failed, as `EACCES`; '' where it did not. */
  readonly code: string
  /** The two sides do not trust each other. */
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
  /** For the head of the answer; what comes after it may take for ever. */
  readonly timeoutMs: number
  /** Longer lines are left out. */
  readonly maxLineBytes: number
  line(bytes: Buffer): void
  /** Lines were left out. */
  missed(): void
  /** After the beginning: no line comes any more. */
  ended(error: EngineError): void
}

/** Of the reason that comes with an answer of another status. */
const maxReasonBytes = 4096

/** A Unix socket (`socketPath`), or a port, with TLS or without. */
export interface EnginePlace extends Place, Pick<DialerOptions, 'host' | 'port' | 'tls'> {
  /** '': it is a port. */
  readonly socketPath: string
}

const connectTimeoutMs = 5_000

/** Asks a daemon that speaks Docker's Engine API. Each question has a connection of its own. */
export class EngineClient {
  private readonly dialer: Dialer
  /** Who is asked, as HTTP names it. */
  private readonly host: string
  private readonly closing = new AbortController()

  constructor({ host, port, socketPath, tls }: EnginePlace) {
    this.dialer = new Dialer({ host, port, socketPath, tls, connectTimeoutMs }, ['http/1.1'])
    this.host = socketPath === '' ? hostPort(host, port) : host
    // Every question listens to it.
    setMaxListeners(0, this.closing.signal)
  }

  /** The whole body of an answer of status 200. Rejects with an `EngineError`. */
  async ask({ path, maxBytes, timeoutMs }: EngineQuestion): Promise<Buffer> {
    const endMs = performance.now() + timeoutMs
    const answer = await this.open(path, timeoutMs)
    return bodyOf(answer, maxBytes, endMs - performance.now()).catch((fault: HttpFault) => {
      if (fault.why === 'late') throw tooLate(path, timeoutMs)
      throw new EngineError(`the answer to ${path} ${fault.message.replace(/^it /, '')}`, { cause: fault })
    })
  }

  /** Resolves when an answer of status 200 has begun, and calls `ended` once afterwards. */
  async follow({ path, timeoutMs, maxLineBytes, line, missed, ended }: EngineStream): Promise<void> {
    const answer = await this.open(path, timeoutMs)
    const splitter = new LineSplitter(maxLineBytes)
    let tooLong = 0
    const fail = (message: string) => ended(new EngineError(message))
    answer.on('data', (chunk: Buffer) => {
      for (const bytes of splitter.lines(chunk)) line(bytes)
      if (splitter.tooLong > tooLong) missed()
      tooLong = splitter.tooLong
    })
    answer.once('end', () => fail('the daemon ended the stream of events'))
    answer.once('error', error => fail(`the answer to ${path} broke off: ${error.message}`))
  }

  /** Ends all that is under way, and refuses more. */
  close(): void {
    this.closing.abort()
    this.dialer.close()
  }

  /** An answer of status 200 whose body is to be read. */
  private async open(path: string, timeoutMs: number): Promise<IncomingMessage> {
    const { signal: stop } = this.closing
    const headers = { host: this.host, connection: 'close' }
    const call = request({ path, headers, createConnection: dialed(this.dialer) })
    const answer = await headOf(call, { timeoutMs, stop }).catch((fault: HttpFault) => {
      throw fault.why === 'late' ? tooLate(path, timeoutMs) : engineError(fault)
    })
    if (answer.statusCode === 200) return answer
    throw await refusal(answer, path, timeoutMs)
  }
}

function tooLate(path: string, timeoutMs: number): EngineError {
  return new EngineError(`no answer to ${path} came within ${timeoutMs} ms`)
}

function engineError(fault: HttpFault): EngineError {
  const { cause, message } = fault
  if (fault.why === 'stopped') return new EngineError('nobody asks any more')
  const code = errorCode(cause)
  // A daemon that does not trust us may say so after the handshake (RFC 8446, section 4.4.2.4).
  const isTls = cause instanceof ConnectError ? cause.type === 'tls' : code.startsWith('ERR_SSL_')
  return new EngineError(message, { code, isTls, cause })
}

/** Docker says in JSON why it refuses (`{"message": "…"}`). */
async function refusal(answer: IncomingMessage, path: string, timeoutMs: number): Promise<EngineError> {
  const status = answer.statusCode ?? 0
  // The status says enough where the rest does not come.
  const { bytes } = await startOf(answer, maxReasonBytes, timeoutMs).catch(() => ({ bytes: Buffer.alloc(0) }))
  const reason = textOf(parseObject(bytes)?.message, 200)
  return new EngineError(`HTTP ${status} to ${path}${reason === '' ? '' : `: ${reason}`}`, { status })
}
