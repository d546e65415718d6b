import { Agent, type IncomingMessage, request } from 'node:http'
import { bareHost } from './host-port.ts'
import { bodyOf, type HttpFault, headOf } from './http-answer.ts'

export interface MetadataServiceOptions {
  /** `http://169.254.169.254`; a path in it stands before those that are asked for. */
  readonly endpoint: string
  /** For everything that is asked of it, from now on. */
  readonly timeoutMs: number
}

export interface MetadataRequest {
  readonly path: string
  readonly method?: 'GET' | 'PUT'
  readonly headers?: Readonly<Record<string, string>>
  /** A header that the answer must carry: without it another server has spoken. In lower case. */
  readonly signature?: readonly [name: string, value: string]
}

/** No connection was made; it was, and no whole answer came; an answer of no use came; it was given up from outside. */
export type MetadataFault = 'connect' | 'silent' | 'answer' | 'closed'

/** A question to a metadata service that got no answer, or none of use. */
export class MetadataError extends Error {
  readonly fault: MetadataFault
  /** Of the answer; 0: none came. */
  readonly status: number
  /** What to do about it, where it is known; '' for the usual. */
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

/** Parts in which the time passes. */
const ticks = 20
/** More is not read. User data, which clouds limit to 64 KiB and which may come as base64, has room in it. */
const maxAnswerBytes = 256 * 1024
/** Values of a JSON answer. The largest, of Azure, have some hundred; 250 KiB of `[` take 15 ms to parse. */
const maxParts = 4096
/** Attributes are names and identifiers; the longest, resource identifiers of Azure, have some 300 characters. */
const maxTextLength = 1024

/**
 * One conversation with the metadata service of a cloud: plain HTTP/1.1, with no proxy and no redirect, bounded in time
 * and bytes. Everything rejects with a `MetadataError`.
 */
export class MetadataService {
  /** Scheme, host and port: what may be shown of it. */
  readonly origin: string
  readonly #timeoutMs: number
  /**
   * The time that is left. It is counted rather than read, so that a thread that was busy, as ours is at the start, lets
   * one part pass and not all: the answer may be there since long.
   */
  #ticksLeft = ticks
  readonly #clock: NodeJS.Timeout
  readonly #host: string
  readonly #port: number
  readonly #prefix: string
  readonly #fault: string
  // The runtime's own would go through proxies where NODE_USE_ENV_PROXY says so. A connection for each question: these
  // services are a hop away, and some close a connection that is kept without a word.
  readonly #agent = new Agent()
  /** With the ticks that must be left. */
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

  /** A line of text. */
  async text(wanted: MetadataRequest): Promise<string> {
    const { text } = await this.#ask(wanted, 0)
    const line = metadataText(text.trim())
    if (line === '')
      throw this.#failure(wanted, 'the answer is not a line of text', 'answer', { status: 200 })
    return line
  }

  /**
   * A line of text that is good to have; '' where it cannot be had. It leaves half of the time for what follows, so that
   * it never costs the rest.
   */
  async optionalText(wanted: MetadataRequest): Promise<string> {
    try {
      const { text } = await this.#ask(wanted, Math.floor(this.#ticksLeft / 2))
      return metadataText(text.trim())
    } catch {
      // Many of these are there in some regions, or for some machines, only.
      return ''
    }
  }

  /** A token: what can be sent back in a header. */
  async token(wanted: MetadataRequest): Promise<string> {
    const { text, contentType } = await this.#ask({ ...wanted, method: 'PUT' }, 0)
    const token = text.trim()
    if (!/^[\w+/=.~-]{1,1024}$/.test(token))
      throw this.#failure(wanted, `the answer is not a token${ofType(contentType)}`, 'answer', {
        status: 200,
      })
    return token
  }

  /** The fields of a JSON object. */
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

  /** Ends what runs, and refuses more. */
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

/** Fields of a foreign JSON object; what is not there, or of another type, is not known. */
export class MetadataFields {
  readonly #fields: Readonly<Record<string, unknown>>

  /** @param value anything; what is no object has no fields, and a list of one object has those of that. */
  constructor(value: unknown) {
    const object: unknown = Array.isArray(value) && value.length === 1 ? value[0] : value
    this.#fields =
      typeof object === 'object' && object !== null && !Array.isArray(object) ? { ...object } : {}
  }

  /** A text, or a whole number as text; '' for everything else. */
  text(name: string): string {
    const value = this.#own(name)
    if (typeof value === 'number') return Number.isSafeInteger(value) ? String(value) : ''
    return metadataText(value)
  }

  /** The object of that name; one without fields where there is none. */
  inner(name: string): MetadataFields {
    return new MetadataFields(this.#own(name))
  }

  #own(name: string): unknown {
    return Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined
  }
}

/** One line of Unicode of bounded length; '' for everything else. */
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

/** Whether a JSON text has more than `maxParts` values, at any depth. */
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

/** Beside what was found: a page of HTML is the sign of a proxy. */
function ofType(contentType: string): string {
  const type = /^[\w.+-]+\/[\w.+-]+/.exec(contentType)?.[0] ?? ''
  return type === '' ? '' : ` but ${type.slice(0, 64)}`
}
