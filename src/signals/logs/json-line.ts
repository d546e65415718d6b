import type { AttributeValue } from '../../foundation/model/attributes.ts'

/** Receives the fields of a JSON object, those of nested objects under joined names (`http.status`). */
export interface JsonFieldTaker {
  field(key: string, value: AttributeValue): void
}

/** Maximum nesting of objects with separate fields; deeper objects are passed on as text. */
const mostDepth = 8
/** Maximum strings of an array; a longer one is passed on as text. */
const mostStrings = 64

/**
 * Reads one JSON object (RFC 8259) and passes on its fields in order. Unlike `JSON.parse`:
 * it keeps the digits of long whole numbers, passed on as text; it does not allocate an object and a string for each
 * field; and it limits the depth. Null and empty objects are not fields. Reused.
 */
export class JsonLine {
  #text = ''
  #at = 0
  #taker!: JsonFieldTaker

  /** False if the text is not a JSON object; some fields may have been passed on. */
  read(text: string, taker: JsonFieldTaker): boolean {
    this.#text = text
    this.#at = 0
    this.#taker = taker
    this.#blanks()
    const isObject = this.#object('', 1)
    this.#blanks()
    this.#text = ''
    return isObject && this.#at === text.length
  }

  #blanks(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return
      this.#at++
    }
  }

  /** Skips one character; false, without a move, if another one is there. */
  #takes(code: number): boolean {
    if (this.#text.charCodeAt(this.#at) !== code) return false
    this.#at++
    return true
  }

  #object(prefix: string, depth: number): boolean {
    if (!this.#takes(openBrace)) return false
    this.#blanks()
    if (this.#takes(closeBrace)) return true
    for (;;) {
      const key = this.#string()
      if (key === undefined) return false
      this.#blanks()
      if (!this.#takes(colon)) return false
      this.#blanks()
      if (!this.#value(prefix === '' ? key : `${prefix}.${key}`, depth)) return false
      this.#blanks()
      if (this.#takes(closeBrace)) return true
      if (!this.#takes(comma)) return false
      this.#blanks()
    }
  }

  #value(key: string, depth: number): boolean {
    switch (this.#text.charCodeAt(this.#at)) {
      case quote: {
        const value = this.#string()
        if (value === undefined) return false
        this.#taker.field(key, value)
        return true
      }
      case openBrace:
        return depth < mostDepth ? this.#object(key, depth + 1) : this.#nested(key)
      case openBracket:
        return this.#array(key)
      case 0x74: // t
        return this.#word('true', key, true)
      case 0x66: // f
        return this.#word('false', key, false)
      case 0x6e: // n
        return this.#word('null', key, undefined)
      default:
        return this.#number(key)
    }
  }

  #word(word: string, key: string, value: boolean | undefined): boolean {
    if (!this.#text.startsWith(word, this.#at)) return false
    this.#at += word.length
    if (value !== undefined) this.#taker.field(key, value)
    return true
  }

  #number(key: string): boolean {
    const from = this.#at
    this.#takes(minus)
    const wholeFrom = this.#at
    const wholeDigits = this.#digits()
    if (wholeDigits === 0 || (wholeDigits > 1 && this.#text.charCodeAt(wholeFrom) === digit0)) return false
    let isWhole = true
    if (this.#takes(dot)) {
      isWhole = false
      if (this.#digits() === 0) return false
    }
    if ((this.#text.charCodeAt(this.#at) | 0x20) === letterE) {
      isWhole = false
      this.#at++
      if (!this.#takes(plus)) this.#takes(minus)
      if (this.#digits() === 0) return false
    }
    const written = part(this.#text, from, this.#at)
    const value = Number(written)
    const isExact = isWhole ? Number.isSafeInteger(value) : Number.isFinite(value)
    this.#taker.field(key, isExact ? value : written)
    return true
  }

  #digits(): number {
    const from = this.#at
    for (let code = this.#text.charCodeAt(from); code >= digit0 && code <= digit9; )
      code = this.#text.charCodeAt(++this.#at)
    return this.#at - from
  }

  /** Reads a string; undefined if there is none. */
  #string(): string | undefined {
    const text = this.#text
    const from = this.#at
    if (text.charCodeAt(from) !== quote) return undefined
    let at = from + 1
    let isPlain = true
    for (;;) {
      const code = text.charCodeAt(at)
      if (code === quote) break
      // Also at the end of the text, where it is NaN.
      if (!(code >= 0x20)) return undefined
      if (code === backslash) {
        isPlain = false
        at++
      }
      at++
    }
    this.#at = at + 1
    return isPlain ? part(text, from + 1, at) : unescaped(text.slice(from, at + 1))
  }

  /** Passes on an array of strings as such, any other array as text. */
  #array(key: string): boolean {
    const from = this.#at
    const strings = this.#strings()
    if (strings !== undefined) {
      if (strings.length > 0) this.#taker.field(key, strings)
      return true
    }
    this.#at = from
    return this.#nested(key)
  }

  #strings(): string[] | undefined {
    const strings: string[] = []
    this.#at++
    this.#blanks()
    if (this.#takes(closeBracket)) return strings
    while (strings.length < mostStrings) {
      const value = this.#string()
      if (value === undefined) return undefined
      strings.push(value)
      this.#blanks()
      if (this.#takes(closeBracket)) return strings
      if (!this.#takes(comma)) return undefined
      this.#blanks()
    }
    return undefined
  }

  /** Passes on a nested value as text, reading only brackets and strings. */
  #nested(key: string): boolean {
    const text = this.#text
    const from = this.#at
    let open = 0
    do {
      const code = text.charCodeAt(this.#at)
      if (code === quote) {
        if (!this.#skipString()) return false
        continue
      }
      // The end of the text.
      if (Number.isNaN(code)) return false
      if (code === openBrace || code === openBracket) open++
      else if (code === closeBrace || code === closeBracket) open--
      this.#at++
    } while (open > 0)
    this.#taker.field(key, part(text, from, this.#at))
    return true
  }

  #skipString(): boolean {
    const text = this.#text
    let at = this.#at + 1
    for (let code = text.charCodeAt(at); code !== quote; code = text.charCodeAt(at)) {
      if (Number.isNaN(code)) return false
      at += code === backslash ? 2 : 1
    }
    this.#at = at + 1
    return true
  }
}

/**
 * Part of a text. In V8 a substring keeps the whole text in memory, and processors keep names and short values: those
 * of long lines are copied.
 */
function part(text: string, from: number, to: number): string {
  const cut = text.slice(from, to)
  if (text.length <= shortText || cut.length > longestCopy) return cut
  return copy.toString('utf8', 0, copy.write(cut))
}

const shortText = 512
/** UTF-16 units, of at most 3 bytes each. */
const longestCopy = 256
const copy = Buffer.alloc(3 * longestCopy)

/** Value of a quoted string; undefined for an invalid escape. */
function unescaped(literal: string): string | undefined {
  try {
    return JSON.parse(literal) as string
  } catch {
    // The line is then not JSON, and is treated as text.
    return undefined
  }
}

const quote = 0x22
const plus = 0x2b
const comma = 0x2c
const minus = 0x2d
const dot = 0x2e
const digit0 = 0x30
const digit9 = 0x39
const colon = 0x3a
const openBracket = 0x5b
const backslash = 0x5c
const closeBracket = 0x5d
const letterE = 0x65
const openBrace = 0x7b
const closeBrace = 0x7d
