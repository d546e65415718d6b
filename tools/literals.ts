// The texts in a TypeScript file: strings, the constant parts of templates, and the text between tags of TSX.

export interface Literal {
  /** Position of its first character in the file. */
  readonly index: number
  /** As written, including escapes. */
  readonly text: string
}

const comment = /\/\/[^\n]*|\/\*[\s\S]*?\*\//y
/** A quote without an end on its line is an apostrophe in TSX. */
const string = /(['"])((?:(?!\1)[^\\\n]|\\[\s\S])*)\1/y
/** Between tags: several words up to the next tag or brace, without a comment, and not a declaration. */
const between =
  /(?!\s*(?:export|import|async|function|const|let|class|interface|type)\b)(?=[^<>{}=;]*[a-z] [a-z])(?:(?!\/[/*])[^<>{}=;])+(?=[<{])/iy
const regexp = /\/(?![/*])(?:[^\\/[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/\w*/y
/** Code before a regular expression; after any other code a slash divides. */
const beforeRegexp = /(?:[(,=:[!&|?{;+\-*%~^<>]|\b(?:return|typeof|case|of|in|void|await|yield))\s*$/

/** The literals of a file, in arbitrary order. */
export function literalsOf(code: string, isTsx = false): readonly Literal[] {
  const reader = new Reader(code, isTsx)
  reader.code(false)
  return reader.found
}

class Reader {
  readonly found: Literal[] = []
  readonly #text: string
  readonly #isTsx: boolean
  #at = 0

  constructor(text: string, isTsx: boolean) {
    this.#text = text
    this.#isTsx = isTsx
  }

  /** Reads up to the end, or after the brace that closes a part of a template. */
  code(isPart: boolean): void {
    for (let depth = 0; this.#at < this.#text.length; ) {
      const character = this.#text[this.#at]!
      if (character === '/' && this.#skips()) continue
      if ((character === "'" || character === '"') && this.#adds(string, 2)) continue
      this.#at++
      if (character === '`') this.#template()
      else if (character === '{') depth++
      else if (character === '}' && depth-- === 0 && isPart) return
      if (this.#isTsx && (character === '}' || (character === '>' && this.#text[this.#at - 2] !== '=')))
        this.#adds(between, 0)
    }
  }

  /** Reads from the first backtick to after the last one. */
  #template(): void {
    let from = this.#at
    const end = () => this.found.push({ index: from, text: this.#text.slice(from, this.#at) })
    while (this.#at < this.#text.length && this.#text[this.#at] !== '`') {
      if (this.#text.startsWith('${', this.#at)) {
        end()
        this.#at += 2
        this.code(true)
        from = this.#at
      } else this.#at += this.#text[this.#at] === '\\' ? 2 : 1
    }
    end()
    this.#at++
  }

  /** Skips a comment or a regular expression. */
  #skips(): boolean {
    const before = this.#text.slice(Math.max(0, this.#at - 20), this.#at)
    const found = this.#match(comment) ?? (beforeRegexp.test(before) ? this.#match(regexp) : null)
    if (found !== null) this.#at += found[0].length
    return found !== null
  }

  /** Adds a group of a pattern that matches here. */
  #adds(pattern: RegExp, group: 0 | 2): boolean {
    const found = this.#match(pattern)
    if (found === null) return false
    this.found.push({ index: this.#at + (group === 0 ? 0 : 1), text: found[group]! })
    this.#at += found[0].length
    return true
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at
    return pattern.exec(this.#text)
  }
}
