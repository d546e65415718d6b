/**
 * Joins pieces up to a limit, in one buffer that doubles: pieces of one byte, kept separately, would take some hundred
 * times their size.
 */
export class GatheredBytes {
  readonly #maxBytes: number
  #buffer: Buffer = Buffer.alloc(0)
  #length = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Adds a piece, which may be kept without a copy. False and unchanged if the total would exceed `maxBytes`. */
  add(piece: Buffer): boolean {
    const length = this.#length + piece.length
    if (length > this.#maxBytes) return false
    if (this.#length === 0) this.#buffer = piece
    else {
      if (length > this.#buffer.length) {
        const next = Buffer.allocUnsafe(Math.max(2 * this.#buffer.length, length))
        next.set(this.#buffer.subarray(0, this.#length))
        this.#buffer = next
      }
      this.#buffer.set(piece, this.#length)
    }
    this.#length = length
    return true
  }

  /** All pieces in order, without a copy. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }
}
