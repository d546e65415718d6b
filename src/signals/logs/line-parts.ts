const leastBytes = 4096

/** Receives one text, or a piece of an overlong one. The bytes are valid only during the call. */
export type TakeText = (bytes: Buffer, from: number, to: number) => void

/**
 * Joins the parts into which a runtime split a long line. A text over `mostBytes` is passed on in pieces, cut between
 * two characters. Uses memory only while parts wait.
 */
export class LineParts {
  /** Offset of the first line whose text waits; -1 for none. */
  begin = -1
  /** Time of the first part, from its line. */
  timeUs = 0
  /** Time of the last part, by the reader's clock, in milliseconds. */
  changedMs = 0
  readonly #mostBytes: number
  #bytes: Buffer | undefined
  #length = 0

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
  }

  /** Bytes of memory in use. */
  get heldBytes(): number {
    return this.#bytes?.length ?? 0
  }

  /** Adds a part. True if a piece was passed on, and the waiting text is only from these bytes. */
  add(bytes: Buffer, from: number, to: number, take: TakeText): boolean {
    let at = from
    let isCut = false
    while (this.#length + to - at > this.#mostBytes) {
      const free = this.#mostBytes - this.#length
      this.#append(bytes, at, at + free)
      at += free
      const end = wholeCharacters(this.#bytes!, this.#length)
      take(this.#bytes!, 0, end)
      this.#bytes!.copyWithin(0, end, this.#length)
      this.#length -= end
      isCut = true
    }
    this.#append(bytes, at, to)
    return isCut && this.#length <= to - from
  }

  /** Passes on the waiting text. */
  finish(take: TakeText): void {
    const bytes = this.#bytes
    const length = this.#length
    this.begin = -1
    this.#bytes = undefined
    this.#length = 0
    if (bytes !== undefined && length > 0) take(bytes, 0, length)
  }

  #append(bytes: Buffer, from: number, to: number): void {
    const length = this.#length + to - from
    if (this.#bytes === undefined || this.#bytes.length < length) {
      const larger = Buffer.allocUnsafe(
        Math.min(Math.max(2 * length, leastBytes), Math.max(this.#mostBytes, length)),
      )
      this.#bytes?.copy(larger, 0, 0, this.#length)
      this.#bytes = larger
    }
    bytes.copy(this.#bytes, this.#length, from, to)
    this.#length = length
  }
}

/**
 * Number of the first `length` bytes that are complete UTF-8 characters; all of them if no character can be completed.
 */
export function wholeCharacters(bytes: Uint8Array, length: number, from = 0): number {
  for (let back = 1; back <= 3 && back < length; back++) {
    const byte = bytes[from + length - back]!
    if (byte < 0x80) return length
    if (byte >= 0xc0) {
      const size = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4
      return size > back ? length - back : length
    }
  }
  return length
}
