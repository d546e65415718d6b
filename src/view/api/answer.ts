// Answers: bodies encoded once, with their headers, and the one form of all errors of a server.

import { STATUS_CODES } from 'node:http'
import type { Live } from './ui/source.ts'

/** HTTP status → code of the error object. */
export const codes = {
  400: 'invalid_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  405: 'invalid_request',
  408: 'invalid_request',
  409: 'invalid_request',
  413: 'invalid_request',
  414: 'invalid_request',
  415: 'invalid_request',
  417: 'invalid_request',
  429: 'rate_limited',
  431: 'invalid_request',
  500: 'internal_error',
  503: 'service_unavailable',
} as const

/** Statuses that come with the error object. */
export type ErrorStatus = keyof typeof codes

export interface Answer {
  readonly status: number
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string | number>>
  /** Content after the body; the length is then unknown. */
  readonly live?: Live<unknown>
}

/** An answer with these bytes, never cached and never sniffed as another type. */
export function answer(
  status: number,
  type: string,
  body: Buffer,
  headers?: Readonly<Record<string, string>>,
): Answer {
  return {
    status,
    body,
    headers: {
      'Content-Type': type,
      'Content-Length': body.length,
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      ...headers,
    },
  }
}

export function json(status: number, value: unknown, headers?: Readonly<Record<string, string>>): Answer {
  return answer(status, 'application/json', Buffer.from(`${JSON.stringify(value)}\n`), headers)
}

/** An answer that starts with `body` and continues. */
export function goingOn(type: string, body: Buffer, live: Live<unknown>): Answer {
  return { ...headersOnly(type), body, live }
}

/** The error object. `message` is one sentence for a person, `details` has data for programs. */
export function failure(
  status: ErrorStatus,
  message: string,
  details: Readonly<Record<string, unknown>> = {},
  headers?: Readonly<Record<string, string>>,
): Answer {
  return json(status, { error: codes[status], message, details }, headers)
}

/** How a server formats errors. */
export type ErrorForm = typeof failure

/** An error as a line of plain text. */
export function plainFailure(
  status: ErrorStatus,
  message: string,
  _details?: Readonly<Record<string, unknown>>,
  headers?: Readonly<Record<string, string>>,
): Answer {
  return answer(status, 'text/plain; charset=utf-8', Buffer.from(`${message}\n`), headers)
}

const nothing = Buffer.alloc(0)

/** An answer to OPTIONS: headers without a body. */
export function noContent(headers: Readonly<Record<string, string>>): Answer {
  return { status: 204, body: nothing, headers }
}

/** The answer to HEAD if the body, and so its length, is unknown. */
export function headersOnly(type: string, more?: Readonly<Record<string, string>>): Answer {
  const { status, headers } = answer(200, type, nothing, more)
  const { 'Content-Length': _, ...others } = headers
  return { status, body: nothing, headers: others }
}

/** An answer as bytes, for a connection whose request could not be read. The connection ends with it. */
export function rawAnswer({ status, body, headers }: Answer): Buffer {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
  for (const [name, value] of Object.entries(headers)) head += `${name}: ${value}\r\n`
  return Buffer.concat([
    Buffer.from(`${head}Date: ${new Date().toUTCString()}\r\nConnection: close\r\n\r\n`),
    body,
  ])
}
