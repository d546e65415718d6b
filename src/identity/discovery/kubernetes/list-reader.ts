import { GatheredBytes } from '../../../foundation/lib/gathered-bytes.ts'

const quote = 0x22
const backslash = 0x5c
const maxEnvelopeBytes = 64 * 1024
/** Maximum distance of the name `items` from its bracket. */
const nameBytes = 32
/** Maximum nesting of a Kubernetes list. */
const maxDepth = 1024

/** An answer in an unexpected format. */
export class FormatError extends Error {
  override readonly name = 'FormatError'
}

/**
 * Splits a list of the Kubernetes API (`{"kind":"PodList","metadata":{…},"items":[{…},…]}`) while it arrives, so
 * that only one item is in memory.
 */
export class ListReader {
  readonly #maxItemBytes: number
  #depth = 0
  #inText = false
  #escaped = false
  #inItems = false
  #ended = false
  /** Item that continues in the next piece. */
  #item: GatheredBytes | undefined
  #envelopeText = ''

  constructor(maxItemBytes: number) {
    this.#maxItemBytes = maxItemBytes
  }

  /** JSON of the list without its items; only at the end. Throws a `FormatError`. */
  get envelope(): Buffer {
    if (!this.#ended) throw new FormatError('the answer is truncated')
    return Buffer.from(this.#envelopeText, 'latin1')
  }

  /** Items that end in this piece, each as JSON and valid until the next one. Throws a `FormatError`. */
  *items(piece: Buffer): IterableIterator<Buffer> {
    let start = this.#item === undefined ? -1 : 0
    let outside = this.#inItems ? -1 : 0
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at]!
      if (this.#inText) {
        if (this.#escaped) this.#escaped = false
        else if (byte === backslash) this.#escaped = true
        else if (byte === quote) this.#inText = false
      } else if (byte === quote) this.#inText = true
      else if (byte === 0x7b || byte === 0x5b) {
        if (this.#inItems && this.#depth === 2) start = at
        this.#depth++
        if (this.#depth > maxDepth) throw new FormatError('the answer is nested too deep')
        if (byte === 0x5b && this.#depth === 2 && !this.#inItems && this.#opensItems(piece, outside, at)) {
          this.#inItems = true
          outside = -1
        }
      } else if (byte === 0x7d || byte === 0x5d) {
        this.#depth--
        if (this.#inItems && this.#depth === 1) {
          this.#inItems = false
          outside = at
        } else if (this.#inItems && this.#depth === 2 && start >= 0) {
          yield this.#whole(piece, start, at + 1)
          start = -1
        } else if (this.#depth === 0) this.#ended = true
      }
    }
    if (start >= 0) this.#keep(piece.subarray(start))
    if (outside >= 0) this.#addEnvelope(piece, outside, piece.length)
  }

  /** Whether the bracket at `at` opens the items, by the name before it. Consumes the text before it. */
  #opensItems(piece: Buffer, outside: number, at: number): boolean {
    const before = piece.toString('latin1', Math.max(outside, at - nameBytes), at)
    const text = this.#envelopeText.slice(-nameBytes) + before
    if (!/"items"\s{0,8}:\s{0,8}$/.test(text)) return false
    this.#addEnvelope(piece, outside, at + 1)
    return true
  }

  #addEnvelope(piece: Buffer, start: number, end: number): void {
    if (this.#envelopeText.length + end - start > maxEnvelopeBytes)
      throw new FormatError('not a Kubernetes list')
    this.#envelopeText += piece.toString('latin1', start, end)
  }

  #whole(piece: Buffer, start: number, end: number): Buffer {
    const item = this.#item
    if (item === undefined) return piece.subarray(start, end)
    this.#keep(piece.subarray(start, end))
    this.#item = undefined
    return item.bytes
  }

  #keep(part: Buffer): void {
    this.#item ??= new GatheredBytes(this.#maxItemBytes)
    // A copy: one byte of a piece of the socket would keep all of its 64 KiB.
    if (!this.#item.add(Buffer.from(part)))
      throw new FormatError(`an object in the answer is larger than ${this.#maxItemBytes} bytes`)
  }
}
