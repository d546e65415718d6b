// The health of this host and the agent.

import type { OverviewLine } from '../../src/view/api/ui/documents.ts'
import { bytes, percent } from '../lib/format.ts'
import { type Overview, overview, overviewError } from '../lib/host.ts'
import { hrefOf } from '../lib/route.ts'
import { Chart, type ChartSeries } from '../parts/chart.tsx'
import { Command } from '../parts/command.tsx'
import { Services } from '../parts/services.tsx'
import { Head, Pill } from '../parts/small.tsx'
import { Reading } from '../parts/state.tsx'
import { Table } from '../parts/table.tsx'

type Start = Extract<OverviewLine, { kind: 'start' }>
type Tick = Extract<OverviewLine, { kind: 'tick' }>
type ChartId = Start['series'][number]['chart']

interface ChartForm {
  readonly id: ChartId
  readonly title: string
  readonly stacked?: boolean
  readonly most?: number
}

const charts: readonly ChartForm[] = [
  { id: 'cpu', title: 'CPU', stacked: true, most: 100 },
  { id: 'memory', title: 'Memory', stacked: true },
  { id: 'disk', title: 'Disk' },
  { id: 'network', title: 'Network' },
  { id: 'pressure', title: 'Pressure: waiting time', most: 100 },
  { id: 'tcp', title: 'TCP' },
]

export default function OverviewPage() {
  const { value } = overview
  const reading = {
    state: overviewError.value !== '' ? 'error' : value === undefined ? 'loading' : 'live',
    value,
    error: overviewError.value,
  } as const
  return (
    <>
      <Head title="Overview" subtitle="Health of this host and the agent" />
      <Reading of={reading} what="the overview">
        {() => <Body {...value!} />}
      </Reading>
    </>
  )
}

function Body({ start, tick, times, values }: Overview) {
  return (
    <>
      <div class="columns">
        <section class="card stack" aria-label="Services">
          <h2>Services</h2>
          {tick === undefined ? <Waiting /> : <Services rows={tick.services} />}
        </section>
        <section class="card stack" aria-label="Findings">
          <h2>Findings</h2>
          {tick === undefined ? <Waiting /> : <Findings rows={tick.findings} />}
        </section>
      </div>
      <div class="grid">
        {charts.map(({ id, ...form }) => {
          const series = seriesOf(id, start, values)
          return series.length === 0 ? null : (
            <Chart
              key={id}
              {...form}
              unit={unitOf(id, start)}
              times={times}
              series={series}
              sync="overview"
            />
          )
        })}
      </div>
      <section class="card stack" aria-label="Top processes">
        <h2>Top processes</h2>
        {tick === undefined ? <Waiting /> : <Processes rows={tick.processes} />}
      </section>
    </>
  )
}

function Waiting() {
  return (
    <p class="note" aria-busy="true">
      Loading …
    </p>
  )
}

/** Lines without data are omitted. */
function seriesOf(id: ChartId, { series }: Start, values: Overview['values']): ChartSeries[] {
  return series.flatMap(({ chart, label }, i) => {
    const own = values[i] ?? []
    return chart === id && own.some(value => value !== null) ? [{ label, values: own }] : []
  })
}

function unitOf(id: ChartId, { series }: Start): string {
  return series.find(({ chart }) => chart === id)?.unit ?? ''
}

function Findings({ rows }: { readonly rows: Tick['findings'] }) {
  if (rows.length === 0) return <p class="note">No findings.</p>
  return (
    <ul class="stack">
      {rows.map(({ level, text, link, command }) => (
        <li key={text} class="stack">
          <span>
            <Pill level={level} /> {link === '' ? text : <a href={link}>{text}</a>}
          </span>
          {command === '' ? null : <Command text={command} />}
        </li>
      ))}
    </ul>
  )
}

function Processes({ rows }: { readonly rows: Tick['processes'] }) {
  return (
    <Table
      caption="Top processes"
      rows={rows}
      rowKey={({ pid }) => pid}
      columns={[
        { name: 'Process', value: ({ name }) => name, cell: ({ name }) => name },
        { name: 'PID', number: true, value: ({ pid }) => pid, cell: ({ pid }) => pid },
        {
          name: 'CPU (of one core)',
          number: true,
          value: ({ cpu_percent }) => cpu_percent,
          cell: ({ cpu_percent }) => percent(cpu_percent),
        },
        {
          name: 'Memory',
          number: true,
          value: ({ rss_bytes }) => rss_bytes,
          cell: ({ rss_bytes }) => bytes(rss_bytes),
        },
        { name: 'Logs', cell: ({ pid }) => <a href={hrefOf('logs', { pid })}>Logs of {pid}</a> },
      ]}
      empty={<p class="note">No processes measured yet.</p>}
    />
  )
}
