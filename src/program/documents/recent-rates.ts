interface Reading {
  readonly atMs: number
  readonly values: ReadonlyMap<string, number>
}

/** Measuring period: over shorter ones, batches would make rates jump between updates. */
const spanMs = 5_000
/** After a longer break, measuring starts again. */
const mostApartMs = 15_000

/** Increase of counters per second, over the last readings. */
export class RecentRates {
  #readings: Reading[] = []

  /** Records the counters at `nowMs`, from a monotonic clock. */
  read(values: ReadonlyMap<string, number>, nowMs: number): void {
    const last = this.#readings.at(-1)
    if (last !== undefined && nowMs - last.atMs > mostApartMs) this.#readings = []
    this.#readings.push({ atMs: nowMs, values })
    while (this.#readings.length > 2 && nowMs - this.#readings[1]!.atMs >= spanMs) this.#readings.shift()
  }

  /** Change of a counter per second, negative if it decreased; 0 before the second reading. */
  change(name: string): number {
    const first = this.#readings[0]
    const last = this.#readings.at(-1)
    if (first === undefined || last === undefined || first === last) return 0
    const grown = (last.values.get(name) ?? 0) - (first.values.get(name) ?? 0)
    return last.atMs > first.atMs ? (1000 * grown) / (last.atMs - first.atMs) : 0
  }

  /** The same for a counter that only increases: after a reset it is not negative. */
  rate(name: string): number {
    return Math.max(0, this.change(name))
  }
}
