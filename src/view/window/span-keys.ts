import { ownText } from './span-origins.ts'

const mostKeyLength = 64
/** Of one besides its text, in the list and in the map. */
const entryBytes = 96

/** Numbers for the keys of attributes, which are few: the first that come, and for all time. */
export class SpanKeys {
  readonly #numbers = new Map<string, number>()
  readonly #keys: string[] = []
  readonly #most: number
  #bytes = 0

  constructor(most: number) {
    this.#most = Math.min(most, 0xfff0)
  }

  /** Memory that `most` keys take. */
  static bytesOf(most: number): number {
    return most * (entryBytes + 2 * mostKeyLength)
  }

  get bytes(): number {
    return this.#bytes
  }

  /** -1: it has none. */
  numberOf(key: string): number {
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    if (this.#keys.length === this.#most || key.length > mostKeyLength) return -1
    const own = ownText(key, mostKeyLength)
    this.#numbers.set(own, this.#keys.length)
    this.#keys.push(own)
    this.#bytes += entryBytes + 2 * own.length
    return this.#keys.length - 1
  }

  at(number: number): string {
    return this.#keys[number]!
  }
}
