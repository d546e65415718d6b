import { isDigit } from '../../foundation/lib/ascii.ts'

/** Error texts of servers for a request over their limit. */
const complaints = [
  'message larger than max', // gRPC in Go, C++ and JavaScript
  'after decompression larger than max', // Go
  'message that decompresses to a size larger than', // JavaScript
  'message exceeds maximum size', // Java
  'message exceeds the maximum configured message size', // .NET
  'max message size exceeded', // older C++
  'message length too large', // Rust
  'exceeded while decompressing message', // Rust
  'request body too large', // Go, net/http
]

/** Texts before the number of the limit, the most reliable first. */
const markers = [
  ' vs. ',
  ' vs ',
  'maximum size ',
  'limit is: ',
  'size limit, of ',
  'larger than max ',
  'larger than ',
]

const maxDigits = 15

/**
 * Limit in bytes from the error text of a receiver for a request over it; 0 if the text has no number, undefined for
 * any other error.
 */
export function messageLimit(words: string): number | undefined {
  const text = words.toLowerCase()
  if (!complaints.some(complaint => text.includes(complaint))) return undefined
  for (const marker of markers) {
    const limit = numberAfter(text, marker)
    if (limit > 0) return limit
  }
  return 0
}

function numberAfter(text: string, marker: string): number {
  const found = text.indexOf(marker)
  if (found < 0) return 0
  const start = found + marker.length
  let end = start
  while (end < text.length && isDigit(text.charCodeAt(end))) end++
  return end - start > maxDigits ? 0 : Number(text.slice(start, end))
}
