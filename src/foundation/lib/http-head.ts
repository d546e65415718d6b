import { ByteRange, isBlank, lower } from './byte-range.ts'
import { Authority } from './http-authority.ts'
import { Forwarded } from './http-forwarded.ts'

/**
 * The head of one HTTP/1 request, possibly truncated after any byte: the request line and a few header fields, as
 * ranges of the source bytes. Reused; `read` resets everything and never throws or allocates.
 */
export class RequestHead {
  readonly method = new ByteRange()
  /** Empty for an absolute URL without a path, and if there is none. */
  readonly path = new ByteRange()
  /** False for CONNECT. */
  hasPath = true
  /** After the `?`. */
  readonly query = new ByteRange()
  /** The host in the request target; empty for the common origin form. */
  readonly target = new Authority()
  /** Prefix of the host in the absolute URL of the target: `//` for CONNECT, which has no scheme. */
  scheme: 'http://' | 'https://' | '//' = 'http://'
  /** HTTP version; '' if the line was cut off before it. Request lines exist only in HTTP/1. */
  version: '1.0' | '1.1' | '2' | '' = ''
  readonly host = new Authority()
  readonly userAgent = new ByteRange()
  readonly contentType = new ByteRange()
  readonly forwarded = new Forwarded()

  readonly #forwardedField = new ByteRange()
  readonly #forField = new ByteRange()
  readonly #hostField = new ByteRange()
  readonly #protoField = new ByteRange()
  readonly #word = new ByteRange()

  /**
   * Parses `bytes[start, end)`, which must be inside of `bytes`. False: they do not begin with a request line, or end
   * before the first byte of the target; all fields are then empty.
   */
  read(bytes: Uint8Array, start: number, end: number): boolean {
    this.#clear()
    let from = start
    // Some clients send an empty line after a body (RFC 9112, section 2.2).
    while (from < end && from < start + 2 && (bytes[from] === carriageReturn || bytes[from] === lineFeed))
      from++
    let to = from
    const limit = Math.min(end, from + maxMethodBytes + 1)
    while (to < limit && tokenBytes[bytes[to]!] === 1) to++
    if (to === from || to >= limit || bytes[to] !== space) return false
    this.method.set(from, to)
    from = to + 1
    to = from
    while (to < end && bytes[to]! > space) to++
    if (to === from || !this.#readTarget(bytes, from, to)) return false
    const fields = this.#readVersion(bytes, to, end)
    if (fields < 0) return false
    this.#readFields(bytes, fields, end)
    return true
  }

  #clear(): void {
    this.version = ''
    this.method.clear()
    this.target.clear()
    this.path.clear()
    this.query.clear()
    this.scheme = 'http://'
    this.hasPath = true
    this.host.clear()
    this.userAgent.clear()
    this.contentType.clear()
    this.forwarded.clear()
  }

  /** Distinguishes the four forms of a request target (RFC 9112, section 3.2). */
  #readTarget(bytes: Uint8Array, start: number, end: number): boolean {
    if (bytes[start] === slash) {
      this.#readPath(bytes, start, end)
      return true
    }
    if (bytes[start] === asterisk) {
      this.path.set(start, start + 1)
      return end === start + 1
    }
    if (this.method.spells(bytes, 'connect')) {
      this.scheme = '//'
      this.hasPath = false
      this.target.read(bytes, start, end)
      return !this.target.host.empty
    }
    this.#word.set(start, end)
    if (this.#word.begins(bytes, 'https://')) this.scheme = 'https://'
    else if (!this.#word.begins(bytes, 'http://')) return false
    const authority = start + this.scheme.length
    let stop = authority
    while (stop < end && !endsAuthority(bytes[stop]!)) stop++
    this.target.read(bytes, authority, stop)
    this.#readPath(bytes, stop, end)
    return !this.target.host.empty
  }

  #readPath(bytes: Uint8Array, start: number, end: number): void {
    let stop = start
    while (stop < end && bytes[stop] !== questionMark && bytes[stop] !== numberSign) stop++
    this.path.set(start, stop)
    if (stop >= end || bytes[stop] !== questionMark) return
    const query = stop + 1
    stop = query
    while (stop < end && bytes[stop] !== numberSign) stop++
    this.query.set(query, stop)
  }

