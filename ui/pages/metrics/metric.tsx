import { useMemo } from 'preact/hooks'
import type { SeriesLine } from '../../../src/view/api/ui/documents.ts'
import { apiUrl } from '../../lib/api.ts'
import { exactTime, short, withUnit } from '../../lib/format.ts'
import { windowSeconds } from '../../lib/host.ts'
import { useLive } from '../../lib/live.ts'
import { parameter, setParameters } from '../../lib/route.ts'
import { Chart } from '../../parts/chart.tsx'
import { Command } from '../../parts/command.tsx'
import { Field } from '../../parts/small.tsx'
import { Empty, Reading } from '../../parts/state.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import type { Family, Section } from './families.ts'
import {
  added,
  canBeSummed,
  combined,
  drawnUnit,
  type Label,
  type LineSelection,
  labelsOf,
  labelText,
  linesOf,
  type OverTime,
} from './over-time.ts'
import { promql } from './promql.ts'

const mostLines = 8
const mostChoices = 200

/** A value of a metric for display, including points in time. */
export function valueText(value: number | null, { name, unit }: Family): string {
  // Seconds since the Unix epoch are not a duration.
  if (value !== null && unit === 's' && value > 1e9 && /time/.test(name))
    return new Date(value * 1000).toISOString().slice(0, 19).replace('T', ' ')
  return withUnit(value, unit)
}

/** One metric over time, with all its details. */
export function Metric({ name, section }: { readonly name: string; readonly section: Section | undefined }) {
  const seconds = windowSeconds.value
  const reading = useLive<SeriesLine, OverTime | undefined>(apiUrl('series', { name }), (before, line) =>
    added(before, line, seconds),
  )
  if (reading.missing)
    return (
      <Empty
        title="Unknown metric"
        why={
          <>
            <code>{name}</code> is not measured on this host now. Its collector may be off, or its data source
            is missing.
          </>
        }
        command="svc doctor"
      />
    )
  return (
    <Reading of={reading} what={name}>
      {() => <Known known={reading.value!} section={section} />}
    </Reading>
  )
}

function Known({ known, section }: { readonly known: OverTime; readonly section: Section | undefined }) {
  const { start } = known
  const { family } = start
  const labels = useMemo(() => labelsOf(start), [start])
  const wanted = wantedOf(labels)
  const sums = canBeSummed(start)
  const counters = start.rate && (family.type === 'histogram' || family.type === 'summary')
  return (
    <div class="stack metric">
      <p>{family.help}</p>
      <dl class="facts">
        <dt>OpenTelemetry</dt>
        <dd class="mono">{family.otel_name || 'not in the semantic conventions'}</dd>
        <dt>Type</dt>
        <dd>{family.type}</dd>
        <dt>Unit</dt>
        <dd>{family.unit || 'count'}</dd>
        <dt>Source</dt>
        <dd class="mono">{section?.source || section?.name || '–'}</dd>
        <dt>Series</dt>
        <dd>
          {family.series}
          {start.omitted > 0 ? `, largest ${start.series.length} shown` : ''}
        </dd>
      </dl>
      <Choices labels={labels} wanted={wanted} sums={sums} />
      {counters ? <p class="note">The chart shows the number of values per second.</p> : null}
      <Lines known={known} wanted={wanted} sums={sums} />
      <h3>PromQL query</h3>
      <Command text={promql({ name: family.name, type: family.type, ...wanted, sums })} />
      <Series known={known} wanted={wanted} />
      <details>
        <summary>Prometheus format</summary>
        <pre>{start.series.map(({ line }) => line).join('\n')}</pre>
        <p class="note">Values from when this panel was opened.</p>
      </details>
    </div>
  )
}

/** The selection in the URL, as far as it matches these series. */
function wantedOf(labels: readonly Label[]): LineSelection {
  const split = parameter('split')
  const text = parameter('only')
  const at = text.indexOf('=')
  const only = { label: text.slice(0, at), value: text.slice(at + 1) }
  const isThere = labels.some(({ name, values }) => name === only.label && values.includes(only.value))
  return {
    split: labels.some(({ name }) => name === split) ? split : '',
    only: at > 0 && isThere ? only : undefined,
  }
}

