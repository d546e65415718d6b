/**
 * The beginning of a text, at most this many bytes of UTF-8, as an independent string: the result of `slice`, `split`
 * or a regular expression keeps the whole text in memory.
 */
export function ownText(text: string, mostBytes: number): string {
  const bytes = Buffer.from(text.length > mostBytes ? text.slice(0, mostBytes) : text)
  let end = Math.min(bytes.length, mostBytes)
  // Do not cut within a character.
  while (end > 0 && end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}
