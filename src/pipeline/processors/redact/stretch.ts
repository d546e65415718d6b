/**
 * Range already searched without finding an end. Adjacent triggers would search the same units again and again: 64 KiB
 * of `secret=` took 200 ms.
 */
export class Stretch {
  #from = 0
  #to = 0

  /** Resets it for another text. */
  clear(): void {
    this.#from = 0
    this.#to = 0
  }

  /** Where a search from `from` continues. */
  start(from: number): number {
    if (from >= this.#from && from <= this.#to) return this.#to
    this.#from = from
    return from
  }

  /** Notes that there is no end before `to`. */
  reach(to: number): void {
    this.#to = to
  }
}
