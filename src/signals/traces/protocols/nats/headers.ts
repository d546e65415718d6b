/** The version line is `NATS/1.0`, followed by a status in messages of the server itself (NATS ADR-4). */
const version = 'NATS/1.0'

/** The status at the beginning of headers in `bytes[start, end)`; 0 if there is none. */
export function statusOf(bytes: Buffer, start: number, end: number): number {
  if (start + version.length + 4 > end || bytes[start + version.length] !== 0x20) return 0
  let status = 0
  for (let at = start + version.length + 1; at < start + version.length + 4; at++) {
    const digit = bytes[at]! - 0x30
    if (digit < 0 || digit > 9) return 0
    status = status * 10 + digit
  }
  return status
}
