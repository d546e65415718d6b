// The heatmap as a graphic: time on the x-axis, duration on the y-axis, number by strength; failed requests have a dot.
// Dragging, a click, or Shift and the arrow keys select a part of it.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { TracesLine } from '../../../src/view/api/ui/documents.ts'
import { announce } from '../../lib/announce.ts'
import { computed } from '../../lib/colour.ts'
import { duration, time, whole } from '../../lib/format.ts'
import { palette } from '../../lib/theme.ts'
import { Figure } from '../../parts/figure.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import {
  type Cell,
  type Choice,
  type ColumnSum,
  choiceOf,
  columnSum,
  cornersOf,
  type Grid,
  gridOf,
  shadeOf,
} from './heatmap.ts'

const left = 52
const bottom = 20
const heightPx = 220
/** Minimum distance between two labels of an axis, in pixels. */
const labelsApartPx = { x: 90, y: 34 }

export interface HeatmapProps {
  readonly line: TracesLine
  readonly seconds: number
  readonly choice: Choice | undefined
  readonly onChoose: (choice: Choice | undefined, options?: { readonly step?: boolean }) => void
}

export function HeatmapFigure({ line, seconds, choice, onChoose }: HeatmapProps) {
  const grid = gridOf(line, seconds)
  return (
    <Figure
      title="Request durations"
      summary={summaryOf(grid)}
      table={() => <Columns grid={grid} onChoose={onChoose} />}
    >
      <Picture grid={grid} choice={choice} onChoose={onChoose} />
      <p class="summary">
        Stronger colour: more requests. <span class="failed-dot" /> Some failed. Drag, click, or hold Shift
        with the arrow keys to select; Escape clears the selection.
      </p>
    </Figure>
  )
}

interface PictureProps extends Omit<HeatmapProps, 'line' | 'seconds'> {
  readonly grid: Grid
}

function Picture({ grid, choice, onChoose }: PictureProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const widthPx = useSignal(0)
  /** Time and row of the cursor, which does not move with new data. */
  const cursor = useSignal<{ readonly atMs: number; readonly row: number } | undefined>(undefined)
  /** Where dragging, or selecting with Shift, began. */
  const anchor = useRef<Cell | undefined>(undefined)
  const dragging = useRef(false)

  useEffect(() => {
    const element = canvas.current!
    const watch = new ResizeObserver(() => {
      widthPx.value = element.clientWidth
    })
    watch.observe(element)
    return () => watch.disconnect()
  }, [])

  const at = cursor.value && cellOfCursor(grid, cursor.value)
  const painted = palette.value
  const shownWidth = widthPx.value
  useEffect(() => {
    if (shownWidth > 0) paint(canvas.current!, shownWidth, grid, choice, at)
  }, [
    grid,
    choice?.fromMs,
    choice?.toMs,
    choice?.minMs,
    choice?.maxMs,
    at?.row,
    at?.column,
    shownWidth,
    painted,
  ])

  const put = (cell: Cell) => {
    cursor.value = { atMs: grid.fromMs + (cell.column + 0.5) * grid.stepMs, row: cell.row }
  }
  const cellUnder = (event: PointerEvent): Cell => {
    const { x, y } = canvas.current!.getBoundingClientRect()
    return cellAt(grid, shownWidth, event.clientX - x, event.clientY - y)
  }
  const key = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && choice !== undefined) {
      event.preventDefault()
      anchor.current = undefined
      onChoose(undefined, { step: true })
      return
    }
    const before = at ?? { row: 0, column: grid.columns - 1 }
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault()
      onChoose(choiceOf(grid, before, before), { step: true })
      return
    }
    const step = steps[event.key]
    if (step === undefined || grid.columns === 0) return
    event.preventDefault()
    const next = {
      row: Math.max(0, Math.min(grid.rows - 1, before.row + step[1])),
      column: Math.max(0, Math.min(grid.columns - 1, before.column + step[0])),
    }
    put(next)
    if (event.shiftKey) {
      const first = anchor.current === undefined
      anchor.current ??= before
      onChoose(choiceOf(grid, anchor.current, next), { step: first })
    } else anchor.current = undefined
    announce(cellText(grid, next))
  }
  return (
    <>
      <canvas
        ref={canvas}
        class="heatmap"
        style={{ height: `${heightPx}px` }}
        tabIndex={0}
        role="img"
        aria-label="Request durations. Arrow keys move the cursor; with Shift they select."
        onKeyDown={key}
        onPointerDown={event => {
          if (event.button !== 0 || grid.columns === 0) return
          canvas.current!.setPointerCapture(event.pointerId)
          dragging.current = true
          anchor.current = cellUnder(event)
          put(anchor.current)
        }}
        onPointerMove={event => {
          if (grid.columns === 0) return
          const cell = cellUnder(event)
          if (at === undefined || cell.row !== at.row || cell.column !== at.column) put(cell)
        }}
        onPointerUp={event => {
          if (!dragging.current) return
          dragging.current = false
          onChoose(choiceOf(grid, anchor.current!, cellUnder(event)), { step: true })
          anchor.current = undefined
        }}
        onPointerCancel={() => {
          dragging.current = false
          anchor.current = undefined
        }}
        onPointerLeave={() => {
          if (!dragging.current) cursor.value = undefined
        }}
      />
      <p class="under-cursor">{at === undefined ? '\u00a0' : cellText(grid, at)}</p>
    </>
  )
}

