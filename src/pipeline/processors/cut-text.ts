/** Bytes that a text takes as UTF-8 where it is longer than `limit`; `limit` or less tells only that it is not. */
export function bytesOver(text: string, limit: number): number {
  // A UTF-16 unit takes three bytes at most: a character of four is two units.
  return text.length * 3 <= limit ? 0 : Buffer.byteLength(text)
}

/**
 * The longest beginning of a text that takes at most `limit` bytes as UTF-8, ended between two characters; the text
 * itself where it fits. A lone surrogate counts as the U+FFFD that stands for it on the wire: three bytes.
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
