import { utf8Text } from './utf8-text.ts'

const newline = 10
const space = 32
const tab = 9
const zero = 48

/**
 * Iterates over the lines of a /proc file and their words, allocating only the requested texts. Words are separated by
 * spaces and tabs. Past a line's end there are empty words and NaN.
 *
 *     const scan = new Scanner(host.proc.bytes('stat'))
 *     while (scan.line()) if (scan.starts('cpu')) { const name = scan.text(); const user = scan.number() }
 */
export class Scanner {
  #bytes: Buffer
  #at = 0
  #end = 0
  #next = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** Starts over on other bytes. */
  reset(bytes: Buffer): this {
    this.#bytes = bytes
    this.#at = this.#end = this.#next = 0
    return this
  }

  /** Moves to the next line. False: there is none. */
  line(): boolean {
    const bytes = this.#bytes
    if (this.#next >= bytes.length) {
      this.#at = this.#end = bytes.length
      return false
    }
    this.#at = this.#next
    const end = bytes.indexOf(newline, this.#at)
    this.#end = end < 0 ? bytes.length : end
    this.#next = this.#end + 1
    return true
  }

  /** True if the rest of the line begins with these ASCII characters. Does not move. */
  starts(prefix: string): boolean {
    const bytes = this.#bytes
    if (this.#at + prefix.length > this.#end) return false
    for (let i = 0; i < prefix.length; i++) if (bytes[this.#at + i] !== prefix.charCodeAt(i)) return false
    return true
  }

  /** The same, and moves past them if so. */
  pass(prefix: string): boolean {
    if (!this.starts(prefix)) return false
    this.#at += prefix.length
    return true
  }

  /** True if only spaces remain in the line. */
  get done(): boolean {
    this.#skipSpace()
    return this.#at >= this.#end
  }

  /** Skips words. */
  skip(words = 1): void {
    for (let i = 0; i < words; i++) {
      this.#skipSpace()
      this.#at = this.#wordEnd()
    }
  }

  /** The next word; '' at the line's end. */
  text(): string {
    this.#skipSpace()
    const start = this.#at
    this.#at = this.#wordEnd()
    return utf8Text(this.#bytes, start, this.#at)
  }

  /** The rest of the line from the next word on, without trailing white space. */
  rest(): string {
    this.#skipSpace()
    const start = this.#at
    this.#at = this.#end
    let end = this.#end
    while (end > start && this.#bytes[end - 1]! <= space) end--
    return utf8Text(this.#bytes, start, end)
  }

  /** The text before a character, which is skipped; the rest if there is none. Not trimmed. */
  until(character: string): string {
    const start = this.#at
    const found = this.#bytes.indexOf(character.charCodeAt(0), start)
    const end = found < 0 || found > this.#end ? this.#end : found
    this.#at = Math.min(end + 1, this.#end)
    return utf8Text(this.#bytes, start, end)
  }

  /** The next word as a decimal number, rounded to a double; NaN if it is none. */
  number(): number {
    this.#skipSpace()
    const bytes = this.#bytes
    const start = this.#at
    const end = this.#wordEnd()
    this.#at = end
    // Up to 15 digits are exact in a double; everything else takes the slow path.
    if (end - start > 15 || end === start) return parse(bytes, start, end)
    let value = 0
    for (let i = start; i < end; i++) {
      const digit = bytes[i]! - zero
      if (digit < 0 || digit > 9) return parse(bytes, start, end)
      value = value * 10 + digit
    }
    return value
  }

  /** The next word as a hexadecimal number without prefix; NaN if it is none. */
  hex(): number {
    this.#skipSpace()
    const bytes = this.#bytes
    const start = this.#at
    const end = this.#wordEnd()
    this.#at = end
    let value = end > start ? 0 : Number.NaN
    for (let i = start; i < end; i++) value = value * 16 + hexDigit(bytes[i]!)
    // Beyond 13 digits each step would round. A word with hundreds of digits exceeds a double.
    if (end - start > 13) value = Number(`0x${utf8Text(bytes, start, end)}`)
    return Number.isFinite(value) ? value : Number.NaN
  }

  #skipSpace(): void {
    const bytes = this.#bytes
    while (this.#at < this.#end && (bytes[this.#at] === space || bytes[this.#at] === tab)) this.#at++
  }

  #wordEnd(): number {
    const bytes = this.#bytes
    let at = this.#at
    while (at < this.#end && bytes[at] !== space && bytes[at] !== tab) at++
    return at
  }
}

/** NaN if the byte is no digit. */
function hexDigit(byte: number): number {
  if (byte >= zero && byte <= zero + 9) return byte - zero
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : Number.NaN
}

function parse(bytes: Buffer, start: number, end: number): number {
  return decimal(utf8Text(bytes, start, end))
}

/** Parses a decimal number; NaN if invalid or beyond a double. `Number` would accept '' and '0x10'. */
export function decimal(text: string): number {
  // Linear time for any text.
  const value = /^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$/.test(text) ? Number(text) : Number.NaN
  return Number.isFinite(value) ? value : Number.NaN
}
