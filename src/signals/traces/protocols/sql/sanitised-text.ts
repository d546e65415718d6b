import type { Keyword } from './keywords.ts'
import { copyToken, type SqlLexer, Token } from './lexer.ts'

/** Maximum bytes of `db.query.text`. */
export const maxTextBytes = 1024

/** States of the contents of parentheses. */
const mixed = 0
const values = 1

/** Deeper parentheses are not distinguished. */
const maxDepth = 32

/**
 * A statement without its literals: each is `?`, lists of values after IN are `(?)`, and rows of values are represented
 * by the first one. Ends with the last token that has room.
 */
export class SanitisedText {
  readonly bytes: Buffer = Buffer.alloc(maxTextBytes)
  length = 0
  #full = false
  #last: Token = Token.end
  #lastKeyword: Keyword | undefined
  /** In a list after IN that had only values so far; `listed`: one of them was written. */
  #inList = false
  #listed = false
  #listComma = false
  #depth = 0
  readonly #groups = new Uint8Array(maxDepth)
  /** Offset of the comma before the newest row of values; -1 if a different group, or nothing, precedes it. */
  readonly #commas = new Int32Array(maxDepth)
  /** End of the newest group at this depth if it is a row of values that ended at the end of the text. */
  readonly #rowEnds = new Int32Array(maxDepth)

  clear(): void {
    this.length = 0
    this.#full = false
    this.#last = Token.end
    this.#lastKeyword = undefined
    this.#inList = false
    this.#depth = 0
    this.#commas[0] = -1
    this.#rowEnds[0] = -1
    this.#groups[0] = mixed
  }

  /** Adds the lexer's newest token. */
  add(token: Token, lexer: SqlLexer): void {
    if (this.#inList && this.#listTakes(token, lexer)) return
    switch (token) {
      case Token.open:
        this.#open(lexer)
        break
      case Token.close:
        this.#write(lexer, false)
        this.#close()
        break
      case Token.comma:
        this.#comma(lexer)
        break
      case Token.semicolon:
        this.#groups[this.#depth] = mixed
        this.#write(lexer, false)
        break
      case Token.literal:
        this.#writeText('?', lexer.spaced && this.#last !== Token.open)
        break
      case Token.parameter:
        this.#write(lexer, lexer.spaced)
        break
      default:
        if (!isSign(token, lexer)) this.#groups[this.#depth] = mixed
        this.#write(lexer, lexer.spaced)
    }
    this.#last = token
    this.#lastKeyword = lexer.keyword
  }

  #open(lexer: SqlLexer): void {
    const behindIn = this.#lastKeyword === 'IN'
    this.#write(lexer, lexer.spaced || behindIn)
    if (behindIn) {
      this.#inList = true
      this.#listed = false
      this.#listComma = false
    }
    if (this.#last !== Token.comma) this.#commas[this.#depth] = -1
    const row = this.#last === Token.open || this.#lastKeyword === 'VALUES' || this.#commas[this.#depth]! >= 0
    if (this.#depth < maxDepth - 1) this.#depth++
    this.#groups[this.#depth] = row ? values : mixed
    this.#commas[this.#depth] = -1
    this.#rowEnds[this.#depth] = -1
  }

  #close(): void {
    const row = this.#groups[this.#depth] === values
    if (this.#depth > 0) this.#depth--
    const depth = this.#depth
    // A group of only rows of values is not itself a row, but may be a list after IN: it is kept unchanged.
    this.#groups[depth] = mixed
    if (row && this.#commas[depth]! >= 0) {
      this.length = this.#commas[depth]!
      this.#full = false
    }
    this.#rowEnds[depth] = row ? this.length : -1
    this.#commas[depth] = -1
  }

  #comma(lexer: SqlLexer): void {
    const depth = this.#depth
    const behindRow = this.#last === Token.close && this.#rowEnds[depth] === this.length && !this.#full
    this.#commas[depth] = behindRow ? this.length : -1
    this.#write(lexer, false)
  }

  /** True if the token belongs to a list after IN and adds nothing to its first value. */
  #listTakes(token: Token, lexer: SqlLexer): boolean {
    if (token === Token.literal || token === Token.parameter) {
      if (!this.#listed) this.#writeText('?', false)
      this.#listed = true
      this.#listComma = false
      this.#last = token
      return true
    }
    if (token === Token.comma) {
      this.#listComma = true
      return true
    }
    if (isSign(token, lexer)) return true
    this.#inList = false
    if (token !== Token.close && this.#listComma) this.#writeText(',', false)
    return false
  }

  #write(lexer: SqlLexer, spaced: boolean): void {
    const { start, end } = lexer
    const blank = spaced && this.length > 0 && this.#last !== Token.open ? 1 : 0
    if (this.#full || this.length + blank + end - start > maxTextBytes) {
      this.#full = true
      return
    }
    if (blank === 1) this.bytes[this.length++] = 0x20
    this.length = copyToken(lexer, this.bytes, this.length)
  }

  #writeText(text: string, spaced: boolean): void {
    const blank = spaced && this.length > 0 ? 1 : 0
    if (this.#full || this.length + blank + text.length > maxTextBytes) {
      this.#full = true
      return
    }
    if (blank === 1) this.bytes[this.length++] = 0x20
    for (let i = 0; i < text.length; i++) this.bytes[this.length++] = text.charCodeAt(i)
  }
}

/** A plus or minus, which belongs to the number after it. */
function isSign(token: Token, lexer: SqlLexer): boolean {
  if (token !== Token.sign) return false
  const byte = lexer.bytes[lexer.start]
  return byte === 0x2d || byte === 0x2b
}
