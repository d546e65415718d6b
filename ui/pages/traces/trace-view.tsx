// One trace: its facts, its waterfall, and the selected span.

import { useEffect, useMemo, useState } from 'preact/hooks'
import type { TraceDocument } from '../../../src/view/api/ui/documents.ts'
import { apiUrl } from '../../lib/api.ts'
import { nameColour } from '../../lib/colour.ts'
import { duration, exactTime, whole } from '../../lib/format.ts'
import { hidden, paused, useDocument } from '../../lib/live.ts'
import { agentNow } from '../../lib/now.ts'
import { hrefOf, parameter, setParameters } from '../../lib/route.ts'
import { Copy } from '../../parts/copy.tsx'
import { Figure } from '../../parts/figure.tsx'
import { Head, Pill } from '../../parts/small.tsx'
import { Empty, Reading } from '../../parts/state.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { type Drawn, drawnOf, gapText } from './drawn.ts'
import { SpanDetails } from './span-details.tsx'
import { WaterfallRows } from './waterfall-rows.tsx'

/** A trace may still grow for this long after its end: spans arrive after they end, spans of peers even later. */
const growsMs = 15_000
const againMs = 2000

export function TraceView({ id }: { readonly id: string }) {
  const [again, setAgain] = useState(0)
  const reading = useDocument<TraceDocument>(apiUrl('trace', { id }), again)
  const { value } = reading
  const waits = paused.value || hidden.value || reading.state !== 'live'
  useEffect(() => {
    if (waits || value === undefined) return
    // The clock of another host may be ahead.
    if (Math.abs(agentNow() - value.start_ms - value.duration_ms) > growsMs) return
    const timer = setTimeout(() => setAgain(times => times + 1), againMs)
    return () => clearTimeout(timer)
  }, [waits, value])
  if (reading.missing && value === undefined)
    return (
      <>
        <Head title="Trace" subtitle={id} />
        <div class="card">
          <Empty
            title="Trace not in the window"
            why="The window retains the latest, slow and failed traces for a while. This one has been removed, was never seen on this host, or has another ID. To retain more, raise self_telemetry.ui.window and self_telemetry.ui.max_memory."
          >
            <a href={hrefOf('traces')}>All traces</a>
          </Empty>
        </div>
      </>
    )
  return (
    <Reading of={reading} what="the trace">
      {() => <Trace trace={reading.value!} />}
    </Reading>
  )
}

function Trace({ trace }: { readonly trace: TraceDocument }) {
  const drawn = useMemo(() => drawnOf(trace), [trace])
  const asked = parameter('span')
  const { order } = drawn.tree
  const found = trace.spans.findIndex(({ span_id }) => span_id === asked)
  const chosen = found >= 0 ? found : (order[0] ?? -1)
  const first = trace.spans[order[0] ?? 0]
  const choose = (span: number) => setParameters({ span: trace.spans[span]!.span_id })
  return (
    <>
      <Head title={<bdi>{first?.name || 'Trace'}</bdi>} subtitle={`Trace of ${duration(trace.duration_ms)}`}>
        <a href={hrefOf('traces')}>All traces</a>
        <a href={hrefOf('logs', { trace_id: trace.trace_id })}>Logs of this trace</a>
      </Head>
      <Facts drawn={drawn} />
      <h2 class="unseen">Spans</h2>
      <div class="columns trace-columns">
        <Figure title="Waterfall" summary={summaryOf(drawn)} table={() => <SpanTable drawn={drawn} />}>
          <Legend trace={trace} />
          <WaterfallRows drawn={drawn} chosen={chosen} onChoose={choose} />
        </Figure>
        {chosen >= 0 ? (
          <SpanDetails key={trace.spans[chosen]!.span_id} drawn={drawn} at={chosen} onChoose={choose} />
        ) : null}
      </div>
    </>
  )
}

