/** Converts counts by the kernel's bounds into counts by a histogram's bounds, which are a subset of them. */
export class CountedBuckets {
  readonly #bounds: readonly number[]
  readonly #places = new Map<readonly number[], Uint8Array>()
  readonly #counts = new Float64Array(64)

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
  }

  /** The counts by `bounds`, the last one above all of them. Valid until the next call. */
  of(bounds: readonly number[], counts: ArrayLike<number>): ArrayLike<number> {
    let places = this.#places.get(bounds)
    if (places === undefined) {
      // Values up to a kernel bound lie up to the next bound of the histogram.
      places = Uint8Array.from([...this.#bounds, Number.POSITIVE_INFINITY], bound => {
        const at = bounds.findIndex(own => bound <= own)
        return at < 0 ? bounds.length : at
      })
      this.#places.set(bounds, places)
    }
    const own = this.#counts.subarray(0, bounds.length + 1)
    own.fill(0)
    for (let i = 0; i < places.length; i++) own[places[i]!]! += counts[i]!
    return own
  }
}
