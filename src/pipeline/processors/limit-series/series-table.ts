/** Words of an entry: both halves of the hash, its owner, and when it was last seen (0: free). */
const width = 4
const shards = 64
const smallest = 16
const fullest = 0.8

/**
 * Known series, 20 to 40 bytes each: many small hash tables with open addressing, so that growing or sweeping one takes
 * little time (16,000 entries of 10⁶).
 */
export class SeriesTable {
  size = 0
  readonly #slots: Uint32Array[] = []
  readonly #sizes = new Uint32Array(shards)
  #swept = 0

  constructor() {
    for (let i = 0; i < shards; i++) this.#slots.push(new Uint32Array(smallest * width))
  }

  get bytes(): number {
    return this.#slots.reduce((sum, { byteLength }) => sum + byteLength, 0)
  }

  /** Whether a series is known; sets when it was last seen, `seen`, which is 1 or more. */
  touch(low: number, high: number, seen: number): boolean {
    const slots = this.#slots[shardOf(low)]!
    const at = find(slots, low, high)
    if (slots[at + 3] === 0) return false
    slots[at + 3] = seen
    return true
  }

  /** Adds a series that `touch` did not find. */
  add(low: number, high: number, owner: number, seen: number): void {
    const shard = shardOf(low)
    let slots = this.#slots[shard]!
    if ((this.#sizes[shard]! + 1) * width > slots.length * fullest) {
      slots = rebuilt(slots, (slots.length / width) * 2, 0)
      this.#slots[shard] = slots
    }
    put(slots, low, high, owner, seen)
    this.#sizes[shard]!++
    this.size++
  }

  /**
   * Removes entries last seen before `since` from the next table, and calls `forgotten` with the owner of each. Returns
   * the number of checked entries.
   */
  sweepNext(since: number, forgotten: (owner: number) => void): number {
    const shard = this.#swept
    this.#swept = (shard + 1) % shards
    const slots = this.#slots[shard]!
    let old = 0
    for (let at = 0; at < slots.length; at += width) {
      const seen = slots[at + 3]!
      if (seen === 0 || seen >= since) continue
      forgotten(slots[at + 2]!)
      old++
    }
    if (old > 0) {
      const left = this.#sizes[shard]! - old
      this.#sizes[shard] = left
      this.size -= old
      this.#slots[shard] = rebuilt(slots, roomFor(left), since)
    }
    return slots.length / width
  }

  /** Calls of `sweepNext` for a full pass. */
  static readonly sweeps = shards
}

function shardOf(low: number): number {
  return low >>> 26
}

/** Index of an entry, or of the free slot for it. */
function find(slots: Uint32Array, low: number, high: number): number {
  const mask = slots.length - 1
  let at = (high << 2) & mask
  while (slots[at + 3] !== 0 && (slots[at] !== low || slots[at + 1] !== high)) at = (at + width) & mask
  return at
}

function put(slots: Uint32Array, low: number, high: number, owner: number, seen: number): void {
  const at = find(slots, low, high)
  slots[at] = low
  slots[at + 1] = high
  slots[at + 2] = owner
  slots[at + 3] = seen
}

/** A table of `capacity` (a power of two) with the entries last seen at `since` or later. */
function rebuilt(slots: Uint32Array, capacity: number, since: number): Uint32Array {
  const next = new Uint32Array(capacity * width)
  for (let at = 0; at < slots.length; at += width) {
    const seen = slots[at + 3]!
    if (seen !== 0 && seen >= since) put(next, slots[at]!, slots[at + 1]!, slots[at + 2]!, seen)
  }
  return next
}

function roomFor(entries: number): number {
  let capacity = smallest
  while (entries + 1 > capacity * fullest) capacity *= 2
  return capacity
}
