import { Agent, type IncomingMessage, request } from 'node:http'
import { bareHost } from './host-port.ts'
import { bodyOf, type HttpFault, headOf } from './http-answer.ts'

export interface MetadataServiceOptions {
  /** `http://169.254.169.254`; a path in it is prepended to requested paths. */
  readonly endpoint: string
  /** For all requests together, from now on. */
  readonly timeoutMs: number
}

export interface MetadataRequest {
  readonly path: string
  readonly method?: 'GET' | 'PUT'
  readonly headers?: Readonly<Record<string, string>>
  /** A header that the response must have: otherwise it came from another server. In lower case. */
  readonly signature?: readonly [name: string, value: string]
}

/** No connection; a connection but no complete response; an unusable response; closed by the caller. */
export type MetadataFault = 'connect' | 'silent' | 'answer' | 'closed'

/** A metadata request failed. */
export class MetadataError extends Error {
  readonly fault: MetadataFault
  /** Status of the response; 0: none. */
  readonly status: number
  /** What to do about it, if known; '' for the default. */
  readonly hint: string

  constructor(
    message: string,
    fault: MetadataFault,
    more: { status?: number; hint?: string; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause })
    this.name = 'MetadataError'
    this.fault = fault
    this.status = more.status ?? 0
    this.hint = more.hint ?? ''
  }
}

interface Answer {
  readonly text: string
  readonly contentType: string
}

/** The timeout is divided into this many ticks. */
const ticks = 20
/** Maximum response. Has room for user data, which clouds limit to 64 KiB and which may be base64. */
const maxAnswerBytes = 256 * 1024
/**
 * Maximum values in a JSON response. The largest ones, of Azure, have a few hundred; 250 KiB of `[` take 15 ms to
 * parse.
 */
const maxParts = 4096
/** Attributes are names and identifiers; the longest, resource ids of Azure, have some 300 characters. */
const maxTextLength = 1024

/**
 * One session with a cloud's metadata service: plain HTTP/1.1, without proxy or redirects, bounded in time and bytes.
 * All methods reject with a `MetadataError`.
 */
export class MetadataService {
  /** Scheme, host and port, without anything secret. */
  readonly origin: string
  readonly #timeoutMs: number
  /**
   * Remaining time. Counted in ticks rather than measured, so that a blocked thread, as at the start, loses one tick
   * instead of everything: the response may have arrived long ago.
   */
  #ticksLeft = ticks
  readonly #clock: NodeJS.Timeout
  readonly #host: string
  readonly #port: number
  readonly #prefix: string
  readonly #fault: string
  // The default agent would use proxies if NODE_USE_ENV_PROXY is set. One connection per request: the services are one
  // hop away, and some silently close kept-alive connections.
  readonly #agent = new Agent()
  /** With the number of ticks that must remain. */
  readonly #running = new Map<AbortController, number>()
  #closed = false

  constructor({ endpoint, timeoutMs }: MetadataServiceOptions) {
    const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined
    this.origin = url?.origin ?? ''
    this.#host = bareHost(url?.hostname ?? '')
    this.#port = Number(url?.port || 80)
    this.#prefix = url?.pathname.replace(/\/+$/, '') ?? ''
    this.#fault = url?.protocol === 'http:' ? '' : 'not an http:// address'
    this.#timeoutMs = timeoutMs
    this.#clock = setInterval(() => this.#tick(), timeoutMs / ticks)
    this.#clock.unref()
  }

  /** Requests one line of text. */
  async text(wanted: MetadataRequest): Promise<string> {
    const { text } = await this.#ask(wanted, 0)
    const line = metadataText(text.trim())
    if (line === '')
      throw this.#failure(wanted, 'the answer is not a line of text', 'answer', { status: 200 })
    return line
  }

  /**
   * Requests an optional line of text; '' if unavailable. Leaves half of the time for later requests, so that it never
   * fails those.
   */
  async optionalText(wanted: MetadataRequest): Promise<string> {
    try {
      const { text } = await this.#ask(wanted, Math.floor(this.#ticksLeft / 2))
      return metadataText(text.trim())
    } catch {
      // Many of these exist only in some regions, or for some machines.
      return ''
    }
  }