const steps: Readonly<Record<string, readonly [columns: number, rows: number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
}

function cellOfCursor(
  grid: Grid,
  { atMs, row }: { readonly atMs: number; readonly row: number },
): Cell | undefined {
  const column = Math.floor((atMs - grid.fromMs) / grid.stepMs)
  return column < 0 || column >= grid.columns ? undefined : { row, column }
}

function cellAt(grid: Grid, width: number, x: number, y: number): Cell {
  const column = Math.floor(((x - left) / (width - left)) * grid.columns)
  const row = grid.rows - 1 - Math.floor((y / (heightPx - bottom)) * grid.rows)
  return {
    column: Math.max(0, Math.min(grid.columns - 1, column)),
    row: Math.max(0, Math.min(grid.rows - 1, row)),
  }
}

/** `14:03:10–14:03:20, 10 ms to 14 ms: 37 requests, 2 failed`. */
function cellText(grid: Grid, { row, column }: Cell): string {
  const from = grid.fromMs + column * grid.stepMs
  const count = grid.count(row, column)
  const failed = grid.failed(row, column)
  return `${time(from)}–${time(from + grid.stepMs)}, ${rangeOf(grid, row)}: ${whole(count)} ${
    count === 1 ? 'request' : 'requests'
  }${failed > 0 ? `, ${whole(failed)} failed` : ''}`
}

function rangeOf({ boundsMs }: Grid, row: number): string {
  if (row === 0) return `up to ${duration(boundsMs[0])}`
  const from = duration(boundsMs[row - 1])
  return row < boundsMs.length ? `${from} to ${duration(boundsMs[row])}` : `above ${from}`
}

function summaryOf(grid: Grid): string {
  if (grid.spans === 0) return 'No requests in this window.'
  let slowest = grid.rows - 1
  const inRow = (row: number) => {
    let sum = 0
    for (let column = 0; column < grid.columns; column++) sum += grid.count(row, column)
    return sum
  }
  while (slowest > 0 && inRow(slowest) === 0) slowest--
  let median = -1
  for (let sum = 0; sum * 2 < grid.spans; sum += inRow(median)) median++
  const one = grid.spans === 1
  const failed = grid.errors === 0 ? 'none failed' : `${whole(grid.errors)} failed`
  return `${whole(grid.spans)} ${one ? 'request' : 'requests'} since ${time(grid.fromMs)}, half ${rangeOf(grid, median).replace(/^.* to /, 'within ')}, slowest ${rangeOf(grid, slowest)}; ${failed}.`
}