function Choices({
  labels,
  wanted,
  sums,
}: {
  readonly labels: readonly Label[]
  readonly wanted: LineSelection
  readonly sums: boolean
}) {
  if (labels.length === 0) return null
  const { split, only } = wanted
  return (
    <div class="tools">
      <Field label={`Lines (${sums ? 'sum' : 'mean'} by)`}>
        <select value={split} onChange={event => setParameters({ split: event.currentTarget.value })}>
          <option value="">Each series</option>
          {labels.map(({ name, values }) => (
            <option key={name} value={name}>
              {`by ${name} (${values.length})`}
            </option>
          ))}
        </select>
      </Field>
      <Field label="Filter">
        <select
          value={only === undefined ? '' : `${only.label}=${only.value}`}
          onChange={event => setParameters({ only: event.currentTarget.value })}
        >
          <option value="">All</option>
          {labels.map(({ name, values }) => (
            <optgroup key={name} label={name}>
              {values.slice(0, mostChoices).map(value => (
                <option key={value} value={`${name}=${value}`}>
                  {`${name}=${value}`}
                </option>
              ))}
            </optgroup>
          ))}
        </select>
      </Field>
    </div>
  )
}

function Lines({
  known,
  wanted,
  sums,
}: {
  readonly known: OverTime
  readonly wanted: LineSelection
  readonly sums: boolean
}) {
  const { start, times } = known
  // The order is fixed once there are values: lines that keep changing places are hard to follow.
  const lines = useMemo(
    () => linesOf(known, wanted, sums),
    [start, wanted.split, wanted.only?.label, wanted.only?.value, Math.min(3, times.length)],
  )
  const shown = lines.slice(0, mostLines)
  if (lines.length === 0)
    return (
      <Empty
        title="No series"
        why="The metric is known, but what it measures is missing on this host, or has not happened yet."
      />
    )
  const series = shown.map(line => ({ label: line.label, values: combined(known, line, sums) }))
  if (series.every(({ values }) => values.every(value => value === null)))
    return (
      <p class="note" aria-busy="true">
        {start.rate ? 'A rate needs two readings; the next one follows in a few seconds.' : 'No value yet.'}
      </p>
    )
  return (
    <>
      <Chart title={start.family.name} unit={drawnUnit(start)} times={times} series={series} heightPx={200} />
      {lines.length > shown.length ? (
        <p class="note">
          Largest {shown.length} of {lines.length} lines; all are in the table below.
        </p>
      ) : null}
    </>
  )
}

interface SeriesRow {
  readonly key: number
  readonly labels: string
  readonly now: number | null
}

function Series({ known, wanted: { only } }: { readonly known: OverTime; readonly wanted: LineSelection }) {
  const { start, values, times } = known
  const unit = drawnUnit(start)
  const rows = start.series
    .map(({ labels }, key) => ({ key, labels, now: values[key]?.at(-1) ?? null }))
    .filter(({ labels }) => only === undefined || (labels[only.label] ?? '') === only.value)
    .map(row => ({ ...row, labels: labelText(row.labels) || start.family.name }))
  const columns: Column<SeriesRow>[] = [
    {
      name: 'Series',
      value: ({ labels }) => labels,
      cell: ({ labels }) => <bdi class="mono breaks">{labels}</bdi>,
    },
    {
      name: start.rate ? 'Per second' : 'Now',
      number: true,
      value: ({ now }) => now,
      cell: ({ now }) => (start.rate ? withUnit(now, unit) : valueText(now, start.family)),
    },
  ]
  const last = times.at(-1)
  return (
    <>
      <h3>
        {short(rows.length)} series{' '}
        {last === undefined ? null : <span class="soft">at {exactTime(last * 1000)}</span>}
      </h3>
      <Table caption="Series" columns={columns} rows={rows} rowKey={({ key }) => key} />
    </>
  )
}
