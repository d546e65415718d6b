import { durationBuckets } from './duration-counts.ts'

/** Records allocated at once. */
const chunkRecords = 64
const words = 4
// Words of a record:
const seriesAt = 0
/** Next record of the slot, or of the free list; -1: none. */
const nextAt = 1
const countAt = 2
const failedAt = 3

/** Including the overhead of the arrays. */
const chunkBytes = chunkRecords * (words * 4 + durationBuckets * 2) + 256
const fullest = 0xffff

/**
 * Counts and durations of many series by time slot. A series has one record or more per slot with activity; their
 * values add up. If there is no room, the oldest slot is evicted.
 */
export class SlotRecords {
  /** The newest slot, and the oldest that is kept. */
  newest: number
  oldest: number
  /** Maximum number of slots. */
  readonly slots: number
  readonly #heads: Int32Array
  readonly #chunks: { readonly words: Int32Array; readonly buckets: Uint16Array }[] = []
  readonly #mostChunks: number
  readonly #ended: (series: number) => void
  #free = -1
  #used = 0

  /** `ended` is called for each evicted record. */
  constructor(maxBytes: number, slots: number, slot: number, ended: (series: number) => void) {
    this.slots = slots
    this.#heads = new Int32Array(slots).fill(-1)
    this.#mostChunks = Math.max(1, Math.floor((maxBytes - slots * 4) / chunkBytes))
    this.#ended = ended
    this.newest = slot
    this.oldest = slot
  }

  get bytes(): number {
    return this.#heads.byteLength + this.#chunks.length * chunkBytes
  }

  /** Advances to a later slot and evicts those that are too old; an earlier slot evicts all. */
  turnTo(slot: number): void {
    if (slot < this.newest) {
      while (this.oldest <= this.newest) this.#releaseOldest()
      this.oldest = slot
    } else while (this.oldest <= this.newest && this.oldest <= slot - this.slots) this.#releaseOldest()
    // Slots in between are empty.
    this.oldest = Math.max(this.oldest, slot - this.slots + 1)
    this.newest = slot
    if (this.#used > 0) return
    this.#chunks.length = 0
    this.#free = -1
  }

  /** Opens a record of a series in the newest slot; -1: no room. */
  open(series: number): number {
    if (this.#free < 0) this.#grow()
    while (this.#free < 0 && this.oldest < this.newest) this.#releaseOldest()
    const record = this.#free
    if (record < 0) return -1
    const { words: w, buckets } = this.#chunk(record)
    const index = record % chunkRecords
    const at = index * words
    const place = this.newest % this.slots
    this.#free = w[at + nextAt]!
    w[at + seriesAt] = series
    w[at + nextAt] = this.#heads[place]!
    w[at + countAt] = 0
    w[at + failedAt] = 0
    buckets.fill(0, index * durationBuckets, (index + 1) * durationBuckets)
    this.#heads[place] = record
    this.#used++
    return record
  }

  /** Counts one request; `bucket` is below 0 if it was not timed. False: the record is full. */
  count(record: number, failed: boolean, bucket: number): boolean {
    const { words: w, buckets } = this.#chunk(record)
    const index = record % chunkRecords
    if (bucket >= 0) {
      const at = index * durationBuckets + bucket
      if (buckets[at] === fullest) return false
      buckets[at]!++
    }
    w[index * words + countAt]!++
    if (failed) w[index * words + failedAt]!++
    return true
  }

  /** Calls `visit` for each record of a slot. `buckets` has its durations from `at` on; do not keep it. */
  each(
    slot: number,
    visit: (series: number, count: number, failed: number, buckets: Uint16Array, at: number) => void,
  ): void {
    if (slot < this.oldest || slot > this.newest) return
    for (let record = this.#heads[slot % this.slots]!; record >= 0; ) {
      const { words: w, buckets } = this.#chunk(record)
      const index = record % chunkRecords
      const at = index * words
      visit(w[at + seriesAt]!, w[at + countAt]!, w[at + failedAt]!, buckets, index * durationBuckets)
      record = w[at + nextAt]!
    }
  }

  /** Moves the records of some series to others. */
  rename(names: ReadonlyMap<number, number>): void {
    for (let slot = this.oldest; slot <= this.newest; slot++)
      for (let record = this.#heads[slot % this.slots]!; record >= 0; ) {
        const w = this.#chunk(record).words
        const at = (record % chunkRecords) * words
        w[at + seriesAt] = names.get(w[at + seriesAt]!) ?? w[at + seriesAt]!
        record = w[at + nextAt]!
      }
  }

  #chunk(record: number) {
    return this.#chunks[Math.floor(record / chunkRecords)]!
  }

  #grow(): void {
    const first = this.#chunks.length * chunkRecords
    if (this.#chunks.length === this.#mostChunks) return
    const chunk = {
      words: new Int32Array(chunkRecords * words),
      buckets: new Uint16Array(chunkRecords * durationBuckets),
    }
    for (let i = 0; i < chunkRecords; i++)
      chunk.words[i * words + nextAt] = i === chunkRecords - 1 ? -1 : first + i + 1
    this.#chunks.push(chunk)
    this.#free = first
  }

  #releaseOldest(): void {
    const place = this.oldest % this.slots
    this.oldest++
    let record = this.#heads[place]!
    this.#heads[place] = -1
    while (record >= 0) {
      const w = this.#chunk(record).words
      const at = (record % chunkRecords) * words
      const next = w[at + nextAt]!
      const series = w[at + seriesAt]!
      w[at + nextAt] = this.#free
      this.#free = record
      this.#used--
      record = next
      this.#ended(series)
    }
  }
}
