// The newest values of many series at even steps, in fixed memory.

export interface SampleHistoryOptions {
  /** Values per series. */
  readonly rows: number
  /** Time between values, in milliseconds. */
  readonly stepMs: number
  /** Maximum memory. */
  readonly maxBytes: number
  /** Keep values as 64-bit numbers; otherwise 32-bit (seven digits), in half of the memory. */
  readonly wide?: boolean
}

type Values = Float32Array | Float64Array

/** Series are allocated in blocks, so that a few hundred bytes of overhead do not outweigh their values. */
const seriesPerBlock = 8
/** Bytes of a typed array besides its values. */
const blockOverhead = 256

/**
 * A ring of rows, with a column for each series. `NaN` is an unknown value. Times are of a monotonic clock, in
 * milliseconds; a row is the step nearest to its time. Allocates nothing but blocks for new series.
 */
export class SampleHistory {
  readonly rows: number
  readonly stepMs: number
  readonly #mostBlocks: number
  readonly #wide: boolean
  readonly #blocks: Values[] = []
  /** Released columns. */
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

  /** Memory in use. */
  get bytes(): number {
    return this.#blocks.length * blockBytes(this.rows, this.#wide)
  }

  /** Number of rows, including the newest. */
  get length(): number {
    return this.#newest < 0 ? 0 : this.#newest - this.#oldest + 1
  }

  /** Number of the newest row, increasing with time; -1 before the first. */
  get newest(): number {
    return this.#newest
  }

  /** The time of a row. */
  timeOf(row: number): number {
    return row * this.stepMs
  }

  /** Allocates a column without values; undefined if there is no room. */
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

  /** Releases a series; its column is reused. */
  release(column: number): void {
    this.#block(column).fill(Number.NaN, this.#base(column), this.#base(column) + this.rows)
    this.#free.push(column)
  }

  /** Sets the time of the values that follow. Rows between it and the last one have no values. */
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

  /** A value; `NaN` if it is unknown or no longer kept. */
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