function Facts({ drawn: { trace, tree, gaps } }: { readonly drawn: Drawn }) {
  const failed = trace.spans.filter(({ error }) => error).length
  const lost = tree.oddity.filter(each => each === 'lost').length
  const early = tree.oddity.filter(each => each === 'early').length
  return (
    <div class="card stack">
      <dl class="facts">
        <dt>Trace</dt>
        <dd>
          <code>{trace.trace_id}</code> <Copy text={trace.trace_id} what="the trace ID" />
        </dd>
        <dt>Start</dt>
        <dd>{exactTime(trace.start_ms)}</dd>
        <dt>Spans</dt>
        <dd>
          {whole(trace.spans.length)}
          {failed > 0 ? ' ' : ', '}
          {failed > 0 ? <Pill level="bad" text={`${whole(failed)} failed`} /> : 'none failed'}
        </dd>
        {gaps.length > 0 ? (
          <>
            <dt>Gaps</dt>
            <dd>{gaps.map(gap => gapText(tree, gap)).join('; ')}</dd>
          </>
        ) : null}
      </dl>
      {lost > 0 ? (
        <p class="notice">
          {lost === 1 ? 'The parent of one span is' : `The parents of ${whole(lost)} spans are`} missing:
          created on another host, or no longer in the window.
        </p>
      ) : null}
      {early > 0 ? (
        <p class="notice">
          {early === 1 ? 'One span starts' : `${whole(early)} spans start`} before the parent: the clocks of
          their sources differ.
        </p>
      ) : null}
    </div>
  )
}

function summaryOf({ trace, critical }: Drawn): string {
  let longest = -1
  for (const [span, ms] of critical) if (longest < 0 || ms > critical.get(longest)!) longest = span
  const span = trace.spans[longest]
  if (span === undefined) return 'No span took any time.'
  const share = Math.round((critical.get(longest)! / trace.duration_ms) * 100)
  return `Largest part of the critical path: ${span.name} of ${span.service}, ${share} % of ${duration(trace.duration_ms)}.`
}

/** Services of the trace, in the order of their first span. */
function Legend({ trace }: { readonly trace: TraceDocument }) {
  const counts = new Map<string, number>()
  for (const { service } of trace.spans) counts.set(service, (counts.get(service) ?? 0) + 1)
  const shown = [...counts].slice(0, 12)
  return (
    <ul class="legend">
      {shown.map(([service, count]) => (
        <li key={service}>
          <span class="swatch" style={{ background: nameColour(service) }} />
          {service} {whole(count)}
        </li>
      ))}
      {counts.size > shown.length ? <li>and {counts.size - shown.length} more services</li> : null}
      <li>
        <span class="critical-sample" /> critical path
      </li>
      <li>
        <span class="estimated-sample" /> estimated parent
      </li>
    </ul>
  )
}

function SpanTable({ drawn: { tree, critical, trace } }: { readonly drawn: Drawn }) {
  const { spans, order, depth } = tree
  const columns: readonly Column<number>[] = [
    { name: 'Span', cell: i => <bdi>{spans[i]!.name}</bdi> },
    { name: 'Service', value: i => spans[i]!.service, cell: i => spans[i]!.service },
    { name: 'Kind', value: i => spans[i]!.kind, cell: i => spans[i]!.kind },
    { name: 'Depth', number: true, value: i => depth[i]!, cell: i => depth[i]! },
    { name: 'Start', number: true, value: i => spans[i]!.start_ms, cell: i => duration(spans[i]!.start_ms) },
    {
      name: 'Duration',
      number: true,
      value: i => spans[i]!.duration_ms,
      cell: i => duration(spans[i]!.duration_ms),
    },
    {
      name: 'Critical path',
      number: true,
      value: i => critical.get(i) ?? 0,
      cell: i => duration(critical.get(i) ?? 0),
    },
    { name: 'State', cell: i => (spans[i]!.error ? <Pill level="bad" text="failed" /> : 'ok') },
  ]
  return (
    <Table caption={`Spans of ${trace.trace_id}`} columns={columns} rows={order} rowKey={i => i} most={500} />
  )
}
