import { ByteRange, isBlank } from './byte-range.ts'
import { Authority } from './http-authority.ts'

/**
 * The original client as reported by proxies, in `Forwarded` (RFC 7239) or otherwise the `X-Forwarded-*` fields: the
 * first element of each, which the proxy nearest to the client wrote. Reused; ranges refer to the given bytes.
 */
export class Forwarded {
  /** An IP address, without brackets or port. Empty: unknown or hidden. */
  readonly client = new ByteRange()
  readonly host = new Authority()
  scheme: 'http' | 'https' | '' = ''
  readonly #name = new ByteRange()
  readonly #value = new ByteRange()

  clear(): void {
    this.client.clear()
    this.host.clear()
    this.scheme = ''
  }

  /** Parses the value of a `Forwarded` field. */
  readForwarded(bytes: Uint8Array, field: ByteRange): void {
    let from = field.start
    while (from < field.end) {
      const stop = pairEnd(bytes, from, field.end)
      this.#readPair(bytes, from, stop)
      if (bytes[stop] === comma) return
      from = stop + 1
    }
  }

  /** Parses the value of an `X-Forwarded-For` field. */
  readFor(bytes: Uint8Array, field: ByteRange): void {
    this.#value.set(field.start, elementEnd(bytes, field.start, field.end))
    this.#value.trim(bytes)
    this.#setClient(bytes)
  }

  /** Parses the value of an `X-Forwarded-Host` field. */
  readHost(bytes: Uint8Array, field: ByteRange): void {
    this.#value.set(field.start, elementEnd(bytes, field.start, field.end))
    this.#value.trim(bytes)
    this.host.read(bytes, this.#value.start, this.#value.end)
  }

  /** Parses the value of an `X-Forwarded-Proto` field. */
  readProto(bytes: Uint8Array, field: ByteRange): void {
    this.#value.set(field.start, elementEnd(bytes, field.start, field.end))
    this.#value.trim(bytes)
    this.#setScheme(bytes)
  }

  #readPair(bytes: Uint8Array, start: number, end: number): void {
    let sign = start
    while (sign < end && bytes[sign] !== equals) sign++
    if (sign >= end) return
    this.#name.set(start, sign)
    this.#name.trim(bytes)
    this.#value.set(sign + 1, end)
    this.#value.trim(bytes)
    unquote(bytes, this.#value)
    if (this.#name.spells(bytes, 'for')) this.#setClient(bytes)
    else if (this.#name.spells(bytes, 'host')) this.host.read(bytes, this.#value.start, this.#value.end)
    else if (this.#name.spells(bytes, 'proto')) this.#setScheme(bytes)
  }

  #setScheme(bytes: Uint8Array): void {
    if (this.#value.spells(bytes, 'https')) this.scheme = 'https'
    else if (this.#value.spells(bytes, 'http')) this.scheme = 'http'
  }

  /** Extracts the address from `1.2.3.4`, `1.2.3.4:80`, `2001:db8::1`, `[2001:db8::1]` and `[2001:db8::1]:80`. */
  #setClient(bytes: Uint8Array): void {
    let { start, end } = this.#value
    if (bytes[start] === openBracket) {
      start++
      let stop = start
      while (stop < end && bytes[stop] !== closeBracket) stop++
      end = stop
    } else {
      let colons = 0
      let last = end
      for (let i = start; i < end; i++) {
        if (bytes[i] !== colon) continue
        colons++
        last = i
      }
      if (colons === 1) end = last
    }
    if (isAddress(bytes, start, end)) this.client.set(start, end)
  }
}

const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const semicolon = 0x3b
const equals = 0x3d
const openBracket = 0x5b
const backslash = 0x5c
const closeBracket = 0x5d

/** End of the pair that begins at `start`: a `;` or `,` outside of quotes, in which a backslash escapes. */
function pairEnd(bytes: Uint8Array, start: number, end: number): number {
  let quoted = false
  for (let i = start; i < end; i++) {
    const byte = bytes[i]
    if (byte === quote) quoted = !quoted
    else if (quoted && byte === backslash) i++
    else if (!quoted && (byte === semicolon || byte === comma)) return i
  }
  return end
}

function elementEnd(bytes: Uint8Array, start: number, end: number): number {
  let stop = start
  while (stop < end && bytes[stop] !== comma) stop++
  return stop
}

function unquote(bytes: Uint8Array, value: ByteRange): void {
  if (value.end - value.start < 2 || bytes[value.start] !== quote || bytes[value.end - 1] !== quote) return
  value.start++
  value.end--
  while (value.start < value.end && isBlank(bytes[value.start]!)) value.start++
}

/** Enough to exclude names, `unknown` and the `_hidden` identifiers of RFC 7239, section 6. */
function isAddress(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start < 2 || end - start > 45) return false
  let separators = 0
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!
    const letter = byte | 0x20
    if (byte === 0x2e || byte === colon) separators++
    else if (!(byte >= 0x30 && byte <= 0x39) && !(letter >= 0x61 && letter <= 0x66)) return false
  }
  return separators > 0
}
