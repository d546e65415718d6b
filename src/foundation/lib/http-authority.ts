import { ByteRange } from './byte-range.ts'

/** `[user@]host[:port]` of a URL or a Host field, as ranges of the source bytes. Reused. */
export class Authority {
  /** Host and port, without user information. */
  readonly whole = new ByteRange()
  /** The host, without the brackets of an IPv6 address. Empty: invalid input. */
  readonly host = new ByteRange()
  /** 0: none given. */
  port = 0
  hasUser = false

  clear(): void {
    this.whole.clear()
    this.host.clear()
    this.port = 0
    this.hasUser = false
  }

  /** Parses RFC 3986, section 3.2. Stays empty if the bytes are not an authority. */
  read(bytes: Uint8Array, start: number, end: number): void {
    this.clear()
    let from = start
    for (let i = start; i < end; i++) if (bytes[i] === at) from = i + 1
    if (end - from > maxBytes || end <= from) return
    const portStart = this.#readHost(bytes, from, end)
    if (this.host.empty) return
    const port = readPort(bytes, portStart, end)
    if (port < 0) {
      this.host.clear()
      return
    }
    this.port = port
    this.hasUser = from > start
    this.whole.set(from, end)
  }

  /** Sets the host and returns its end. */
  #readHost(bytes: Uint8Array, start: number, end: number): number {
    let stop = start
    if (bytes[start] === openBracket) {
      stop++
      while (stop < end && isHostByte(bytes[stop]!)) stop++
      if (bytes[stop] !== closeBracket || stop >= end) return end
      this.host.set(start + 1, stop)
      return stop + 1
    }
    while (stop < end && bytes[stop] !== colon) {
      if (!isHostByte(bytes[stop]!)) return stop
      stop++
    }
    this.host.set(start, stop)
    return stop
  }
}

/** The longest DNS name, including brackets or a port. */
const maxBytes = 261

const colon = 0x3a
const at = 0x40
const openBracket = 0x5b
const closeBracket = 0x5d

/** The number after the colon, 0 for none, -1 if invalid. */
function readPort(bytes: Uint8Array, start: number, end: number): number {
  if (start >= end) return 0
  if (bytes[start] !== colon) return -1
  let port = 0
  for (let i = start + 1; i < end; i++) {
    const digit = bytes[i]! - 0x30
    if (digit < 0 || digit > 9) return -1
    port = port * 10 + digit
    if (port > 65_535) return -1
  }
  return port
}

/** Letters, digits and `-._~%!$&'()*+,;=`: no blanks, quotes, slashes, brackets or bytes beyond ASCII. */
function isHostByte(byte: number): boolean {
  return (
    byte > 0x20 &&
    byte < 0x7f &&
    byte !== 0x22 &&
    byte !== 0x2f &&
    byte !== openBracket &&
    byte !== closeBracket
  )
}
