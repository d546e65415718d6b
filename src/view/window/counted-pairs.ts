/** Bytes of an entry: two numbers, its count, and a half more slots than entries. */
export const pairBytes = 18

/**
 * Pairs of numbers below 2^32, each with a number of its own, the lowest that is free, and a count of who refers to it.
 * Room for all of them is taken at once; the system gives memory as it is used.
 */
export class CountedPairs {
  /** By number. */
  readonly first: Uint32Array
  readonly second: Uint32Array
  readonly count: Uint32Array
  readonly capacity: number
  /** Number plus one; 0 where free. Linear probing. */
  readonly #slots: Uint32Array
  #size = 0
  /** Numbers that were ever given, all of them below this. */
  #end = 0
  /** Number plus one of the first one that was given back; it has the next one in `first`. */
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

  /** Beyond all numbers that are in use. */
  get end(): number {
    return this.#end
  }

  get bytes(): number {
    return this.#size * pairBytes
  }

  /** How many more there is room for. */
  get room(): number {
    return this.capacity - this.#size
  }

  /** -1: there is none. */
  find(first: number, second: number): number {
    const slots = this.#slots
    for (let slot = this.#home(first, second); ; ) {
      const number = slots[slot]! - 1
      if (number < 0 || (this.first[number] === first && this.second[number] === second)) return number
      if (++slot === slots.length) slot = 0
    }
  }

  /** Adds a pair that is not there, for which there must be room; nobody refers to it yet. */
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
    // Whoever stands behind moves up, unless it would stand before where it is looked for first.
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
