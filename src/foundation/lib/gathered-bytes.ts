/**
 * Puts together what comes in pieces, within a bound. In one buffer that doubles: pieces of a byte, kept apart, would
 * take some hundred times their size.
 */
export class GatheredBytes {
  readonly #maxBytes: number
  #buffer: Buffer = Buffer.alloc(0)
  #length = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Adds a piece, which may be kept as it is. False where that would be more than `maxBytes`; then nothing is added. */
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

  /** All pieces in their order, without a copy. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }
}
