// Values of many series at even steps, the newest of them, in memory that is taken once.

export interface SampleHistoryOptions {
  /** Values of each series. */
  readonly rows: number
  /** Time from one value to the next, in milliseconds. */
  readonly stepMs: number
  /** Memory at most. */
  readonly maxBytes: number
  /** Values keep all their digits; else those of a float, which is seven, in half of the memory. */
  readonly wide?: boolean
}

type Values = Float32Array | Float64Array

/** Series are given memory together, so that a few hundred bytes of bookkeeping do not outweigh theirs. */
const seriesPerBlock = 8
/** What a typed array takes beside its values. */
const blockOverhead = 256

/**
 * A ring of rows, a column for each series. `NaN` is what nobody knows. Times are of a clock that never goes back, in
 * milliseconds: a row is the step that is nearest to its time. Allocates nothing but blocks of new series.
 */
export class SampleHistory {
  readonly rows: number
  readonly stepMs: number
  readonly #mostBlocks: number
  readonly #wide: boolean
  readonly #blocks: Values[] = []
  /** Columns that were given back. */
  readonly #free: number[] = []
  #columns = 0
  #newest = -1
  #oldest = 0

  constructor({ rows, stepMs, maxBytes, wide = false }: SampleHistoryOptions) {
    this.rows = Math.max(1, Math.floor(rows))
    this.stepMs = stepMs
    this.#wide = wide
    this.#mostBlocks = Math.floor(maxBytes / blockBytes(this.rows, wide))
  }

  /** Memory that is taken. */
  get bytes(): number {
    return this.#blocks.length * blockBytes(this.rows, this.#wide)
  }

  /** Rows that are kept, the newest included. */
  get length(): number {
    return this.#newest < 0 ? 0 : this.#newest - this.#oldest + 1
  }

  /** Number of the newest row, which rises with the time; -1 before the first. */
  get newest(): number {
    return this.#newest
  }

  /** The time of a row. */
  timeOf(row: number): number {
    return row * this.stepMs
  }

  /** A column for a series, of which nothing is known yet; undefined where there is no room. */
  take(): number | undefined {
    const given = this.#free.pop()
    if (given !== undefined) return given
    if (this.#columns === this.#blocks.length * seriesPerBlock) {
      if (this.#blocks.length >= this.#mostBlocks) return undefined
      const length = seriesPerBlock * this.rows
      this.#blocks.push((this.#wide ? new Float64Array(length) : new Float32Array(length)).fill(Number.NaN))
    }
    return this.#columns++
  }

  /** Forgets a series; its column goes to another one. */
  release(column: number): void {
    this.#block(column).fill(Number.NaN, this.#base(column), this.#base(column) + this.rows)
    this.#free.push(column)
  }

  /** Values that are set from now on are of this time. Rows between it and the last one have no values. */
  begin(atMs: number): void {
    const row = Math.round(atMs / this.stepMs)
    if (row <= this.#newest) return
    const isFirst = this.#newest < 0
    const fresh = isFirst ? 1 : Math.min(this.rows, row - this.#newest)
    for (let i = 0; i < fresh; i++) this.#clear((row - i) % this.rows)
    if (isFirst) this.#oldest = row
    this.#newest = row
    this.#oldest = Math.max(this.#oldest, row - this.rows + 1)
  }

  /** Sets the value of a series in the newest row. */
  set(column: number, value: number): void {
    this.#block(column)[this.#base(column) + (this.#newest % this.rows)] = value
  }

  /** A value; `NaN` where it is not known, or not kept any longer. */
  at(column: number, row: number): number {
    if (row > this.#newest || row < this.#oldest) return Number.NaN
    return this.#block(column)[this.#base(column) + (row % this.rows)]!
  }

  #clear(at: number): void {
    for (const block of this.#blocks) for (let i = at; i < block.length; i += this.rows) block[i] = Number.NaN
  }

  #block(column: number): Values {
    return this.#blocks[Math.floor(column / seriesPerBlock)]!
  }

  #base(column: number): number {
    return (column % seriesPerBlock) * this.rows
  }
}

function blockBytes(rows: number, wide: boolean): number {
  return seriesPerBlock * rows * (wide ? 8 : 4) + blockOverhead
}
