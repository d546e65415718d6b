// Lines or bands over time, on uPlot's canvas, with a summary in words and a table.

import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { announce } from '../lib/announce.ts'
import { computed, seriesColour } from '../lib/colour.ts'
import { time, withUnit } from '../lib/format.ts'
import { palette } from '../lib/theme.ts'
import { Figure } from './figure.tsx'

export interface ChartSeries {
  readonly label: string
  readonly values: readonly (number | null)[]
  /** A role, `var(--…)`; by index if absent. */
  readonly colour?: string
}

export interface ChartProps {
  readonly title: string
  /** As in documents: `%`, `By/s`, …. */
  readonly unit: string
  /** Seconds since the Unix epoch, ascending. */
  readonly times: readonly number[]
  readonly series: readonly ChartSeries[]
  /** Stacks the series, as parts of one whole. */
  readonly stacked?: boolean
  /** Maximum of the axis; from the values if absent. */
  readonly most?: number
  /** Charts with the same name share their cursor. */
  readonly sync?: string
  readonly heightPx?: number
  /** Called with a range selected by dragging, in seconds. */
  readonly onRange?: (from: number, to: number) => void
}

export function Chart(props: ChartProps) {
  const { title, unit, series } = props
  return (
    <Figure title={title} summary={summaryOf(props)} table={() => <ValuesTable {...props} />}>
      <Plot {...props} />
      <ul class="legend">
        {series.map(({ label, values, colour }, i) => (
          <li key={label}>
            <span class="swatch" style={{ background: colour ?? seriesColour(i) }} />
            {label} <b>{withUnit(values.at(-1), unit)}</b>
          </li>
        ))}
      </ul>
    </Figure>
  )
}

/** A separate component, because the table replaces it. */
function Plot(props: ChartProps) {
  const { title, unit, times, series, stacked = false, heightPx = 140 } = props
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const latest = useRef(props)
  latest.current = props
  const shape = series.map(({ label, colour }) => `${label} ${colour ?? ''}`).join('\n')
  const painted = palette.value

  useEffect(() => {
    const element = box.current!
    const made = new uPlot(optionsOf(latest, element.clientWidth || 300), dataOf(latest.current), element)
    plot.current = made
    const watch = new ResizeObserver(() => {
      if (element.clientWidth > 0) made.setSize({ width: element.clientWidth, height: heightPx })
    })
    watch.observe(element)
    return () => {
      watch.disconnect()
      made.destroy()
      plot.current = undefined
    }
  }, [shape, unit, stacked, heightPx, painted])

  useEffect(() => {
    plot.current?.setData(dataOf(latest.current))
  }, [times, series])

  const move = (event: KeyboardEvent) => {
    const made = plot.current
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key]
    if (made === undefined || step === undefined || times.length === 0) return
    event.preventDefault()
    const at = Math.max(0, Math.min(times.length - 1, (made.cursor.idx ?? times.length - 1) + step))
    made.setCursor({ left: made.valToPos(times[at]!, 'x'), top: 10 })
    announce(`${time(times[at]! * 1000)}: ${valuesText(props, at)}`)
  }

  return (
    <div
      class="chart"
      ref={box}
      style={{ minHeight: `${heightPx}px` }}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keys move its cursor
      tabIndex={0}
      role="img"
      aria-label={`${title}. Arrow keys move the cursor.`}
      onKeyDown={move}
    />
  )
}

function valuesText({ series, unit }: ChartProps, at: number): string {
  return series.map(({ label, values }) => `${label} ${withUnit(values[at], unit)}`).join(', ')
}

