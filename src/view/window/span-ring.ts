/** Maximum bytes of a record. */
export const mostRecordBytes = 4096
/** Bytes of a page: the start of the first record in each page is kept, to visit the newest first. */
const pageBytes = 64 * 1024

/**
 * A ring of span records in fixed memory; the oldest are evicted. Each record begins with its length, a multiple of 8,
 * in its first four bytes; for the rest see `span-record.ts`.
 */
export class SpanRing {
  readonly bytes: Buffer
  readonly words: Uint32Array
  readonly doubles: Float64Array
  readonly view: DataView
  readonly #capacity: number
  /** By page, modulo the maximum number of pages: bytes ever written before its first record. */
  readonly #firsts: Float64Array
  /** The page in which the newest record begins. */
  #page = -1
  /** Called for each record about to be evicted, while it is still intact. */
  readonly #evicted: (ring: SpanRing, at: number) => void
  /** Bytes ever written before the oldest record, and before the next one. */
  #oldest = 0
  #next = 0
  #records = 0

  /** Reserves `bytes`, at least 16 KiB. */
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

  /** Memory written so far: the system commits none before. */
  get touchedBytes(): number {
    return Math.min(this.#next, this.#capacity)
  }

  /** The offset for the next record, with contiguous room for the longest. */
  place(): number {
    const left = this.#capacity - (this.#next % this.#capacity)
    if (left < mostRecordBytes) {
      this.#free(left)
      // Marks padding at the end of the ring.
      this.words[(this.#next % this.#capacity) >> 2] = 0
      this.#next += left
    }
    this.#free(mostRecordBytes)
    return this.#next % this.#capacity
  }

  /** Completes the record at the offset returned by `place`. */
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

  /** Reports the oldest record and drops it. False: there is none. */
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

  /** Visits about `most` of the newest records, newest page first, in each page from the oldest on. */
  each(visit: (at: number) => void, most = Number.POSITIVE_INFINITY): void {
    const oldestPage = Math.floor(this.#oldest / pageBytes)
    let end = this.#next
    for (let page = this.#page, visited = 0; page >= oldestPage && visited < most; page--) {
      const first = Math.max(this.#oldest, this.#firsts[page % this.#firsts.length]!)
      visited += this.#eachBetween(first, end, visit)
      end = first
    }
  }

  #eachBetween(first: number, end: number, visit: (at: number) => void): number {
    let visited = 0
    for (let position = first; position < end; ) {
      const at = position % this.#capacity
      const length = this.words[at >> 2]!
      position += length === 0 ? this.#capacity - at : length
      if (length === 0) continue
      visit(at)
      visited++
    }
    return visited
  }

  #free(bytes: number): void {
    while (this.#next + bytes - this.#oldest > this.#capacity) this.dropOldest()
  }
}
