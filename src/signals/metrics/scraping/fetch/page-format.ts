import type { PageFormat } from '../exposition.ts'
import { printable } from './fetch-error.ts'

/** Accepted page formats, the best first, as requested by Prometheus 3 (scrape/scrape.go, `acceptHeader`). */
export const pageAccept = [
  'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6',
  'application/openmetrics-text;version=0.0.1;q=0.5',
  'text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4',
  'text/plain;version=0.0.4;q=0.3',
  '*/*;q=0.2',
].join(',')

/** `guessed` is the reason why the format was assumed, '' if it was declared; it should be reported once. */
export type FormatVerdict =
  | { readonly format: PageFormat; readonly guessed: string }
  | { readonly fault: string }

/**
 * Format of a page by its Content-Type, as decided by Prometheus 3 (model/textparse/interface.go): by the media type
 * alone, whatever its version. A missing or unknown type means `fallback`, or a fault if that is ''.
 */
export function formatOf(contentType: string, fallback: PageFormat | ''): FormatVerdict {
  const media = contentType === '' ? undefined : mediaType(contentType)
  if (media === 'text/plain') return declared.text
  if (media === 'application/openmetrics-text') return declared.openmetrics
  if (media === 'application/vnd.google.protobuf')
    return { fault: 'the page is in protobuf format, which svc did not request and does not support' }
  const shown = JSON.stringify(printable(contentType, 80))
  const guessed =
    contentType === ''
      ? 'the target sends no Content-Type'
      : media === undefined
        ? `invalid Content-Type ${shown}`
        : `Content-Type ${shown} is not a metrics format`
  if (fallback !== '') return { format: fallback, guessed: `${guessed}; parsed as ${names[fallback]}` }
  return { fault: `${guessed}; set fallback_scrape_protocol, or fix the target` }
}

const declared = {
  text: { format: 'text', guessed: '' },
  openmetrics: { format: 'openmetrics', guessed: '' },
} as const

const names = { text: 'text format 0.0.4', openmetrics: 'OpenMetrics' }

const token = "[!#$%&'*+\\-.^_`|~0-9a-z]+"
const typeForm = new RegExp(`^${token}(?:/${token})?$`)
/** One parameter with the semicolon before it. A value is a token or a quoted string. */
const parameterForm = new RegExp(`\\s*;\\s*(${token})\\s*=\\s*(${token}|"(?:[^"\\\\\\r\\n]|\\\\.)*")`, 'iy')
/** Longer values belong to no known format. */
const maxLength = 1024

/** Type and subtype in lower case; undefined if invalid, as judged by Go's mime.ParseMediaType. */
function mediaType(text: string): string | undefined {
  if (text.length > maxLength) return undefined
  const semicolon = text.indexOf(';')
  const type = (semicolon < 0 ? text : text.slice(0, semicolon)).trim().toLowerCase()
  if (!typeForm.test(type)) return undefined
  return semicolon < 0 || areParameters(text, semicolon) ? type : undefined
}

/** Names must be unique, unless they have the same value. A semicolon at the end is allowed. */
function areParameters(text: string, from: number): boolean {
  const known = new Map<string, string>()
  let at = from
  for (;;) {
    parameterForm.lastIndex = at
    const [all = '', name = '', value = ''] = parameterForm.exec(text) ?? []
    if (all === '') return /^\s*;?\s*$/.test(text.slice(at))
    const before = known.get(name.toLowerCase())
    if (before !== undefined && before !== value) return false
    known.set(name.toLowerCase(), value)
    at += all.length
  }
}
