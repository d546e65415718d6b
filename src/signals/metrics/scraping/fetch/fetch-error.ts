/** Where a fetch failed: the label by which failed scrapes are counted. */
export type FetchFault =
  | 'dns'
  | 'connect'
  | 'tls'
  | 'timeout'
  | 'http_status'
  | 'body_too_large'
  | 'bad_encoding'
  | 'redirect'
  /** The peer does not speak HTTP/1.1, or closed the connection early. */
  | 'broken'
  /** Our credentials could not be read, or may not be sent. */
  | 'credentials'
  /** The URL or a header is invalid. */
  | 'settings'
  /** The buffers for pages are exhausted. */
  | 'memory'
  | 'stopped'

/** A failed fetch of a page or a list of targets. The message has the URL, the cause and, if known, a hint. */
export class FetchError extends Error {
  readonly type: FetchFault
  /** HTTP status; 0 without a response. */
  readonly status: number

  constructor(type: FetchFault, message: string, more: { status?: number; cause?: unknown } = {}) {
    super(message, { cause: more.cause })
    this.name = 'FetchError'
    this.type = type
    this.status = more.status ?? 0
  }
}

/** Foreign text for display: one line, without control characters, at most `limit` characters. */
export function printable(text: string, limit = 200): string {
  const plain = text
    .slice(0, 4 * limit)
    .replace(/[\p{Control}\p{Format}]+/gu, ' ')
    .trim()
  return plain.length > limit ? `${plain.slice(0, limit)}…` : plain
}
