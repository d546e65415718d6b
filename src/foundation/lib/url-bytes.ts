/**
 * Builds a URL, or a part of one, in bytes, with its secrets redacted. Truncated when full. The bytes are reused: read
 * the text before the next `clear`.
 */
export class UrlBytes {
  readonly bytes: Buffer
  length = 0

  constructor(capacity: number) {
    this.bytes = Buffer.alloc(capacity)
  }

  clear(): void {
    this.length = 0
  }

  /** Adds text, keeping only the Latin-1 byte of each character. */
  addText(text: string): void {
    const size = Math.min(text.length, this.bytes.length - this.length)
    for (let i = 0; i < size; i++) this.bytes[this.length + i] = text.charCodeAt(i)
    this.length += size
  }

  /** Adds a whole number of at most 65,535 in decimal. */
  addNumber(value: number): void {
    let unit = 10_000
    while (unit > 1 && value < unit) unit /= 10
    for (; unit >= 1; unit /= 10) {
      if (this.length >= this.bytes.length) return
      this.bytes[this.length++] = 0x30 + (Math.floor(value / unit) % 10)
    }
  }

  addBytes(source: Uint8Array, start: number, end: number): void {
    const size = Math.min(end - start, this.bytes.length - this.length)
    for (let i = 0; i < size; i++) this.bytes[this.length + i] = source[start + i]!
    this.length += Math.max(0, size)
  }

  /** Adds a query (without its `?`), with the values of sensitive keys replaced by REDACTED. */
  addQuery(source: Uint8Array, start: number, end: number): void {
    let at = start
    while (at < end) {
      let equals = -1
      let stop = at
      while (stop < end && source[stop] !== ampersand) {
        if (equals < 0 && source[stop] === equalsSign) equals = stop
        stop++
      }
      if (equals >= 0 && isSensitive(source, at, equals)) {
        this.addBytes(source, at, equals + 1)
        this.addText('REDACTED')
      } else {
        this.addBytes(source, at, stop)
      }
      if (stop < end) this.addBytes(source, stop, stop + 1)
      at = stop + 1
    }
  }
}

const ampersand = 0x26
const equalsSign = 0x3d
const percent = 0x25

/** Keys of signed URLs whose values the HTTP conventions redact; matched exactly, case-sensitive. */
const sensitiveKeys = [
  'AWSAccessKeyId',
  'Signature',
  'X-Amz-Credential',
  'X-Amz-Security-Token',
  'X-Amz-Signature',
  'X-Goog-Signature',
  'sig',
]

function isSensitive(source: Uint8Array, start: number, end: number): boolean {
  const first = source[start]!
  for (const key of sensitiveKeys)
    if ((first === key.charCodeAt(0) || first === percent) && spells(source, start, end, key)) return true
  return false
}

/** True when the bytes, percent-decoded, are exactly `key`. */
function spells(source: Uint8Array, start: number, end: number, key: string): boolean {
  let at = start
  for (let i = 0; i < key.length; i++) {
    if (at >= end) return false
    let byte = source[at]!
    if (byte === percent && at + 2 < end) {
      byte = (hexDigit(source[at + 1]!) << 4) | hexDigit(source[at + 2]!)
      at += 2
    }
    if (byte !== key.charCodeAt(i)) return false
    at++
  }
  return at === end
}

/** The value of a hexadecimal digit, or a number that no digit has. */
function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : 0x100
}
