/** Size of a text in bytes as UTF-8 if it is above `limit`; otherwise any number up to `limit`. */
export function bytesOver(text: string, limit: number): number {
  // A UTF-16 unit takes at most three bytes: a four-byte character is two units.
  return text.length * 3 <= limit ? 0 : Buffer.byteLength(text)
}

/**
 * Longest prefix of a text that takes at most `limit` bytes as UTF-8, without splitting a character; the text itself if
 * it is short enough. A lone surrogate counts as the U+FFFD that replaces it on the wire: three bytes.
 */
export function cutText(text: string, limit: number): string {
  if (bytesOver(text, limit) <= limit) return text
  let bytes = 0
  for (let i = 0; i < text.length; ) {
    const code = text.charCodeAt(i)
    const pair = code >= 0xd800 && code < 0xdc00 && isLowSurrogate(text.charCodeAt(i + 1))
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : pair ? 4 : 3
    if (bytes > limit) return text.slice(0, i)
    i += pair ? 2 : 1
  }
  return text
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code < 0xe000
}
