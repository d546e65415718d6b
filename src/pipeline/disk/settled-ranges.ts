/**
 * Settled sequence numbers: all up to `acked`, and ranges above it (holes) where records were settled
 * out of order. Numbers that were never assigned count as settled.
 */
export class SettledRanges {
  #acked = 0
  /** Ranges above `#acked + 1`, ascending, neither touching nor overlapping: two numbers each, both included. */
  readonly #from: number[] = []
  readonly #to: number[] = []
  #inHoles = 0

  /** All numbers up to this one are settled, and the next one is not. */
  get acked(): number {
    return this.#acked
  }

  /** Number of settled numbers above `acked`. */
  get inHoles(): number {
    return this.#inHoles
  }

  /** Highest settled number. */
  get highest(): number {
    return this.#to.at(-1) ?? this.#acked
  }

  /** First `most` ranges above `acked`, ascending. */
  holes(most = Number.POSITIVE_INFINITY): [from: number, to: number][] {
    const count = Math.min(most, this.#from.length)
    return Array.from({ length: count }, (_, index) => [
      this.#from[index] as number,
      this.#to[index] as number,
    ])
  }

  /** Settles the numbers from `from` to `to`, both included. */
  add(from: number, to: number): void {
    if (to <= this.#acked || to < from) return
    if (from <= this.#acked + 1) {
      this.#acked = to
      this.#swallowHoles()
      return
    }
    // All ranges that touch the new one are merged with it.
    const begin = this.#rangeEndingFrom(from - 1)
    let end = begin
    let low = from
    let high = to
    while (end < this.#from.length && (this.#from[end] as number) <= to + 1) {
      low = Math.min(low, this.#from[end] as number)
      high = Math.max(high, this.#to[end] as number)
      this.#inHoles -= (this.#to[end] as number) - (this.#from[end] as number) + 1
      end++
    }
    this.#from.splice(begin, end - begin, low)
    this.#to.splice(begin, end - begin, high)
    this.#inHoles += high - low + 1
  }

  has(seq: number): boolean {
    return this.next(seq) !== seq
  }

  /** Lowest unsettled number from `seq` on. */
  next(seq: number): number {
    if (seq <= this.#acked) return this.#acked + 1
    const index = this.#rangeEndingFrom(seq)
    const from = this.#from[index]
    return from !== undefined && from <= seq ? (this.#to[index] as number) + 1 : seq
  }

  /** Lowest unsettled number from `from` to `to`, both included; infinite for none. */
  first(from: number, to: number): number {
    const next = this.next(from)
    return next > to ? Number.POSITIVE_INFINITY : next
  }

  /** Whether all numbers from `from` to `to`, both included, are settled; true for an empty range. */
  covers(from: number, to: number): boolean {
    return this.next(from) > to
  }

  /** Number of unsettled numbers from `from` to `to`, both included. */
  missing(from: number, to: number): number {
    const first = Math.max(from, this.#acked + 1)
    if (to < first) return 0
    let count = to - first + 1
    for (let index = this.#rangeEndingFrom(first); index < this.#from.length; index++) {
      const begin = this.#from[index] as number
      if (begin > to) break
      count -= Math.min(to, this.#to[index] as number) - Math.max(first, begin) + 1
    }
    return count
  }

  #swallowHoles(): void {
    let count = 0
    for (; count < this.#from.length && (this.#from[count] as number) <= this.#acked + 1; count++) {
      this.#inHoles -= (this.#to[count] as number) - (this.#from[count] as number) + 1
      this.#acked = Math.max(this.#acked, this.#to[count] as number)
    }
    this.#from.splice(0, count)
    this.#to.splice(0, count)
  }

  /** Index of the first range that ends at `seq` or above. */
  #rangeEndingFrom(seq: number): number {
    let low = 0
    let high = this.#to.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#to[middle] as number) < seq) low = middle + 1
      else high = middle
    }
    return low
  }
}
