/** Readings further apart are not comparable. */
export const mostApartMs = 5000

/** The increase of a counter per second. Allocates nothing. */
export class Rate {
  #before = Number.NaN
  #atMs = Number.NEGATIVE_INFINITY

  /** `NaN` at the first reading, after a gap, and after a reset of the counter. */
  next(value: number, nowMs: number): number {
    const passedMs = nowMs - this.#atMs
    const grown = value - this.#before
    this.#before = value
    this.#atMs = nowMs
    return passedMs > 0 && passedMs <= mostApartMs && grown >= 0 ? (1000 * grown) / passedMs : Number.NaN
  }
}