  /** Parses ` HTTP/1.x` and the end of the line; returns the start of the fields, or -1 if it does not match. */
  #readVersion(bytes: Uint8Array, start: number, end: number): number {
    for (let i = 0; i < versionPrefix.length; i++) {
      if (start + i >= end) return end
      if (bytes[start + i] !== versionPrefix.charCodeAt(i)) return -1
    }
    const digit = start + versionPrefix.length
    if (digit >= end) return end
    const minor = bytes[digit]! - 0x30
    if (minor < 0 || minor > 9) return -1
    let at = digit + 1
    if (at < end && bytes[at] === carriageReturn) at++
    if (at < end && bytes[at] !== lineFeed) return -1
    // A higher minor version is read as the highest known one (RFC 9110, section 2.5).
    this.version = minor === 0 ? '1.0' : '1.1'
    return Math.min(end, at + 1)
  }

  /** The first of duplicate fields counts; a truncated field does not count. */
  #readFields(bytes: Uint8Array, start: number, end: number): void {
    this.#forwardedField.clear()
    this.#forField.clear()
    this.#hostField.clear()
    this.#protoField.clear()
    let from = start
    while (from < end && bytes[from] !== lineFeed && bytes[from] !== carriageReturn) {
      let stop = from + 1
      while (stop < end && bytes[stop] !== lineFeed) stop++
      if (stop >= end) break
      const first = lower(bytes[from]!)
      if (
        first === letterH ||
        first === letterU ||
        first === letterX ||
        first === letterF ||
        first === letterC
      )
        this.#readField(bytes, from, stop)
      from = stop + 1
    }
    if (!this.#forwardedField.empty) this.forwarded.readForwarded(bytes, this.#forwardedField)
    if (this.forwarded.client.empty && !this.#forField.empty) this.forwarded.readFor(bytes, this.#forField)
    if (this.forwarded.host.host.empty && !this.#hostField.empty)
      this.forwarded.readHost(bytes, this.#hostField)
    if (this.forwarded.scheme === '' && !this.#protoField.empty)
      this.forwarded.readProto(bytes, this.#protoField)
  }

  /** Records `bytes[start, end)`, a line without its line feed, if it is a field of interest. */
  #readField(bytes: Uint8Array, start: number, end: number): void {
    let sign = start
    while (sign < end && bytes[sign] !== colon) sign++
    this.#word.set(start, sign)
    const field = this.#fieldNamed(bytes)
    if (field === undefined || !field.empty) return
    let from = sign + 1
    let to = end
    while (from < to && isBlank(bytes[from]!)) from++
    while (to > from && (isBlank(bytes[to - 1]!) || bytes[to - 1] === carriageReturn)) to--
    field.set(from, to)
    if (field === this.host.whole) this.host.read(bytes, from, to)
  }

  /** The range for the field named by `word`. */
  #fieldNamed(bytes: Uint8Array): ByteRange | undefined {
    const word = this.#word
    switch (word.end - word.start) {
      case 4:
        return word.spells(bytes, 'host') ? this.host.whole : undefined
      case 9:
        return word.spells(bytes, 'forwarded') ? this.#forwardedField : undefined
      case 10:
        return word.spells(bytes, 'user-agent') ? this.userAgent : undefined
      case 12:
        return word.spells(bytes, 'content-type') ? this.contentType : undefined
      case 15:
        return word.spells(bytes, 'x-forwarded-for') ? this.#forField : undefined
      case 16:
        return word.spells(bytes, 'x-forwarded-host') ? this.#hostField : undefined
      case 17:
        return word.spells(bytes, 'x-forwarded-proto') ? this.#protoField : undefined
      default:
        return undefined
    }
  }
}

const maxMethodBytes = 32
const versionPrefix = ' HTTP/1.'

const lineFeed = 0x0a
const carriageReturn = 0x0d
const space = 0x20
const numberSign = 0x23
const asterisk = 0x2a
const slash = 0x2f
const colon = 0x3a
const questionMark = 0x3f
const letterC = 0x63
const letterF = 0x66
const letterH = 0x68
const letterU = 0x75
const letterX = 0x78

/** 1 for bytes that a token may contain (RFC 9110, section 5.6.2). */
const tokenBytes = new Uint8Array(256)
for (const byte of Buffer.from(
  "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
))
  tokenBytes[byte] = 1

/** True if the bytes are a method that `RequestHead` accepts. */
export function isMethod(bytes: Uint8Array, start: number, end: number): boolean {
  if (end <= start || end - start > maxMethodBytes) return false
  for (let at = start; at < end; at++) if (tokenBytes[bytes[at]!] !== 1) return false
  return true
}

function endsAuthority(byte: number): boolean {
  return byte === slash || byte === questionMark || byte === numberSign
}
