// The cells of the heatmap: the visible part, the meaning of a selection, and the shades.

import type { TracesLine } from '../../../src/view/api/ui/documents.ts'

export type Heatmap = TracesLine['heatmap']

/** The visible columns of the heatmap, without a copy. */
export interface Grid {
  readonly fromMs: number
  readonly stepMs: number
  readonly columns: number
  readonly rows: number
  /** Upper bounds of all rows but the last. */
  readonly boundsMs: readonly number[]
  /** Largest number of spans in a cell. */
  readonly most: number
  readonly spans: number
  readonly errors: number
  count(row: number, column: number): number
  failed(row: number, column: number): number
}

/** The newest columns, covering `seconds`. */
export function gridOf(line: Pick<TracesLine, 'from_ms' | 'heatmap'>, seconds: number): Grid {
  const { step_ms, columns, bounds_ms, counts, errors } = line.heatmap
  const shown = Math.max(0, Math.min(columns, Math.ceil((seconds * 1000) / step_ms)))
  const first = columns - shown
  const at = (row: number, column: number) => row * columns + first + column
  const grid = {
    fromMs: line.from_ms + first * step_ms,
    stepMs: step_ms,
    columns: shown,
    rows: bounds_ms.length + 1,
    boundsMs: bounds_ms,
    count: (row: number, column: number) => counts[at(row, column)] ?? 0,
    failed: (row: number, column: number) => errors[at(row, column)] ?? 0,
  }
  let most = 0
  let all = 0
  let failed = 0
  for (let row = 0; row < grid.rows; row++)
    for (let column = 0; column < shown; column++) {
      const count = grid.count(row, column)
      most = Math.max(most, count)
      all += count
      failed += grid.failed(row, column)
    }
  return { ...grid, most, spans: all, errors: failed }
}

/** From 0 (empty) to 1 (largest). Even a single span is visible. */
export function shadeOf(count: number, most: number): number {
  return count <= 0 ? 0 : 0.14 + 0.86 * (Math.log1p(count - 1) / Math.log1p(Math.max(1, most - 1)))
}

/** A selection: traces that started between two times, with a duration between two bounds. */
export interface Choice {
  readonly fromMs: number
  readonly toMs: number
  /** 0: no bound. */
  readonly minMs: number
  readonly maxMs: number
}

export interface Cell {
  readonly row: number
  readonly column: number
}

/** The selection between two corner cells. */
export function choiceOf(grid: Grid, a: Cell, b: Cell): Choice {
  const [left, right] = [Math.min(a.column, b.column), Math.max(a.column, b.column)]
  const [low, high] = [Math.min(a.row, b.row), Math.max(a.row, b.row)]
  return {
    fromMs: grid.fromMs + left * grid.stepMs,
    toMs: grid.fromMs + (right + 1) * grid.stepMs,
    minMs: low === 0 ? 0 : grid.boundsMs[low - 1]!,
    maxMs: grid.boundsMs[high] ?? 0,
  }
}

/** The corners of a selection; undefined if none of it is visible. */
export function cornersOf(grid: Grid, choice: Choice): readonly [low: Cell, high: Cell] | undefined {
  const left = Math.floor((choice.fromMs - grid.fromMs) / grid.stepMs)
  const right = Math.ceil((choice.toMs - grid.fromMs) / grid.stepMs) - 1
  if (right < 0 || left >= grid.columns || right < left) return undefined
  const low = choice.minMs === 0 ? 0 : rowOf(grid, choice.minMs * 1.000001)
  const high = choice.maxMs === 0 ? grid.rows - 1 : rowOf(grid, choice.maxMs)
  return [
    { row: low, column: Math.max(0, left) },
    { row: Math.max(low, high), column: Math.min(grid.columns - 1, right) },
  ]
}

/** The row of a duration. */
export function rowOf({ boundsMs, rows }: Grid, durationMs: number): number {
  const row = boundsMs.findIndex(bound => durationMs <= bound)
  return row < 0 ? rows - 1 : row
}

/** Summary of a column; durations are upper bounds of rows, `Infinity` for the last, null if the column is empty. */
export interface ColumnSum {
  readonly fromMs: number
  readonly spans: number
  readonly errors: number
  readonly medianMs: number | null
  readonly slowestMs: number | null
}

export function columnSum(grid: Grid, column: number): ColumnSum {
  let spans = 0
  let errors = 0
  let slowest = -1
  for (let row = 0; row < grid.rows; row++) {
    const count = grid.count(row, column)
    spans += count
    errors += grid.failed(row, column)
    if (count > 0) slowest = row
  }
  let median = -1
  for (let sum = 0; spans > 0 && sum * 2 < spans; sum += grid.count(median, column)) median++
  const bound = (row: number) => (row < 0 ? null : (grid.boundsMs[row] ?? Number.POSITIVE_INFINITY))
  return {
    fromMs: grid.fromMs + column * grid.stepMs,
    spans,
    errors,
    medianMs: bound(median),
    slowestMs: bound(slowest),
  }
}
