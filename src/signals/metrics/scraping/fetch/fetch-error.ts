/** Where a fetch ended: what `svc` counts failed scrapes by. */
export type FetchFault =
  | 'dns'
  | 'connect'
  | 'tls'
  | 'timeout'
  | 'http_status'
  | 'body_too_large'
  | 'bad_encoding'
  | 'redirect'
  /** The other side speaks no HTTP/1.1, or broke off. */
  | 'broken'
  /** Ours could not be read, or may not be sent. */
  | 'credentials'
  /** The URL or a header cannot be used. */
  | 'settings'
  /** The pages that are being read take all that they may. */
  | 'memory'
  | 'stopped'

/** A page, or a list of targets, that could not be had. The message names it, the cause and, where known, the hint. */
export class FetchError extends Error {
  readonly type: FetchFault
  /** Of HTTP, 0: none came. */
  readonly status: number

  constructor(type: FetchFault, message: string, more: { status?: number; cause?: unknown } = {}) {
    super(message, { cause: more.cause })
    this.name = 'FetchError'
    this.type = type
    this.status = more.status ?? 0
  }
}

/** Foreign text for people: in one line, without control characters, and not longer than `limit`. */
export function printable(text: string, limit = 200): string {
  const plain = text
    .slice(0, 4 * limit)
    .replace(/[\p{Control}\p{Format}]+/gu, ' ')
    .trim()
  return plain.length > limit ? `${plain.slice(0, limit)}…` : plain
}
