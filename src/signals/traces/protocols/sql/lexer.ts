import type { SqlDialect } from './dialect.ts'
import { type Keyword, keywordOf } from './keywords.ts'

/** Kinds of tokens. `name`: a quoted identifier; `value`: a literal or a parameter; `sign`: any other character. */
export const Token = {
  end: 0,
  word: 1,
  name: 2,
  literal: 3,
  parameter: 4,
  open: 5,
  close: 6,
  comma: 7,
  semicolon: 8,
  dot: 9,
  sign: 10,
} as const
export type Token = (typeof Token)[keyof typeof Token]

/** Class of a byte at the beginning of a token; 0: a sign. */
const blank = 1
const letter = 2
const digit = 3

const classes = new Uint8Array(256)
for (let byte = 0; byte < 256; byte++) {
  if (byte <= 0x20 || byte === 0x7f) classes[byte] = blank
  else if (byte >= 0x30 && byte <= 0x39) classes[byte] = digit
  else if (byte >= 0x80 || byte === 0x5f || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a))
    classes[byte] = letter
}

/** Set for the letters of PostgreSQL's and MySQL's E'', B'', X'' and N''. */
const prefixes = new Uint8Array(256)
for (const text of 'EeBbXxNn') prefixes[text.charCodeAt(0)] = 1

/**
 * Splits SQL into tokens, in one pass. A literal whose end is missing or ambiguous reaches to the end of the text, so
 * that no byte of a literal is ever taken for something else.
 */
export class SqlLexer {
  /** The newest token is `bytes[start, end)`. */
  bytes: Buffer = Buffer.alloc(0)
  start = 0
  end = 0
  /** Blanks or comments preceded it. */
  spaced = false
  /** The keyword of a word token. */
  keyword: Keyword | undefined = undefined
  #at = 0
  #limit = 0
  #whole = true
  #mysql = false
  #dialect: SqlDialect | undefined

  /** Begins with `bytes[start, end)`. `whole`: the text is complete. */
  reset(bytes: Buffer, start: number, end: number, whole: boolean, dialect: SqlDialect): void {
    this.bytes = bytes
    this.#at = start
    this.#limit = end
    this.#whole = whole
    this.#mysql = dialect.mysql
    this.#dialect = dialect
    this.start = start
    this.end = start
  }

  next(): Token {
    this.keyword = undefined
    this.#skipBlanks()
    const { bytes } = this
    const at = this.#at
    const limit = this.#limit
    this.start = at
    const token = at < limit ? this.#token(bytes[at]!) : Token.end
    this.end = this.#at
    // In a truncated text, the last word may be incomplete.
    if (token === Token.word && this.end === limit && !this.#whole) return Token.end
    return token
  }

  #token(first: number): Token {
    const { bytes } = this
    const at = this.#at
    const following = this.#byteAt(at + 1)
    switch (classes[first]) {
      case letter:
        if (prefixes[first] === 1 && following === 0x27) return this.#prefixed(first)
        return this.#word()
      case digit:
        return this.#number()
      default:
    }
    switch (first) {
      case 0x27: // '
        return this.#literal(0x27, at + 1, this.#dialect!.backslash)
      case 0x22: // "
        return this.#mysql ? this.#literal(0x22, at + 1, this.#dialect!.backslash) : this.#name(0x22)
      case 0x60: // `
        return this.#mysql ? this.#name(0x60) : this.#single(Token.sign)
      case 0x24: // $
        return classes[following] === digit ? this.#parameter() : this.#dollar()
      case 0x3f: // ?: an operator in PostgreSQL
        return this.#single(this.#mysql ? Token.parameter : Token.sign)
      case 0x28:
        return this.#single(Token.open)
      case 0x29:
        return this.#single(Token.close)
      case 0x2c:
        return this.#single(Token.comma)
      case 0x3b:
        return this.#single(Token.semicolon)
      case 0x2e:
        if (classes[following] === digit && classes[bytes[at - 1] ?? 0] !== letter) return this.#number()
        return this.#single(Token.dot)
      default:
        return this.#single(Token.sign)
    }
  }

