const leastBytes = 4096

/** Takes bytes that are one text, or a piece of one that is too long. They are the giver's again after the call. */
export type TakeText = (bytes: Buffer, from: number, to: number) => void

/**
 * Joins the parts that a runtime made of a long line. What exceeds `mostBytes` is handed on in pieces, cut between two
 * characters. Memory is held while parts wait only.
 */
export class LineParts {
  /** Where the first line begins whose text waits here; -1: none does. */
  begin = -1
  /** Of the first part, as its line tells it. */
  timeUs = 0
  /** When the last part came, in the reader's milliseconds. */
  changedMs = 0
  readonly #mostBytes: number
  #bytes: Buffer | undefined
  #length = 0

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
  }

  /** Of memory. */
  get heldBytes(): number {
    return this.#bytes?.length ?? 0
  }

  /** True: a piece was handed on, and what waits now is of these bytes alone. */
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

  /** Hands on what waits. */
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

/** How many of the first `length` bytes are whole characters of UTF-8; all of them where there is no character to wait for. */
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
