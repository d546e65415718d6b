/** No record is longer, in bytes. */
export const mostRecordBytes = 4096
/** Of a page: where the first record in it begins is known, so that the newest are found first. */
const pageBytes = 64 * 1024

/**
 * Records of spans, one behind the other in a fixed number of bytes: the oldest give way. Each begins with its length,
 * a multiple of 8, in its first four bytes; what else it holds see `span-record.ts`.
 */
export class SpanRing {
  readonly bytes: Buffer
  readonly words: Uint32Array
  readonly doubles: Float64Array
  readonly view: DataView
  readonly #capacity: number
  /** By page, modulo all that may hold something: bytes that were ever written before its first record. */
  readonly #firsts: Float64Array
  /** The page that the newest record begins in. */
  #page = -1
  /** Told of each record that has to go, while it is still whole. */
  readonly #evicted: (ring: SpanRing, at: number) => void
  /** Bytes that were ever written before the oldest record, and before the next one. */
  #oldest = 0
  #next = 0
  #records = 0

  /** Takes `bytes`, 16 KiB at the least. */
  constructor(bytes: number, evicted: (ring: SpanRing, at: number) => void) {
    this.#capacity = Math.max(4 * mostRecordBytes, bytes) & ~7
    const memory = new ArrayBuffer(this.#capacity)
    this.bytes = Buffer.from(memory)
    this.words = new Uint32Array(memory)
    this.doubles = new Float64Array(memory)
    this.view = new DataView(memory)
    this.#firsts = new Float64Array(Math.ceil(this.#capacity / pageBytes) + 2)
    this.#evicted = evicted
  }

  get records(): number {
    return this.#records
  }

  /** Memory that was written to: the system gives none before. */
  get touchedBytes(): number {
    return Math.min(this.#next, this.#capacity)
  }

  /** Where the next record is to be written: room for the longest there is, in one piece. */
  place(): number {
    const left = this.#capacity - (this.#next % this.#capacity)
    if (left < mostRecordBytes) {
      this.#free(left)
      // Fills the end of the ring.
      this.words[(this.#next % this.#capacity) >> 2] = 0
      this.#next += left
    }
    this.#free(mostRecordBytes)
    return this.#next % this.#capacity
  }

  /** The record at the place told last is complete. */
  close(at: number, length: number): void {
    this.words[at >> 2] = length
    const page = Math.floor(this.#next / pageBytes)
    if (page !== this.#page) {
      this.#page = page
      this.#firsts[page % this.#firsts.length] = this.#next
    }
    this.#next += length
    this.#records++
  }

  /** Tells of the oldest record and drops it. False: there is none. */
  dropOldest(): boolean {
    while (this.#oldest < this.#next) {
      const at = this.#oldest % this.#capacity
      const length = this.words[at >> 2]!
      if (length === 0) {
        this.#oldest += this.#capacity - at
        continue
      }
      this.#evicted(this, at)
      this.#oldest += length
      this.#records--
      return true
    }
    return false
  }

  /** Tells where each record is: about `most` of the newest, page by page, and in a page from the oldest on. */
  each(visit: (at: number) => void, most = Number.POSITIVE_INFINITY): void {
    const oldestPage = Math.floor(this.#oldest / pageBytes)
    let end = this.#next
    for (let page = this.#page, told = 0; page >= oldestPage && told < most; page--) {
      const first = Math.max(this.#oldest, this.#firsts[page % this.#firsts.length]!)
      told += this.#eachBetween(first, end, visit)
      end = first
    }
  }

  #eachBetween(first: number, end: number, visit: (at: number) => void): number {
    let told = 0
    for (let position = first; position < end; ) {
      const at = position % this.#capacity
      const length = this.words[at >> 2]!
      position += length === 0 ? this.#capacity - at : length
      if (length === 0) continue
      visit(at)
      told++
    }
    return told
  }

  #free(bytes: number): void {
    while (this.#next + bytes - this.#oldest > this.#capacity) this.dropOldest()
  }
}
