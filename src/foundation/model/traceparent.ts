import { isBlank } from '../lib/byte-range.ts'

/**
 * Parses a `traceparent` header (W3C Trace Context level 2, §3.2) into the two id arrays. Returns the trace flags that
 * the level defines (1: sampled, 2: random trace id), or -1 and leaves the arrays unchanged if the value is invalid.
 * Surrounding blanks are allowed.
 */
export function parseTraceparent(
  bytes: Uint8Array,
  start: number,
  end: number,
  traceId: Uint8Array,
  spanId: Uint8Array,
): number {
  let from = Math.max(0, start)
  let to = Math.min(end, bytes.length)
  while (from < to && isBlank(bytes[from]!)) from++
  while (to > from && isBlank(bytes[to - 1]!)) to--
  const length = to - from
  if (length < 55) return -1
  const version = hexByte(bytes, from)
  if (version < 0 || version === 0xff) return -1
  // Later versions may only add fields after another dash (§3.2.4 of the level 2 draft, "versioning").
  if (length > 55 && (version === 0 || bytes[from + 55] !== dash)) return -1
  if (bytes[from + 2] !== dash || bytes[from + 35] !== dash || bytes[from + 52] !== dash) return -1
  if (!isId(bytes, from + 3, 16) || !isId(bytes, from + 36, 8)) return -1
  const flags = hexByte(bytes, from + 53)
  if (flags < 0) return -1
  for (let i = 0; i < 16; i++) traceId[i] = hexByte(bytes, from + 3 + 2 * i)
  for (let i = 0; i < 8; i++) spanId[i] = hexByte(bytes, from + 36 + 2 * i)
  return flags & 3
}

const dash = 0x2d

/** Lower-case hexadecimal digits only, as the specification requires. */
const hexDigits = new Int8Array(256).fill(-1)
for (let i = 0; i < 16; i++) hexDigits['0123456789abcdef'.charCodeAt(i)] = i

/** The byte of two hexadecimal digits, or a negative number. */
function hexByte(bytes: Uint8Array, at: number): number {
  const high = hexDigits[bytes[at]!]!
  const low = hexDigits[bytes[at + 1]!]!
  return high < 0 || low < 0 ? -1 : (high << 4) | low
}

/** True for `size` bytes in hexadecimal that are not all zero. */
function isId(bytes: Uint8Array, start: number, size: number): boolean {
  let any = 0
  for (let i = 0; i < size; i++) {
    const byte = hexByte(bytes, start + 2 * i)
    if (byte < 0) return false
    any |= byte
  }
  return any !== 0
}
