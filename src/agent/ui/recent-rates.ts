interface Reading {
  readonly atMs: number
  readonly values: ReadonlyMap<string, number>
}

/** Time over which growth is measured: what comes in batches would else come and go from one look to the next. */
const spanMs = 5_000
/** Whoever looked away for longer begins anew. */
const mostApartMs = 15_000

/** What counters grow by in a second, over the last readings. */
export class RecentRates {
  #readings: Reading[] = []

  /** Takes down how they stand at `nowMs`, of a clock that never goes back. */
  read(values: ReadonlyMap<string, number>, nowMs: number): void {
    const last = this.#readings.at(-1)
    if (last !== undefined && nowMs - last.atMs > mostApartMs) this.#readings = []
    this.#readings.push({ atMs: nowMs, values })
    while (this.#readings.length > 2 && nowMs - this.#readings[1]!.atMs >= spanMs) this.#readings.shift()
  }

  /** Growth of a counter in a second, below zero where it fell; 0 before the second reading. */
  change(name: string): number {
    const first = this.#readings[0]
    const last = this.#readings.at(-1)
    if (first === undefined || last === undefined || first === last) return 0
    const grown = (last.values.get(name) ?? 0) - (first.values.get(name) ?? 0)
    return last.atMs > first.atMs ? (1000 * grown) / (last.atMs - first.atMs) : 0
  }

  /** The same of one that only grows: one that began anew did not fall. */
  rate(name: string): number {
    return Math.max(0, this.change(name))
  }
}
