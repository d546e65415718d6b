/** Readings that are further apart say nothing of the last second. */
export const mostApartMs = 5000

/** What a counter grows by in a second. Allocates nothing. */
export class Rate {
  #before = Number.NaN
  #atMs = Number.NEGATIVE_INFINITY

  /** `NaN` at the first reading, after a gap, and where the counter began anew. */
  next(value: number, nowMs: number): number {
    const passedMs = nowMs - this.#atMs
    const grown = value - this.#before
    this.#before = value
    this.#atMs = nowMs
    return passedMs > 0 && passedMs <= mostApartMs && grown >= 0 ? (1000 * grown) / passedMs : Number.NaN
  }
}
