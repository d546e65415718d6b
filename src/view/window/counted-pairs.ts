/** Bytes per entry: two numbers, a count, and one and a half slots. */
export const pairBytes = 18

/**
 * Pairs of numbers below 2^32, each with the lowest free number and a reference count. All memory is reserved at once;
 * the system commits it as it is used.
 */
export class CountedPairs {
  /** By pair number. */
  readonly first: Uint32Array
  readonly second: Uint32Array
  readonly count: Uint32Array
  readonly capacity: number
  /** Pair number plus one; 0 if free. Linear probing. */
  readonly #slots: Uint32Array
  #size = 0
  /** All numbers ever assigned are below this. */
  #end = 0
  /** First released number, plus one; the next one of the list is in `first`. */
  #free = 0

  constructor(capacity: number) {
    this.capacity = capacity
    this.first = new Uint32Array(capacity)
    this.second = new Uint32Array(capacity)
    this.count = new Uint32Array(capacity)
    this.#slots = new Uint32Array(Math.ceil(capacity * 1.5))
  }

  get size(): number {
    return this.#size
  }

  /** Above all numbers in use. */
  get end(): number {
    return this.#end
  }

  get bytes(): number {
    return this.#size * pairBytes
  }

  /** Free entries. */
  get room(): number {
    return this.capacity - this.#size
  }

  /** -1: not found. */
  find(first: number, second: number): number {
    const slots = this.#slots
    for (let slot = this.#home(first, second); ; ) {
      const number = slots[slot]! - 1
      if (number < 0 || (this.first[number] === first && this.second[number] === second)) return number
      if (++slot === slots.length) slot = 0
    }
  }

  /** Adds a missing pair, with no references yet; there must be room. */
  add(first: number, second: number): number {
    const number = this.#free > 0 ? this.#free - 1 : this.#end++
    if (this.#free > 0) this.#free = this.first[number]!
    this.#size++
    this.first[number] = first
    this.second[number] = second
    this.count[number] = 0
    const slots = this.#slots
    let slot = this.#home(first, second)
    while (slots[slot] !== 0) if (++slot === slots.length) slot = 0
    slots[slot] = number + 1
    return number
  }

  delete(number: number): void {
    const slots = this.#slots
    let hole = this.#home(this.first[number]!, this.second[number]!)
    while (slots[hole] !== number + 1) if (++hole === slots.length) hole = 0
    // Later entries of the probe sequence move up, unless that puts one before its first slot.
    for (let slot = hole; ; ) {
      if (++slot === slots.length) slot = 0
      const other = slots[slot]! - 1
      if (other < 0) break
      const home = this.#home(this.first[other]!, this.second[other]!)
      const stays = hole < slot ? hole < home && home <= slot : hole < home || home <= slot
      if (stays) continue
      slots[hole] = other + 1
      hole = slot
    }
    slots[hole] = 0
    this.first[number] = this.#free
    this.#free = number + 1
    this.#size--
  }

  #home(first: number, second: number): number {
    let hash = Math.imul(first + 0x7f4a7c15, 0x9e3779b1) ^ Math.imul(second + 1, 0x85ebca6b)
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
    hash ^= hash >>> 13
    return Math.floor(((hash >>> 0) / 4294967296) * this.#slots.length)
  }
}