  #single(token: Token): Token {
    this.#at++
    return token
  }

  #word(): Token {
    const { bytes } = this
    const limit = this.#limit
    let at = this.#at
    do at++
    while (at < limit && (classes[bytes[at]!]! >= letter || bytes[at] === 0x24))
    this.keyword = keywordOf(bytes, this.#at, at)
    this.#at = at
    return Token.word
  }

  /**
   * Anything that begins with a digit, up to the first byte that cannot be part of a number: 0x1f, 1.5e-3, 1_000,
   * 12months.
   */
  #number(): Token {
    const { bytes } = this
    const limit = this.#limit
    const hexadecimal = (this.#byteAt(this.#at + 1) | 0x20) === 0x78
    let at = this.#at
    for (at++; at < limit; at++) {
      const byte = bytes[at]!
      if (classes[byte]! >= letter || byte === 0x2e) continue
      const exponent = (byte === 0x2b || byte === 0x2d) && (bytes[at - 1]! | 0x20) === 0x65 && !hexadecimal
      if (!exponent || classes[this.#byteAt(at + 1)] !== digit) break
    }
    this.#at = at
    return Token.literal
  }

  #parameter(): Token {
    do this.#at++
    while (classes[this.#byteAt(this.#at)] === digit)
    return Token.parameter
  }

  #prefixed(first: number): Token {
    const escapes = (first | 0x20) === 0x65 && !this.#mysql
    return this.#literal(0x27, this.#at + 2, escapes ? 'escape' : this.#dialect!.backslash)
  }

  /** A literal whose text begins at `at`. */
  #literal(quote: number, at: number, backslash: SqlDialect['backslash']): Token {
    const { bytes } = this
    const limit = this.#limit
    for (let i = at; i < limit; i++) {
      const byte = bytes[i]!
      if (byte === 0x5c && backslash !== 'plain') {
        // If it is unknown whether this quote ends the literal, the rest of the text counts as part of it.
        if (backslash === 'unknown' && bytes[i + 1] === quote) break
        if (backslash === 'escape') i++
      } else if (byte === quote) {
        if (this.#byteAt(i + 1) !== quote) return this.#until(i + 1)
        i++
      }
    }
    return this.#until(limit)
  }

  #until(at: number): Token {
    this.#at = Math.min(at, this.#limit)
    return Token.literal
  }

  /** A quoted identifier. Without its end it is not one. */
  #name(quote: number): Token {
    const { bytes } = this
    const limit = this.#limit
    for (let i = this.#at + 1; i < limit; i++) {
      if (bytes[i] !== quote) continue
      if (this.#byteAt(i + 1) === quote) i++
      else {
        this.#at = i + 1
        return Token.name
      }
    }
    return this.#until(limit)
  }

  /** `$tag$text$tag$` (PostgreSQL 15, section 4.1.2.4). */
  #dollar(): Token {
    const { bytes } = this
    const at = this.#at
    const limit = this.#limit
    let tagEnd = at + 1
    while (tagEnd < limit && classes[bytes[tagEnd]!]! >= letter) tagEnd++
    if (this.#byteAt(tagEnd) !== 0x24) {
      if (tagEnd >= limit) return this.#until(limit)
      return this.#single(Token.sign)
    }
    const length = tagEnd + 1 - at
    for (let i = tagEnd + 1; i + length <= limit; i++)
      if (bytes[i] === 0x24 && this.#repeats(i, length)) return this.#until(i + length)
    return this.#until(limit)
  }

  /**
   * True if the `length` bytes at `from` equal those at `at`. Only the first and the last of them are `$`, so the total
   * time is linear.
   */
  #repeats(from: number, length: number): boolean {
    const { bytes } = this
    const at = this.#at
    for (let i = 0; i < length; i++) if (bytes[from + i] !== bytes[at + i]) return false
    return true
  }

  #skipBlanks(): void {
    const { bytes } = this
    const limit = this.#limit
    const from = this.#at
    for (;;) {
      while (this.#at < limit && classes[bytes[this.#at]!] === blank) this.#at++
      const first = this.#byteAt(this.#at)
      const second = this.#byteAt(this.#at + 1)
      if (first === 0x2d && second === 0x2d && this.#dashesComment()) this.#skipLine()
      else if (first === 0x23 && this.#mysql) this.#skipLine()
      else if (first === 0x2f && second === 0x2a) this.#skipComment()
      else if (first === 0x2a && second === 0x2f && this.#mysql) this.#at += 2
      else break
    }
    this.spaced = this.#at > from
  }

  /** MySQL requires a blank after the dashes (section 11.7). */
  #dashesComment(): boolean {
    const third = this.#at + 2
    return !this.#mysql || third >= this.#limit || classes[this.bytes[third]!] === blank
  }

  #skipLine(): void {
    // Buffer.indexOf would continue beyond the statement, where there may be many bytes.
    while (this.#at < this.#limit && this.bytes[this.#at++] !== 0x0a);
  }

  /** MySQL executes a comment that begins with `!` (section 11.7), and does not nest comments; PostgreSQL does. */
  #skipComment(): void {
    const { bytes } = this
    const limit = this.#limit
    const mysql = this.#mysql
    let at = this.#at + 2
    if (
      mysql &&
      (this.#byteAt(at) === 0x21 || (this.#byteAt(at) === 0x4d && this.#byteAt(at + 1) === 0x21))
    ) {
      at += bytes[at] === 0x21 ? 1 : 2
      while (classes[this.#byteAt(at)] === digit) at++
      this.#at = at
      return
    }
    for (let depth = 1; depth > 0; at++) {
      if (at >= limit) break
      if (bytes[at] === 0x2a && this.#byteAt(at + 1) === 0x2f) {
        depth--
        at++
      } else if (!mysql && bytes[at] === 0x2f && this.#byteAt(at + 1) === 0x2a) {
        depth++
        at++
      }
    }
    this.#at = Math.min(at, limit)
  }

  #byteAt(at: number): number {
    return at < this.#limit ? this.bytes[at]! : 0
  }
}

/** Copies the newest token to `to`, which has room, and returns its end offset. */
export function copyToken(lexer: SqlLexer, to: Buffer, at: number): number {
  // Tokens are short: a native call takes longer than copying the bytes of most.
  const { bytes, end } = lexer
  let next = at
  for (let i = lexer.start; i < end; i++) to[next++] = bytes[i]!
  return next
}
