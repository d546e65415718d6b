/** Head of an HTTP/1 response to a GET request, as far as it is needed (RFC 9112). */
export interface AnswerHead {
  readonly status: number
  /** Reason phrase, unchanged. */
  readonly reason: string
  /** -1 if missing. */
  readonly length: number
  readonly chunked: boolean
  /** Whether the connection can be reused after the body. */
  readonly keepAlive: boolean
  /** In lower case; '' for none. */
  readonly encoding: string
  readonly contentType: string
  readonly location: string
}

/**
 * Parses a head of limited length, without the empty line at its end, in linear time. Lines may end in LF alone, as
 * from shell scripts. Returns the reason if it is invalid.
 */
export function parseAnswerHead(text: string): AnswerHead | string {
  const first = lineEnd(text, 0)
  const start = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: (.*))?$/.exec(line(text, 0, first))
  if (start === null) return 'the first line is not an HTTP/1.1 response'
  const head = {
    status: Number(start[2]),
    reason: start[3] ?? '',
    length: -1,
    chunked: false,
    keepAlive: start[1] === '1',
    encoding: '',
    contentType: '',
    location: '',
  }
  for (let from = first + 1; from < text.length; ) {
    const end = lineEnd(text, from)
    const fault = readField(head, line(text, from, end))
    if (fault !== '') return fault
    from = end + 1
  }
  return head
}

/** A line without its line feed and the carriage return before it. */
function line(text: string, from: number, end: number): string {
  return text.slice(from, text.charCodeAt(end - 1) === 0x0d ? end - 1 : end)
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf('\n', from)
  return end < 0 ? text.length : end
}

/** Returns '' or a fault. */
function readField(head: { -readonly [K in keyof AnswerHead]: AnswerHead[K] }, field: string): string {
  const colon = field.indexOf(':')
  // All names of interest have these lengths.
  if (colon < 8 || colon > 17) return ''
  const value = field.slice(colon + 1).trim()
  switch (field.slice(0, colon).toLowerCase()) {
    case 'content-length':
      return readLength(head, value)
    case 'transfer-encoding':
      if (value.toLowerCase() !== 'chunked' || head.chunked) return 'Transfer-Encoding is not chunked'
      head.chunked = true
      return ''
    case 'connection':
      for (const option of value.toLowerCase().split(',')) {
        if (option.trim() === 'close') head.keepAlive = false
        if (option.trim() === 'keep-alive') head.keepAlive = true
      }
      return ''
    case 'content-encoding':
      head.encoding = head.encoding === '' ? value.toLowerCase() : `${head.encoding}, ${value.toLowerCase()}`
      return ''
    case 'content-type':
      if (head.contentType === '') head.contentType = value
      return ''
    case 'location':
      if (head.location === '') head.location = value
      return ''
    default:
      return ''
  }
}

/** Duplicates must be equal (RFC 9112, section 6.3). */
function readLength(head: { length: number }, value: string): string {
  const length = /^\d{1,15}$/.test(value) ? Number(value) : -1
  if (length < 0 || (head.length >= 0 && head.length !== length))
    return 'Content-Length is invalid, or appears twice with different values'
  head.length = length
  return ''
}
