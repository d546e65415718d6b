/** Approximate V8 memory of an entry's slots, and of a text or object besides its contents. */
const entryBytes = 48
const headBytes = 16

/** Approximate size of a key and value: texts by length, objects as if they had a few number fields. */
function usualSize(key: unknown, value: unknown): number {
  return sizeOf(key) + sizeOf(value)
}

function sizeOf(part: unknown): number {
  if (typeof part === 'string') return headBytes + part.length
  return typeof part === 'object' && part !== null ? 4 * headBytes : 0
}

/**
 * A map of at most `capacity` entries. When it is full, a new key replaces one that was not read recently (the clock
 * algorithm: second chance), in constant time on average.
 *
 * Deleting the first key of a `Map` instead is slow: finding it walks over the holes of earlier deletions, 4 µs
 * measured.
 */
export class BoundedMap<K, V> {
  readonly #slots = new Map<K, number>()
  readonly #keys: (K | undefined)[] = []
  readonly #values: (V | undefined)[] = []
  readonly #free: number[] = []
  readonly #used: Uint8Array
  /** Bytes of each entry, as counted when it was set. */
  readonly #sizes: number[] = []
  readonly #capacity: number
  readonly #evicted: ((key: K, value: V) => void) | undefined
  readonly #entrySize: (key: K, value: V) => number
  #hand = 0
  #held = 0

  /**
   * `evicted` is called for each evicted entry, but not for deleted ones. `sizeOf` returns the bytes of an entry, if
   * they differ from the estimate of its key and value.
   */
  constructor(
    capacity: number,
    evicted?: (key: K, value: V) => void,
    sizeOf: (key: K, value: V) => number = usualSize,
  ) {
    this.#capacity = Math.max(1, capacity)
    this.#used = new Uint8Array(this.#capacity)
    this.#evicted = evicted
    this.#entrySize = sizeOf
  }

  /** Approximate bytes of all entries. */
  get bytes(): number {
    return this.#held
  }

  get size(): number {
    return this.#slots.size
  }

  get(key: K): V | undefined {
    const slot = this.#slots.get(key)
    if (slot === undefined) return undefined
    this.#used[slot] = 1
    return this.#values[slot]
  }

  set(key: K, value: V): void {
    let slot = this.#slots.get(key)
    if (slot === undefined) {
      slot = this.#vacate()
      this.#slots.set(key, slot)
      this.#keys[slot] = key
      // Not "used" yet: a key that is never read is evicted on the hand's first visit.
      this.#used[slot] = 0
    }
    this.#values[slot] = value
    const bytes = entryBytes + this.#entrySize(key, value)
    this.#held += bytes - (this.#sizes[slot] ?? 0)
    this.#sizes[slot] = bytes
  }

  delete(key: K): boolean {
    const slot = this.#slots.get(key)
    if (slot === undefined) return false
    this.#release(key, slot)
    return true
  }

  clear(): void {
    this.#slots.clear()
    this.#sizes.length = 0
    this.#keys.length = 0
    this.#values.length = 0
    this.#free.length = 0
    this.#held = 0
    this.#hand = 0
  }

  /** Evicts entries, least recently used first, until about this many bytes are freed. */
  shed(bytes: number): number {
    const before = this.#held
    const { length } = this.#keys
    for (let looks = 2 * length; looks > 0 && before - this.#held < bytes; looks--) {
      const slot = this.#hand
      this.#hand = (slot + 1) % length
      const key = this.#keys[slot]
      if (key === undefined) continue
      if (this.#used[slot] === 1) {
        this.#used[slot] = 0
        continue
      }
      const value = this.#values[slot] as V
      this.#release(key, slot)
      this.#evicted?.(key, value)
    }
    return before - this.#held
  }

  #release(key: K, slot: number): void {
    this.#slots.delete(key)
    this.#keys[slot] = undefined
    this.#values[slot] = undefined
    this.#used[slot] = 0
    this.#held -= this.#sizes[slot]!
    this.#sizes[slot] = 0
    this.#free.push(slot)
  }

  /** Calls `visit` for every entry, which it may delete. */
  forEach(visit: (value: V, key: K) => void): void {
    for (const [key, slot] of this.#slots) visit(this.#values[slot] as V, key)
  }

  /** A free slot. */
  #vacate(): number {
    const free = this.#free.pop()
    if (free !== undefined) return free
    if (this.#slots.size < this.#capacity) return this.#slots.size
    while (this.#used[this.#hand] === 1) {
      this.#used[this.#hand] = 0
      this.#hand = (this.#hand + 1) % this.#capacity
    }
    const slot = this.#hand
    this.#hand = (slot + 1) % this.#capacity
    const key = this.#keys[slot] as K
    this.#slots.delete(key)
    this.#held -= this.#sizes[slot]!
    this.#sizes[slot] = 0
    this.#evicted?.(key, this.#values[slot] as V)
    return slot
  }
}