function paint(
  canvas: HTMLCanvasElement,
  width: number,
  grid: Grid,
  choice: Choice | undefined,
  cursor: Cell | undefined,
): void {
  const ratio = devicePixelRatio || 1
  canvas.width = Math.round(width * ratio)
  canvas.height = Math.round(heightPx * ratio)
  const context = canvas.getContext('2d')
  if (context === null || grid.columns === 0) return
  context.scale(ratio, ratio)
  const [ink, line, surface] = [
    computed('var(--ink-soft)'),
    computed('var(--line)'),
    computed('var(--surface)'),
  ]
  const [full, bad, chosen] = [computed('var(--accent)'), computed('var(--bad)'), computed('var(--ink)')]
  const high = heightPx - bottom
  const cellWidth = (width - left) / grid.columns
  const cellHeight = high / grid.rows
  const xOf = (column: number) => left + column * cellWidth
  /** The upper edge of a row. */
  const yOf = (row: number) => high - (row + 1) * cellHeight

  context.font = '11px system-ui, sans-serif'
  context.fillStyle = ink
  context.strokeStyle = line
  context.lineWidth = 1
  context.textAlign = 'right'
  context.textBaseline = 'middle'
  const rowsApart = Math.max(1, Math.ceil(labelsApartPx.y / cellHeight))
  for (let row = 0; row < grid.boundsMs.length; row += rowsApart) {
    const y = Math.round(yOf(row)) + 0.5
    context.fillText(duration(Number(grid.boundsMs[row]!.toPrecision(2))), left - 6, Math.max(6, y))
    context.beginPath()
    context.moveTo(left, y)
    context.lineTo(width, y)
    context.stroke()
  }
  context.textAlign = 'left'
  const columnsApart = Math.max(1, Math.ceil(labelsApartPx.x / cellWidth))
  for (let column = 0; column < grid.columns; column += columnsApart)
    if (xOf(column) + 50 <= width)
      context.fillText(time(grid.fromMs + column * grid.stepMs), xOf(column), high + bottom / 2 + 2)

  const dot = Math.max(1.5, Math.min(3, cellWidth / 3, cellHeight / 3))
  for (let row = 0; row < grid.rows; row++)
    for (let column = 0; column < grid.columns; column++) {
      const count = grid.count(row, column)
      if (count === 0) continue
      const [x, y] = [xOf(column), yOf(row)]
      context.globalAlpha = shadeOf(count, grid.most)
      context.fillStyle = full
      context.fillRect(x, y, Math.max(1, cellWidth - 1), Math.max(1, cellHeight - 1))
      context.globalAlpha = 1
      if (grid.failed(row, column) === 0) continue
      context.beginPath()
      context.arc(x + cellWidth / 2 - 0.5, y + cellHeight / 2 - 0.5, dot, 0, 2 * Math.PI)
      context.fillStyle = bad
      context.fill()
      context.strokeStyle = surface
      context.stroke()
    }

  const corners = choice && cornersOf(grid, choice)
  if (corners !== undefined) outline(corners[0], corners[1], 2, chosen)
  if (cursor !== undefined) outline(cursor, cursor, 1.5, chosen)

  function outline(low: Cell, top: Cell, wide: number, colour: string): void {
    context!.strokeStyle = colour
    context!.lineWidth = wide
    const [x, y] = [xOf(low.column), yOf(top.row)]
    context!.strokeRect(x, y, xOf(top.column + 1) - x - 1, yOf(low.row - 1) - y - 1)
  }
}

function Columns({ grid, onChoose }: Pick<PictureProps, 'grid' | 'onChoose'>) {
  const rows: ColumnSum[] = []
  for (let column = grid.columns - 1; column >= 0; column--) rows.push(columnSum(grid, column))
  const bound = (ms: number | null) =>
    ms === null
      ? '–'
      : ms === Number.POSITIVE_INFINITY
        ? `above ${duration(grid.boundsMs.at(-1))}`
        : `within ${duration(ms)}`
  const columns: readonly Column<ColumnSum>[] = [
    {
      name: 'From',
      cell: ({ fromMs }) => (
        <button
          type="button"
          class="quiet"
          onClick={() => onChoose({ fromMs, toMs: fromMs + grid.stepMs, minMs: 0, maxMs: 0 }, { step: true })}
        >
          {time(fromMs)}
        </button>
      ),
    },
    { name: 'Requests', number: true, value: ({ spans }) => spans, cell: ({ spans }) => whole(spans) },
    { name: 'Failed', number: true, value: ({ errors }) => errors, cell: ({ errors }) => whole(errors) },
    {
      name: 'Median',
      number: true,
      value: ({ medianMs }) => medianMs,
      cell: ({ medianMs }) => bound(medianMs),
    },
    {
      name: 'Slowest',
      number: true,
      value: ({ slowestMs }) => slowestMs,
      cell: ({ slowestMs }) => bound(slowestMs),
    },
  ]
  return <Table caption="Request durations" columns={columns} rows={rows} rowKey={({ fromMs }) => fromMs} />
}