/** Range, last value and trend of the whole. */
function summaryOf({ times, series, unit, stacked }: ChartProps): string {
  if (times.length === 0 || series.length === 0) return 'No data yet.'
  const isKnown = (i: number) => series.some(({ values }) => values[i] != null)
  const sums = stacked
    ? times.flatMap((_, i) =>
        isKnown(i) ? [series.reduce((sum, { values }) => sum + (values[i] ?? 0), 0)] : [],
      )
    : (series[0]!.values.filter(value => value !== null) as number[])
  if (sums.length === 0) return 'No data yet.'
  const last = sums.at(-1)!
  const lowest = sums.reduce((a, b) => Math.min(a, b))
  const highest = sums.reduce((a, b) => Math.max(a, b))
  const what = stacked ? 'Total' : series[0]!.label
  const half = sums.length >> 1
  const mean = (part: readonly number[]) => part.reduce((a, b) => a + b, 0) / Math.max(1, part.length)
  const [before, after] = [mean(sums.slice(0, half)), mean(sums.slice(half))]
  const trend = after > before * 1.2 ? 'rising' : after < before * 0.8 ? 'falling' : 'steady'
  return `${what}: ${withUnit(last, unit)} now, between ${withUnit(lowest, unit)} and ${withUnit(highest, unit)}, ${trend}.`
}

/** Maximum number of rows, spread evenly. */
const tableRows = 60

function ValuesTable({ title, times, series, unit }: ChartProps) {
  const step = Math.max(1, Math.ceil(times.length / tableRows))
  const rows: number[] = []
  for (let i = times.length - 1; i >= 0; i -= step) rows.push(i)
  return (
    // biome-ignore lint/a11y/useSemanticElements: it groups no fields
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll it
    <div class="scroll" tabIndex={0} role="group" aria-label={title}>
      <table>
        <caption class="unseen">{title}</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map(({ label }) => (
              <th key={label} scope="col" class="number">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(i => (
            <tr key={i}>
              <th scope="row">{time(times[i]! * 1000)}</th>
              {series.map(({ label, values }) => (
                <td key={label} class="number">
                  {withUnit(values[i], unit)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function dataOf({ times, series, stacked }: ChartProps): uPlot.AlignedData {
  const columns = series.map(({ values }) => values as (number | null)[])
  if (!stacked) return [times as number[], ...columns]
  // The first series is at the bottom: each band reaches from the sum of the lower ones to its own. Unknown values
  // leave a gap.
  const isKnown = times.map((_, i) => columns.some(column => column[i] != null))
  const sums: (number | null)[][] = []
  for (const column of columns) {
    const below = sums.at(-1)
    sums.push(isKnown.map((known, i) => (known ? (below?.[i] ?? 0) + (column[i] ?? 0) : null)))
  }
  return [times as number[], ...sums]
}

/** Makes `rgb(…)` transparent. */
function faint(colour: string): string {
  return colour.replace('rgb(', 'rgba(').replace(')', ', 0.4)')
}

function optionsOf(latest: { readonly current: ChartProps }, width: number): uPlot.Options {
  const { unit, series, stacked = false, most, sync, heightPx = 140 } = latest.current
  const ink = computed('var(--ink-soft)')
  const grid = { stroke: computed('var(--line)'), width: 1 }
  const axis = { stroke: ink, grid, ticks: grid, font: '11px system-ui', size: 28 }
  const colours = series.map(({ colour }, i) => computed(colour ?? seriesColour(i)))
  return {
    width,
    height: heightPx,
    legend: { show: false },
    cursor: {
      ...(sync !== undefined && { sync: { key: sync } }),
      drag: { x: latest.current.onRange !== undefined, y: false, setScale: false },
      points: { size: 6 },
    },
    scales: { x: { time: true }, y: { range: (_, _low, high) => [0, most ?? (high > 0 ? high * 1.1 : 1)] } },
    axes: [axis, { ...axis, size: 72, values: (_, ticks) => ticks.map(value => withUnit(value, unit)) }],
    series: [
      {},
      ...series.map(({ label }, i) => ({
        label,
        stroke: colours[i]!,
        width: 1.5,
        // By default uPlot shows points if there are few: a single value between gaps is not a line.
        points: stacked ? { show: false } : { size: 4 },
        spanGaps: false,
        ...(stacked && i === 0 && { fill: faint(colours[i]!) }),
      })),
    ],
    ...(stacked && {
      bands: series.slice(1).map((_, i) => ({
        series: [i + 2, i + 1] as [number, number],
        fill: faint(colours[i + 1]!),
      })),
    }),
    hooks: {
      setSelect: [
        plot => {
          const { left, width: wide } = plot.select
          if (wide < 4) return
          latest.current.onRange?.(plot.posToVal(left, 'x'), plot.posToVal(left + wide, 'x'))
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
        },
      ],
    },
  }
}
