/** gRPC status codes (grpc/doc/statuscodes.md). */
export const GrpcStatus = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalid_argument: 3,
  deadline_exceeded: 4,
  not_found: 5,
  already_exists: 6,
  permission_denied: 7,
  resource_exhausted: 8,
  failed_precondition: 9,
  aborted: 10,
  out_of_range: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  data_loss: 15,
  unauthenticated: 16,
} as const

export type StatusName = keyof typeof GrpcStatus

const names = Object.keys(GrpcStatus) as StatusName[]

/** A code's name in lower case: `unavailable`. Unknown codes are `unknown`. */
export function statusName(code: number): StatusName {
  return names[code] ?? 'unknown'
}

/** The status for an HTTP response without one of its own (grpc/doc/http-grpc-status-mapping.md). */
export function statusOfHttp(httpStatus: number): number {
  switch (httpStatus) {
    case 400:
      return GrpcStatus.internal
    case 401:
      return GrpcStatus.unauthenticated
    case 403:
      return GrpcStatus.permission_denied
    case 404:
      return GrpcStatus.unimplemented
    case 429:
    case 502:
    case 503:
    case 504:
      return GrpcStatus.unavailable
    default:
      return GrpcStatus.unknown
  }
}

/** Names of HTTP/2 error codes by number (RFC 9113, section 7). */
export const http2Errors = [
  'NO_ERROR',
  'PROTOCOL_ERROR',
  'INTERNAL_ERROR',
  'FLOW_CONTROL_ERROR',
  'SETTINGS_TIMEOUT',
  'STREAM_CLOSED',
  'FRAME_SIZE_ERROR',
  'REFUSED_STREAM',
  'CANCEL',
  'COMPRESSION_ERROR',
  'CONNECT_ERROR',
  'ENHANCE_YOUR_CALM',
  'INADEQUATE_SECURITY',
  'HTTP_1_1_REQUIRED',
] as const

export function resetName(code: number): string {
  return http2Errors[code] ?? `error ${code}`
}

/**
 * The status of a stream that the peer reset (grpc/doc/PROTOCOL-HTTP2.md, "Errors"). Codes that do not blame the
 * request are `unavailable`, so that nothing is dropped because of them: ENHANCE_YOUR_CALM, which asks for a slower
 * pace, and NO_ERROR and INTERNAL_ERROR, which proxies send when they lost the server.
 */
export function statusOfReset(code: number): number {
  switch (http2Errors[code]) {
    case 'NO_ERROR':
    case 'INTERNAL_ERROR':
    case 'REFUSED_STREAM':
    case 'ENHANCE_YOUR_CALM':
      return GrpcStatus.unavailable
    case 'CANCEL':
      return GrpcStatus.cancelled
    case 'INADEQUATE_SECURITY':
      return GrpcStatus.permission_denied
    case undefined:
    case 'STREAM_CLOSED':
    case 'HTTP_1_1_REQUIRED':
      return GrpcStatus.unknown
    default:
      return GrpcStatus.internal
  }
}

/** Decodes a `grpc-message`: percent-encoded UTF-8. Invalid encoding is returned unchanged, as gRPC requires. */
export function decodeStatusMessage(text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text // an error would hide the message
  }
}

/** A call that ended without status ok. */
export class GrpcError extends Error {
  readonly code: number
  /** The code's name, or the transport's fault: `connect`, `dns`, `tls`; `too_large` from a proxy (HTTP 413). */
  readonly type: StatusName | 'connect' | 'dns' | 'tls' | 'too_large'
  /** The bytes of `grpc-status-details-bin` (a google.rpc.Status), undefined if there are none. */
  readonly details: Uint8Array | undefined
  /** The server did not process the request: it may be retried at once. */
  readonly untouched: boolean
  /** The status was ok, but the rest of the response is unreadable. */
  readonly taken: boolean

  constructor(
    message: string,
    options: {
      code: number
      type?: GrpcError['type']
      details?: Uint8Array
      untouched?: boolean
      taken?: boolean
      cause?: unknown
    },
  ) {
    super(message, { cause: options.cause })
    this.name = 'GrpcError'
    this.code = options.code
    this.type = options.type ?? statusName(options.code)
    this.details = options.details
    this.untouched = options.untouched ?? false
    this.taken = options.taken ?? false
  }
}
