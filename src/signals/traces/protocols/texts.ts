import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import { Interner } from '../../../foundation/lib/interner.ts'
import { small } from '../../../foundation/lib/small-tables.ts'
import { utf8Text } from '../../../foundation/lib/utf8-text.ts'

/** Names in UTF-8: the same string object for the same bytes, as `Interner` does for Latin-1. */
export class Texts {
  readonly #words: Interner
  readonly #decoded = small(new BoundedMap<string, string>(1_024))
  readonly #maxLength: number

  /** Longer texts are decoded each time. */
  constructor(options: { readonly slots: number; readonly maxLength: number }) {
    this.#words = small(new Interner(options))
    this.#maxLength = options.maxLength
  }

  /** The text of `bytes[start, end)`. */
  of(bytes: Buffer, start: number, end: number): string {
    if (end - start > this.#maxLength) return utf8Text(bytes, start, end)
    const word = this.#words.intern(bytes, start, end)
    for (let i = start; i < end; i++) if (bytes[i]! >= 0x80) return this.#decode(word, bytes, start, end)
    return word
  }

  #decode(word: string, bytes: Buffer, start: number, end: number): string {
    let text = this.#decoded.get(word)
    if (text === undefined) {
      text = utf8Text(bytes, start, end)
      this.#decoded.set(word, text)
    }
    return text
  }
}
