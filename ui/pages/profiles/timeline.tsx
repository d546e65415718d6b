import { useSignal } from '@preact/signals'
import type { ProfilesLine } from '../../../src/view/api/ui/documents.ts'
import { announce } from '../../lib/announce.ts'
import { time, withUnit } from '../../lib/format.ts'
import { Figure } from '../../parts/figure.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { type Chosen, type Interval, type Range, rangeOf, spanned, stepped } from './intervals.ts'

export interface TimelineProps {
  readonly title: string
  readonly line: ProfilesLine
  readonly chosen: Chosen
  /** The intervals to compare with. */
  readonly before: Chosen | undefined
  /** Undefined: the latest ones. `done`: the selection is complete, not in progress. */
  readonly onChoose: (chosen: Chosen | undefined, done: boolean) => void
}

const width = 1000
const height = 56

/** A bar for each interval. Dragging or the arrow keys select a range. */
export function Timeline({ title, line, chosen, before, onChoose }: TimelineProps) {
  const dragged = useSignal<Chosen | undefined>(undefined)
  const anchor = useSignal(-1)
  const { intervals, unit } = line
  const shown = dragged.value ?? chosen
  const start = intervals[0]!.from_ms
  const scale = width / Math.max(1, line.to_ms - start)
  const most = intervals.reduce((high, { value }) => Math.max(high, value), 0) || 1
  const { fromMs, toMs } = rangeOf(intervals, shown)

  const at = (event: PointerEvent) => {
    const { left, width: wide } = (event.currentTarget as Element).getBoundingClientRect()
    const ms = start + ((event.clientX - left) / wide) * (line.to_ms - start)
    const found = intervals.findIndex(({ to_ms }) => ms < to_ms)
    return found < 0 ? intervals.length - 1 : found
  }
  const press = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -6, PageDown: 6 }[event.key]
    if (step !== undefined) {
      const next = stepped(chosen, step, event.shiftKey, intervals.length)
      onChoose(next, false)
      announce(rangeText(intervals, next, unit))
    } else if (event.key === 'Home') onChoose({ first: 0, last: intervals.length - 1 }, true)
    else if (event.key === 'Escape') onChoose(undefined, true)
    else return
    event.preventDefault()
  }
  const ground = (name: string, of: Range) => (
    <rect
      class={name}
      x={(of.fromMs - start) * scale}
      y={0}
      width={Math.max(2, (of.toMs - of.fromMs) * scale)}
      height={height}
    />
  )
  return (
    <Figure
      title={title}
      summary={rangeText(intervals, shown, unit)}
      table={() => <IntervalsTable line={line} chosen={chosen} onChoose={onChoose} />}
    >
      <div
        class="timeline"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keys select in it
        tabIndex={0}
        role="application"
        aria-roledescription="timeline"
        aria-label="Intervals. Arrow keys select one, with Shift several; Home selects all, Escape the newest."
        onKeyDown={press}
        onPointerDown={event => {
          if (event.button !== 0) return
          event.currentTarget.setPointerCapture(event.pointerId)
          anchor.value = event.shiftKey ? chosen.first : at(event)
          dragged.value = spanned(anchor.value, at(event))
        }}
        onPointerMove={event => {
          if (anchor.value >= 0) dragged.value = spanned(anchor.value, at(event))
        }}
        onPointerUp={() => {
          if (dragged.value !== undefined) onChoose(dragged.value, true)
          anchor.value = -1
          dragged.value = undefined
        }}
        onPointerCancel={() => {
          anchor.value = -1
          dragged.value = undefined
        }}
      >
        <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
          {before === undefined ? null : ground('before', rangeOf(intervals, before))}
          {ground('chosen', { fromMs, toMs })}
          {intervals.map(({ from_ms, to_ms, value }, i) => {
            const tall = value > 0 ? Math.max(1, (value / most) * (height - 4)) : 0
            return (
              <rect
                key={from_ms}
                class={i >= shown.first && i <= shown.last ? 'in' : ''}
                x={(from_ms - start) * scale}
                y={height - tall}
                width={Math.max(1, (to_ms - from_ms) * scale - 2)}
                height={tall}
              />
            )
          })}
        </svg>
      </div>
      <p class="row soft timeline-ends">
        <span>{time(start)}</span>
        <span>{time(line.to_ms)}</span>
      </p>
    </Figure>
  )
}

function rangeText(intervals: readonly Interval[], chosen: Chosen, unit: string): string {
  const { fromMs, toMs } = rangeOf(intervals, chosen)
  const sum = intervals.slice(chosen.first, chosen.last + 1).reduce((all, { value }) => all + value, 0)
  return `${time(fromMs)} to ${time(toMs)}: ${withUnit(sum, unit)} in ${chosen.last - chosen.first + 1} of ${intervals.length} intervals.`
}

function IntervalsTable({ line, chosen, onChoose }: Pick<TimelineProps, 'line' | 'chosen' | 'onChoose'>) {
  const { intervals, unit } = line
  const columns: Column<number>[] = [
    { name: 'From', value: i => i, cell: i => time(intervals[i]!.from_ms) },
    { name: 'To', cell: i => time(intervals[i]!.to_ms) },
    {
      name: 'Sum',
      number: true,
      value: i => intervals[i]!.value,
      cell: i => withUnit(intervals[i]!.value, unit),
    },
    {
      name: 'Selection',
      cell: i => (
        <button type="button" class="quiet" onClick={() => onChoose({ first: i, last: i }, true)}>
          {isIn(i) ? 'Selected; show only this' : 'Show only this'}
        </button>
      ),
    },
  ]
  const isIn = (i: number) => i >= chosen.first && i <= chosen.last
  return (
    <Table
      caption="Intervals"
      columns={columns}
      rows={intervals.map((_, i) => i).reverse()}
      rowKey={i => intervals[i]!.from_ms}
      most={intervals.length}
      mark={i => (isIn(i) ? 'chosen' : '')}
    />
  )
}
