// Answers of the management API: bodies encoded once, with their headers, and the one form that all errors have.

/** Codes of the error object. */
export type ErrorCode =
  | 'invalid_request'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'rate_limited'
  | 'internal_error'
  | 'service_unavailable'

/** HTTP status → code and reason phrase. */
const errors: Readonly<Record<number, readonly [code: ErrorCode, phrase: string]>> = {
  400: ['invalid_request', 'Bad Request'],
  401: ['unauthorized', 'Unauthorized'],
  403: ['forbidden', 'Forbidden'],
  404: ['not_found', 'Not Found'],
  405: ['invalid_request', 'Method Not Allowed'],
  408: ['invalid_request', 'Request Timeout'],
  413: ['invalid_request', 'Content Too Large'],
  414: ['invalid_request', 'URI Too Long'],
  417: ['invalid_request', 'Expectation Failed'],
  429: ['rate_limited', 'Too Many Requests'],
  431: ['invalid_request', 'Request Header Fields Too Large'],
  500: ['internal_error', 'Internal Server Error'],
  503: ['service_unavailable', 'Service Unavailable'],
}

export interface Answer {
  readonly status: number
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string | number>>
}

/** An answer with these bytes. No cache may keep it, and no browser may take it for another type. */
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

/** The error object. `message` is one sentence for a person, `details` what a program may want of it. */
export function failure(
  status: number,
  message: string,
  details: Readonly<Record<string, unknown>> = {},
  headers?: Readonly<Record<string, string>>,
): Answer {
  return json(status, { error: errors[status]![0], message, details }, headers)
}

/** An answer as bytes, for a connection whose request could not be read. The connection ends with it. */
export function rawAnswer({ status, body, headers }: Answer): Buffer {
  let head = `HTTP/1.1 ${status} ${errors[status]?.[1] ?? ''}\r\n`
  for (const [name, value] of Object.entries(headers)) head += `${name}: ${value}\r\n`
  return Buffer.concat([
    Buffer.from(`${head}Date: ${new Date().toUTCString()}\r\nConnection: close\r\n\r\n`),
    body,
  ])
}
