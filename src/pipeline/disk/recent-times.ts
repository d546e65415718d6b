const size = 4096

/** When records were written, of the last few thousand that were written or read. */
export class RecentTimes {
  readonly #seqs = new Float64Array(size)
  readonly #times = new Float64Array(size)

  note(seq: number, timeMs: number): void {
    this.#seqs[seq % size] = seq
    this.#times[seq % size] = timeMs
  }

  /** Undefined where it is not known any longer. */
  of(seq: number): number | undefined {
    return this.#seqs[seq % size] === seq ? this.#times[seq % size] : undefined
  }
}
