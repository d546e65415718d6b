import { isAscii } from 'node:buffer'

/**
 * Decodes a range of bytes. Each run of bytes that are not UTF-8 becomes one U+FFFD (as in Go's strings.ToValidUTF8; a
 * decoder of the Encoding standard writes one for each part).
 */
export function utf8Text(bytes: Buffer, start: number, end: number): string {
  return plain(bytes, start, end) ? bytes.toString('latin1', start, end) : repaired(bytes, start, end)
}

function plain(bytes: Buffer, start: number, end: number): boolean {
  // Setting up the fast check takes as long as looking at some 60 bytes.
  if (end - start > 64) return isAscii(bytes.subarray(start, end))
  for (let i = start; i < end; i++) if (bytes[i]! >= 0x80) return false
  return true
}

function repaired(buffer: Buffer, start: number, end: number): string {
  let text = ''
  let from = start
  let at = start
  while (at < end) {
    const length = sequenceLength(buffer, at, end)
    if (length > 0) {
      at += length
      continue
    }
    text += `${buffer.toString('utf8', from, at)}\ufffd`
    do at++
    while (at < end && sequenceLength(buffer, at, end) === 0)
    from = at
  }
  return text + buffer.toString('utf8', from, end)
}

/** Length of the UTF-8 sequence that begins at `at` (RFC 3629, section 4), 0 if none does. */
function sequenceLength(bytes: Uint8Array, at: number, end: number): number {
  const first = bytes[at]!
  if (first < 0x80) return 1
  const length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0
  if (length === 0 || at + length > end) return 0
  const second = bytes[at + 1]!
  const least = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80
  const most = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf
  if (second < least || second > most) return 0
  for (let i = 2; i < length; i++) if ((bytes[at + i]! & 0xc0) !== 0x80) return 0
  return length
}
