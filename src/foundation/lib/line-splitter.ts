import { GatheredBytes } from './gathered-bytes.ts'

/** Splits pieces into lines. A line above the limit is skipped and counted. */
export class LineSplitter {
  tooLong = 0
  readonly #maxBytes: number
  #rest: GatheredBytes | undefined
  #skips = false

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The lines that end in this piece, without their ends; skips empty ones. */
  *lines(piece: Buffer): IterableIterator<Buffer> {
    let start = 0
    for (let end = piece.indexOf(0x0a); end >= 0; end = piece.indexOf(0x0a, start)) {
      const line = this.#end(piece.subarray(start, end))
      start = end + 1
      if (line !== undefined && line.length > 0) yield line
    }
    if (start < piece.length) this.#keep(piece.subarray(start))
  }

  #end(part: Buffer): Buffer | undefined {
    if (this.#rest === undefined && !this.#skips && part.length <= this.#maxBytes) return part
    this.#keep(part)
    const rest = this.#rest
    const skips = this.#skips
    this.#rest = undefined
    this.#skips = false
    if (!skips) return rest?.bytes
    this.tooLong++
    return undefined
  }

  #keep(part: Buffer): void {
    if (this.#skips) return
    this.#rest ??= new GatheredBytes(this.#maxBytes)
    // A copy: a slice would keep the whole piece.
    if (this.#rest.add(Buffer.from(part))) return
    this.#rest = undefined
    this.#skips = true
  }
}
