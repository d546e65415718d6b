import { STATUS_CODES } from 'node:http'
import { type Receipt, SendError } from '../../foundation/model/batch.ts'
import { messageLimit } from './message-limit.ts'
import { decodeReceipt, decodeStatus } from './otlp/response.ts'
import type { HttpAnswer } from './otlp-http-client.ts'

/** OTLP specification, "OTLP/HTTP Response", retryable response codes. */
const retryable = new Set([429, 502, 503, 504])

/** Error types by status, with the names of their gRPC counterparts, so that they are handled equally. */
const types: Readonly<Record<number, SendError['type']>> = {
  401: 'unauthenticated',
  403: 'permission_denied',
  404: 'unimplemented',
  405: 'unimplemented',
  413: 'too_large',
  501: 'unimplemented',
}

const maxWords = 512
const maxErrorBytes = 64 * 1024

/** Receipt from an answer with status 2xx: the batch was accepted, whatever the body is. */
export function receiptOf({ headers, body, fault }: HttpAnswer): Receipt {
  if (fault !== '') return { rejected: 0, message: `cannot read the answer: ${fault}` }
  try {
    const form = mediaType(headers['content-type'])
    if (form === 'protobuf') return decodeReceipt(body)
    if (form === 'json' && body.length > 0) return jsonReceipt(textOf(body))
  } catch (error) {
    return { rejected: 0, message: `cannot read the answer: ${(error as Error).message}` }
  }
  return { rejected: 0, message: '' } // not OTLP, as from many gateways
}

/**
 * Error for an answer with any other status. `what` starts the message. `share` is the size of the batch in protobuf
 * divided by its size as sent, because limits apply to the form that was sent.
 */
export function refusalOf(what: string, answer: HttpAnswer, share: number): SendError {
  const { status } = answer
  const { message: words, retryAfterMs } = statusOf(answer)
  const limitBytes = retryable.has(status) ? undefined : messageLimit(words)
  const name = STATUS_CODES[status] ?? ''
  const details = [words, hint(answer)].filter(text => text !== '').join('; ')
  return new SendError(`${what}: HTTP ${status}${name && ` ${name}`}${details && `: ${details}`}`, {
    // Some servers answer 400 to a body that is too large, such as those with Go's MaxBytesReader.
    type: limitBytes === undefined ? (types[status] ?? `http_${status}`) : 'too_large',
    retryable: retryable.has(status),
    retryAfterMs: retryable.has(status) ? (retryAfter(answer) ?? retryAfterMs ?? 0) : 0,
    limitBytes: Math.floor((limitBytes ?? 0) * share),
    httpStatus: status,
  })
}

function mediaType(contentType: string | undefined): 'protobuf' | 'json' | 'text' | 'other' {
  const type = (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase()
  if (type === 'application/x-protobuf' || type === 'application/protobuf') return 'protobuf'
  if (type === 'application/json') return 'json'
  return type === 'text/plain' ? 'text' : 'other'
}

interface ErrorText {
  readonly message: string
  readonly retryAfterMs?: number | undefined
}

/** google.rpc.Status in an error body, or its plain text. */
function statusOf({ headers, body }: HttpAnswer): ErrorText {
  if (body.length === 0 || body.length > maxErrorBytes) return { message: '' }
  try {
    switch (mediaType(headers['content-type'])) {
      case 'protobuf': {
        const { message, retryAfterMs } = decodeStatus(body)
        return { message: oneLine(message), retryAfterMs }
      }
      case 'json':
        return { message: oneLine(stringIn(JSON.parse(textOf(body)), 'message')) }
      case 'text':
        return { message: oneLine(textOf(body.subarray(0, 4 * maxWords))) }
      default:
        return { message: '' }
    }
  } catch {
    return { message: '' } // the status is sufficient
  }
}

/** Hint for a status; '' if it depends on the error text. */
function hint(answer: HttpAnswer): string {
  const { status } = answer
  if (status >= 300 && status < 400) {
    const place = location(answer)
    return place === '' ? 'svc does not follow redirects' : `redirect to ${place}; set otlp.endpoint to it`
  }
  if (status === 404 || status === 405) return 'check the path of otlp.endpoint'
  if (status === 415) return 'the receiver does not accept this otlp.protocol or otlp.compression'
  return ''
}

/** Without user, password and query, which may be secrets. */
function location({ headers }: HttpAnswer): string {
  try {
    const { origin, pathname } = new URL(headers.location ?? '')
    return `${origin}${pathname}`.slice(0, 256)
  } catch {
    return '' // relative or missing: nothing safe to show
  }
}

/** ExportPartialSuccess in JSON: a count is a text or a number. */
function jsonReceipt(text: string): Receipt {
  const partial = field(JSON.parse(text), 'partialSuccess')
  let rejected = 0
  for (const name of ['rejectedSpans', 'rejectedDataPoints', 'rejectedLogRecords', 'rejectedProfiles']) {
    const count = Number(field(partial, name) ?? 0)
    if (Number.isSafeInteger(count)) rejected = Math.max(rejected, count)
  }
  return { rejected, message: stringIn(partial, 'errorMessage').slice(0, 8 * maxWords) }
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
}

function stringIn(value: unknown, name: string): string {
  const found = field(value, name)
  return typeof found === 'string' ? found : ''
}

function oneLine(text: string): string {
  return text
    .slice(0, maxWords)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
}

function textOf(body: Uint8Array): string {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')
}

/** `Retry-After` in milliseconds (RFC 9110, section 10.2.3); undefined if missing or invalid. */
function retryAfter({ headers }: HttpAnswer): number | undefined {
  const text = headers['retry-after']?.trim() ?? ''
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  const at = httpDate(text)
  if (at === undefined) return undefined
  // Relative to the server's clock if it sends one, as ours may differ.
  return Math.max(0, at - (httpDate(headers.date ?? '') ?? Date.now()))
}

/** Any of the three forms of an HTTP date (RFC 9110, section 5.6.7), in milliseconds since the epoch. */
function httpDate(text: string): number | undefined {
  if (text.length > 64 || !/^[A-Z][a-z]{2,8},? /.test(text)) return undefined
  // The oldest form names no zone, and would be read as local time.
  const at = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`)
  return Number.isNaN(at) ? undefined : at
}
