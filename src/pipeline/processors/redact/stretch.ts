/**
 * Units that were looked at already and hold no end of something. Triggers that stand close to each other would look at
 * the same units again and again: 64 KiB of `secret=` took 200 ms.
 */
export class Stretch {
  #from = 0
  #to = 0

  /** For another text. */
  clear(): void {
    this.#from = 0
    this.#to = 0
  }

  /** Where to look on, for who begins at `from`. */
  start(from: number): number {
    if (from >= this.#from && from <= this.#to) return this.#to
    this.#from = from
    return from
  }

  /** There is no end before `to`. */
  reach(to: number): void {
    this.#to = to
  }
}
