// Number of records over time, by level, most severe on top.

import { useSignal } from '@preact/signals'
import { announce } from '../../lib/announce.ts'
import { time, whole } from '../../lib/format.ts'
import { Figure } from '../../parts/figure.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import type { Histogram, Level } from './tail.ts'

const gravity: readonly Level[] = ['unknown', 'trace', 'debug', 'info', 'warn', 'error', 'fatal']
const heightPx = 64
const columnWidth = 10

export function HistogramFigure({ histogram }: { readonly histogram: Histogram }) {
  const { from_ms, step_ms } = histogram
  const rows = gravity.flatMap(level => {
    const found = histogram.levels.find(each => each.level === level)
    const total = found?.counts.reduce((a, b) => a + b, 0) ?? 0
    return found !== undefined && total > 0 ? [{ ...found, total }] : []
  })
  const columns = histogram.levels[0]?.counts.length ?? 0
  const sums = Array.from({ length: columns }, (_, i) =>
    rows.reduce((sum, { counts }) => sum + counts[i]!, 0),
  )
  const most = Math.max(1, ...sums)
  const cursor = useSignal(-1)
  const at = Math.min(cursor.value, columns - 1)
  const columnText = (i: number) => {
    const parts = rows.flatMap(({ level, counts }) =>
      counts[i]! > 0 ? [`${whole(counts[i]!)} ${level}`] : [],
    )
    return `${time(from_ms + i * step_ms)}–${time(from_ms + (i + 1) * step_ms)}: ${parts.reverse().join(', ') || 'none'}`
  }
  const move = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (step === undefined || columns === 0) return
    event.preventDefault()
    const next = Math.max(0, Math.min(columns - 1, (at < 0 ? columns : at) + step))
    cursor.value = next
    announce(columnText(next))
  }
  return (
    <Figure
      title="Log records by time and level"
      summary={summaryOf(rows, from_ms)}
      table={() => <Counts rows={rows} sums={sums} fromMs={from_ms} stepMs={step_ms} />}
    >
      <svg
        class="histogram"
        viewBox={`0 0 ${Math.max(1, columns) * columnWidth} ${heightPx}`}
        preserveAspectRatio="none"
        height={heightPx}
        role="img"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keys move its cursor
        tabIndex={0}
        aria-label="Log records by time and level. Arrow keys move the cursor."
        onKeyDown={move}
        onPointerMove={event => {
          const { left, width } = event.currentTarget.getBoundingClientRect()
          cursor.value = Math.floor(((event.clientX - left) / width) * columns)
        }}
        onPointerLeave={() => {
          cursor.value = -1
        }}
      >
        {sums.map((sum, i) => (
          <g key={i} class={i === at ? 'chosen' : ''}>
            <rect class="column" x={i * columnWidth} y={0} width={columnWidth} height={heightPx} />
            {sum > 0 ? bars(rows, i, most) : null}
          </g>
        ))}
      </svg>
      <p class="under-cursor">{at < 0 ? `\u00a0` : columnText(at)}</p>
      <ul class="legend">
        {rows.map(({ level, total }) => (
          <li key={level}>
            <span class={`swatch level ${level}`} />
            {level} <b>{whole(total)}</b>
          </li>
        ))}
      </ul>
    </Figure>
  )
}

interface LevelRow {
  readonly level: Level
  readonly counts: readonly number[]
  readonly total: number
}

function bars(rows: readonly LevelRow[], i: number, most: number) {
  let below = 0
  return rows.map(({ level, counts }) => {
    const count = counts[i]!
    if (count === 0) return null
    const height = Math.max(1, (count / most) * (heightPx - 2))
    below += height
    return (
      <rect
        key={level}
        class={`level ${level}`}
        x={i * columnWidth + 0.5}
        y={heightPx - below}
        width={columnWidth - 1}
        height={height}
      />
    )
  })
}

const graveWords: Readonly<Partial<Record<Level, readonly [one: string, more: string]>>> = {
  warn: ['warning', 'warnings'],
  error: ['error', 'errors'],
  fatal: ['fatal error', 'fatal errors'],
}

function summaryOf(rows: readonly LevelRow[], fromMs: number): string {
  const all = rows.reduce((sum, { total }) => sum + total, 0)
  if (all === 0) return 'No matching records in this time.'
  const grave = rows.flatMap(({ level, total }) => {
    const [one, more] = graveWords[level] ?? []
    return one === undefined ? [] : [`${whole(total)} ${total === 1 ? one : more}`]
  })
  return `${whole(all)} ${all === 1 ? 'record' : 'records'} since ${time(fromMs)}, ${grave.length === 0 ? 'no warnings or errors' : `including ${grave.reverse().join(', ')}`}.`
}

function Counts({
  rows,
  sums,
  fromMs,
  stepMs,
}: {
  readonly rows: readonly LevelRow[]
  readonly sums: readonly number[]
  readonly fromMs: number
  readonly stepMs: number
}) {
  const columns: readonly Column<number>[] = [
    { name: 'From', cell: i => time(fromMs + i * stepMs) },
    { name: 'Total', number: true, value: i => sums[i]!, cell: i => whole(sums[i]!) },
    ...[...rows].reverse().map(({ level, counts }) => ({
      name: level,
      number: true,
      value: (i: number) => counts[i]!,
      cell: (i: number) => whole(counts[i]!),
    })),
  ]
  return (
    <Table
      caption="Log records by time and level"
      columns={columns}
      rows={[...sums.keys()].reverse()}
      rowKey={i => i}
    />
  )
}
