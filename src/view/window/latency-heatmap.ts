/** Upper bounds of the rows in milliseconds, evenly spaced on a logarithmic scale. The last row has none. */
const bounds: readonly number[] = Array.from({ length: 23 }, (_, i) =>
  Number((0.1 * 600_000 ** (i / 22)).toPrecision(3)),
)
const rows = bounds.length + 1
const leastStepMs = 10_000
const mostColumns = 180

/** What a heatmap shows. */
export interface Heatmap {
  /** Start of the first column, in milliseconds since the Unix epoch. */
  readonly fromMs: number
  readonly stepMs: number
  readonly columns: number
  readonly boundsMs: readonly number[]
  /** Row by row, fastest first. */
  readonly counts: readonly number[]
  readonly errors: readonly number[]
}

/** Number of recent spans by start time and duration, in fixed memory. */
export class LatencyHeatmap {
  readonly stepMs: number
  readonly #columns: number
  /** Column by column, so that a column is cleared at once; a column's index is its number modulo their count. */
  readonly #counts: Uint32Array
  readonly #errors: Uint32Array
  #newest = Number.NEGATIVE_INFINITY

  /** Covers `windowMs` in columns of 10 s, or of a multiple of it, so that there are at most 180. */
  constructor(windowMs: number) {
    this.stepMs = leastStepMs * Math.max(1, Math.ceil(windowMs / leastStepMs / mostColumns))
    this.#columns = Math.max(1, Math.ceil(windowMs / this.stepMs))
    this.#counts = new Uint32Array(this.#columns * rows)
    this.#errors = new Uint32Array(this.#columns * rows)
  }

  get bytes(): number {
    return this.#counts.byteLength + this.#errors.byteLength
  }

  /** Ignores spans that began before the first column. */
  add(startMs: number, durationMs: number, failed: boolean, nowMs: number): void {
    this.#advance(nowMs)
    const column = Math.min(this.#newest, Math.floor(startMs / this.stepMs))
    if (!(column > this.#newest - this.#columns)) return
    const at = (column % this.#columns) * rows + rowOf(durationMs)
    this.#counts[at]!++
    if (failed) this.#errors[at]!++
  }

  read(nowMs: number): Heatmap {
    this.#advance(nowMs)
    const first = this.#newest - this.#columns + 1
    return {
      fromMs: first * this.stepMs,
      stepMs: this.stepMs,
      columns: this.#columns,
      boundsMs: bounds,
      counts: this.#rowByRow(this.#counts, first),
      errors: this.#rowByRow(this.#errors, first),
    }
  }

  #rowByRow(cells: Uint32Array, first: number): number[] {
    const values: number[] = []
    for (let row = 0; row < rows; row++)
      for (let i = 0; i < this.#columns; i++) values.push(cells[((first + i) % this.#columns) * rows + row]!)
    return values
  }

  #advance(nowMs: number): void {
    const now = Math.floor(nowMs / this.stepMs)
    if (now === this.#newest) return
    // The clock was set back: columns of the future have data of another time. A small step is tolerated.
    if (now < this.#newest - 1 || now >= this.#newest + this.#columns) this.#clear()
    else if (now < this.#newest) return
    else for (let each = this.#newest + 1; each <= now; each++) this.#clearColumn(each % this.#columns)
    this.#newest = now
  }

  #clear(): void {
    this.#counts.fill(0)
    this.#errors.fill(0)
  }

  #clearColumn(place: number): void {
    this.#counts.fill(0, place * rows, (place + 1) * rows)
    this.#errors.fill(0, place * rows, (place + 1) * rows)
  }
}

function rowOf(durationMs: number): number {
  let low = 0
  let high = bounds.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (durationMs <= bounds[middle]!) high = middle
    else low = middle + 1
  }
  return low
}
