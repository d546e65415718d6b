const size = 4096

/** Write times of the last few thousand records written or read. */
export class RecentTimes {
  readonly #seqs = new Float64Array(size)
  readonly #times = new Float64Array(size)

  note(seq: number, timeMs: number): void {
    this.#seqs[seq % size] = seq
    this.#times[seq % size] = timeMs
  }

  /** Write time of a record; undefined if no longer known. */
  of(seq: number): number | undefined {
    return this.#seqs[seq % size] === seq ? this.#times[seq % size] : undefined
  }
}