  /** Requests a token that can be sent in a header. */
  async token(wanted: MetadataRequest): Promise<string> {
    const { text, contentType } = await this.#ask({ ...wanted, method: 'PUT' }, 0)
    const token = text.trim()
    if (!/^[\w+/=.~-]{1,1024}$/.test(token))
      throw this.#failure(wanted, `the answer is not a token${ofType(contentType)}`, 'answer', {
        status: 200,
      })
    return token
  }

  /** Requests the fields of a JSON object. */
  async fields(wanted: MetadataRequest): Promise<MetadataFields> {
    const { text, contentType } = await this.#ask(wanted, 0)
    if (isIntricate(text))
      throw this.#failure(wanted, `the answer has more than ${maxParts} parts`, 'answer', { status: 200 })
    let parsed: unknown
    try {
      parsed = JSON.parse(text)
    } catch (cause) {
      throw this.#failure(wanted, `the answer is not JSON${ofType(contentType)}`, 'answer', {
        status: 200,
        cause,
      })
    }
    return new MetadataFields(parsed)
  }

  /** Aborts running requests and rejects new ones. */
  close(): void {
    this.#closed = true
    clearInterval(this.#clock)
    for (const ending of [...this.#running.keys()]) ending.abort()
    this.#agent.destroy()
  }

  #tick(): void {
    this.#ticksLeft--
    for (const [ending, atLeast] of [...this.#running]) if (this.#ticksLeft <= atLeast) ending.abort()
    if (this.#ticksLeft <= 0) clearInterval(this.#clock)
  }

  async #ask(wanted: MetadataRequest, atLeast: number): Promise<Answer> {
    if (this.#fault !== '')
      throw new MetadataError(`cannot use the endpoint ${this.origin}: ${this.#fault}`, 'connect', {
        hint: 'use an address that begins with http://; metadata services do not use TLS',
      })
    if (this.#closed) throw this.#failure(wanted, 'cancelled', 'closed')
    if (this.#ticksLeft <= atLeast)
      throw this.#failure(wanted, `timed out: all requests together may take ${this.#timeoutMs} ms`, 'silent')
    const ending = new AbortController()
    const call = request({
      agent: this.#agent,
      host: this.#host,
      port: this.#port,
      method: wanted.method ?? 'GET',
      path: this.#prefix + wanted.path,
      headers: { ...wanted.headers },
    })
    let connected = false
    call.once('socket', socket => {
      connected = !socket.connecting
      socket.once('connect', () => {
        connected = true
      })
    })
    const failure = (error: HttpFault, status: number): MetadataError => {
      const { why, message, cause } = error
      if (this.#closed) return this.#failure(wanted, 'cancelled', 'closed')
      if (ending.signal.aborted)
        return connected
          ? this.#failure(wanted, `no complete answer within ${this.#timeoutMs} ms`, 'silent')
          : this.#failure(wanted, `no connection within ${this.#timeoutMs} ms`, 'connect')
      const text = status === 0 ? message : `the answer ${message.replace(/^it /, '')}`
      const fault = why === 'large' ? 'answer' : connected ? 'silent' : 'connect'
      return this.#failure(wanted, text, fault, { status, cause })
    }
    this.#running.set(ending, atLeast)
    try {
      const stop = ending.signal
      const answer = await headOf(call, { stop }).catch(error => Promise.reject(failure(error, 0)))
      const { statusCode: status = 0, headers } = answer
      const fault = headFault(answer, wanted)
      if (fault !== '') throw this.#failure(wanted, fault, 'answer', { status })
      const body = await bodyOf(answer, maxAnswerBytes).catch(error => Promise.reject(failure(error, status)))
      return { text: body.toString(), contentType: headers['content-type'] ?? '' }
    } finally {
      this.#running.delete(ending)
      call.destroy()
    }
  }

  #failure(
    { path }: MetadataRequest,
    cause: string,
    fault: MetadataFault,
    more: { status?: number; cause?: unknown } = {},
  ): MetadataError {
    return new MetadataError(
      `cannot read ${this.origin}${this.#prefix}${path.replace(/\?.*/, '')}: ${cause}`,
      fault,
      more,
    )
  }
}

/** Fields of a foreign JSON object; a missing one, or one of another type, is unknown. */
export class MetadataFields {
  readonly #fields: Readonly<Record<string, unknown>>

  /**
   * @param value anything; a value that is no object has no fields, and a list of one object has that object's fields.
   */
  constructor(value: unknown) {
    const object: unknown = Array.isArray(value) && value.length === 1 ? value[0] : value
    this.#fields =
      typeof object === 'object' && object !== null && !Array.isArray(object) ? { ...object } : {}
  }

  /** A text, or a whole number as text; otherwise ''. */
  text(name: string): string {
    const value = this.#own(name)
    if (typeof value === 'number') return Number.isSafeInteger(value) ? String(value) : ''
    return metadataText(value)
  }

  /** The object with that name; one without fields if there is none. */
  inner(name: string): MetadataFields {
    return new MetadataFields(this.#own(name))
  }

  #own(name: string): unknown {
    return Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined
  }
}

/** One line of Unicode text of bounded length; otherwise ''. */
export function metadataText(value: unknown): string {
  return typeof value === 'string' && value.length <= maxTextLength && /^[^\p{Cc}\p{Cs}]*$/u.test(value)
    ? value
    : ''
}

function headFault({ statusCode, headers }: IncomingMessage, { signature }: MetadataRequest): string {
  if (statusCode !== undefined && statusCode >= 300 && statusCode < 400)
    return `it redirects (HTTP ${statusCode}), which metadata services never do`
  if (statusCode !== 200) return `HTTP ${statusCode}`
  if (signature !== undefined && headers[signature[0]] !== signature[1])
    return `another server answered: no header ${signature[0]}: ${signature[1]}`
  if (Number(headers['content-length'] ?? 0) > maxAnswerBytes)
    return `the answer is larger than ${maxAnswerBytes} bytes`
  const encoding = headers['content-encoding'] ?? 'identity'
  return encoding === 'identity' ? '' : `the answer is compressed (${encoding.slice(0, 32)})`
}

/** True if a JSON text has more than `maxParts` values, at any depth. */
function isIntricate(text: string): boolean {
  let parts = 0
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (quoted) {
      if (character === '\\') at++
      else quoted = character !== '"'
    } else if (character === '"') quoted = true
    else if (character === ',' || character === '[' || character === '{') {
      if (++parts > maxParts) return true
    }
  }
  return false
}

/** Describes the content type: an HTML page indicates a proxy. */
function ofType(contentType: string): string {
  const type = /^[\w.+-]+\/[\w.+-]+/.exec(contentType)?.[0] ?? ''
  return type === '' ? '' : ` but ${type.slice(0, 64)}`
}
