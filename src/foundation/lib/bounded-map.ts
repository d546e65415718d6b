/** Of an entry's places, and of a text or an object beside what is in it: about what V8 takes. */
const entryBytes = 48
const headBytes = 16

/** About what a key or value takes: texts by their length, objects as if they had few numbers in them. */
function usualSize(key: unknown, value: unknown): number {
  return sizeOf(key) + sizeOf(value)
}

function sizeOf(part: unknown): number {
  if (typeof part === 'string') return headBytes + part.length
  return typeof part === 'object' && part !== null ? 4 * headBytes : 0
}

/**
 * A map of at most `capacity` entries. When it is full, a new key takes the place of one that was not asked for of
 * late (the clock algorithm: second chance), in constant time on average.
 *
 * Why not a `Map` whose first key is deleted: finding that key walks over the holes that deletions leave, 4 µs measured.
 */
export class BoundedMap<K, V> {
  readonly #slots = new Map<K, number>()
  readonly #keys: (K | undefined)[] = []
  readonly #values: (V | undefined)[] = []
  readonly #free: number[] = []
  readonly #used: Uint8Array
  /** Bytes of each entry, as they were counted when it was set. */
  readonly #sizes: number[] = []
  readonly #capacity: number
  readonly #evicted: ((key: K, value: V) => void) | undefined
  readonly #entrySize: (key: K, value: V) => number
  #hand = 0
  #held = 0

  /**
   * `evicted` is told of every entry that had to make room, not of those deleted. `sizeOf` counts the bytes of an entry,
   * where that is more than its key and value as texts have.
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

  /** Bytes of all entries, about. */
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
      // Not yet "used": a key that nobody asks for leaves on the hand's first visit.
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

  /** Has entries make room until it is about so many bytes, first those that were not asked for of late. */
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

  /** Calls back for every entry. The callback may delete the entry that it is given. */
  forEach(visit: (value: V, key: K) => void): void {
    for (const [key, slot] of this.#slots) visit(this.#values[slot] as V, key)
  }

  /** A slot that nobody uses. */
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
