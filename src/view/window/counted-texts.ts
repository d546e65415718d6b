/** What a text takes beside its characters: its object, its place in a list and in a map. */
const textBytes = 96
const wide = /[^\0-\xff]/

/** Texts, each with a number of its own and a count of who refers to it. */
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

  /** Beyond all numbers that are in use. */
  get end(): number {
    return this.#texts.length
  }

  /** -1: there is none. */
  find(text: string): number {
    return this.#numbers.get(text) ?? -1
  }

  text(number: number): string {
    return this.#texts[number]!
  }

  /** What one takes, at most. */
  static bytesOf(text: string): number {
    return textBytes + (wide.test(text) ? 2 : 1) * text.length
  }

  /** Adds one that is not there, of so many bytes, for which there must be room; nobody refers to it yet. */
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
