/** Bytes of a text besides its characters: its object, and its entries in a list and a map. */
const textBytes = 96
const wide = /[^\0-\xff]/

/** Texts, each with a number and a reference count. */
export class CountedTexts {
  readonly maxBytes: number
  readonly count: Uint32Array
  readonly #numbers = new Map<string, number>()
  readonly #texts: string[] = []
  readonly #free: number[] = []
  #bytes = 0

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
    // Four bytes of each text are for its count.
    this.count = new Uint32Array(Math.floor(maxBytes / textBytes))
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Above all numbers in use. */
  get end(): number {
    return this.#texts.length
  }

  /** -1: not found. */
  find(text: string): number {
    return this.#numbers.get(text) ?? -1
  }

  text(number: number): string {
    return this.#texts[number]!
  }

  /** Maximum bytes of a text. */
  static bytesOf(text: string): number {
    return textBytes + (wide.test(text) ? 2 : 1) * text.length
  }

  /** Adds a missing text of `bytes` bytes, with no references yet; there must be room. */
  add(text: string, bytes: number): number {
    const number = this.#free.pop() ?? this.#texts.length
    this.#texts[number] = text
    this.#numbers.set(text, number)
    this.#bytes += bytes
    this.count[number] = 0
    return number
  }

  delete(number: number): void {
    const text = this.#texts[number]!
    this.#numbers.delete(text)
    this.#bytes -= CountedTexts.bytesOf(text)
    this.#texts[number] = ''
    this.#free.push(number)
  }
}
