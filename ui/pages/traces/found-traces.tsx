// The search form, matching traces, and the heatmap in which part of them is selected.

import type { TracesLine } from '../../../src/view/api/ui/documents.ts'
import { apiUrl } from '../../lib/api.ts'
import { duration, time, whole } from '../../lib/format.ts'
import { windowSeconds } from '../../lib/host.ts'
import { useLastValue } from '../../lib/last-value.ts'
import { useDocument, useLive } from '../../lib/live.ts'
import { agentNow } from '../../lib/now.ts'
import { parameter, setParameters } from '../../lib/route.ts'
import { ServiceChoice } from '../../parts/service-choice.tsx'
import { Choice, Head } from '../../parts/small.tsx'
import { Empty, Reading } from '../../parts/state.tsx'
import { TypedField } from '../../parts/typed-field.tsx'
import type { Choice as Chosen } from './heatmap.ts'
import { HeatmapFigure } from './heatmap-figure.tsx'
import { TraceTable } from './trace-table.tsx'

const sorts = [
  ['new', 'Newest'],
  ['slow', 'Slowest'],
  ['errors', 'Failed first'],
] as const
type Sort = (typeof sorts)[number][0]

/** Refresh period of a selected interval: traces may still be added to its end. */
const againMs = 5000

function number(name: string): number {
  const value = Number(parameter(name, '0'))
  return Number.isFinite(value) && value > 0 ? value : 0
}

function chosen(): Chosen | undefined {
  const [fromMs, toMs] = [number('from'), number('to')]
  return toMs > fromMs ? { fromMs, toMs, minMs: number('min_ms'), maxMs: number('max_ms') } : undefined
}

function choose(choice: Chosen | undefined, { step = false } = {}): void {
  setParameters(
    {
      from: choice?.fromMs ?? '',
      to: choice?.toMs ?? '',
      min_ms: choice?.minMs || '',
      max_ms: choice?.maxMs || '',
    },
    { replace: !step },
  )
}

export function FoundTraces() {
  const choice = chosen()
  const errors = parameter('errors') === '1'
  const sort: Sort = sorts.find(([each]) => each === parameter('sort'))?.[0] ?? 'new'
  const question = {
    service: parameter('service'),
    errors,
    q: parameter('q'),
    sort,
    // The API takes whole milliseconds; the rest is filtered here.
    min_ms: Math.floor(number('min_ms')) || '',
    max_ms: Math.ceil(number('max_ms')) || '',
  }
  const live = useLastValue(
    useLive<TracesLine>(apiUrl('traces', { ...question, since_ms: windowSeconds.value * 1000 })),
  )
  const past = useDocument<TracesLine>(choice && apiUrl('traces', { ...question, ...reachOf(choice) }))
  const shown = choice === undefined ? live : { ...past, value: past.value && within(past.value, choice) }
  return (
    <>
      <Head title="Traces" subtitle="Slow and failed requests">
        <Choice
          label="Order"
          values={sorts}
          value={sort}
          onChoose={value => setParameters({ sort: value === 'new' ? '' : value })}
        />
      </Head>
      <Reading of={live} what="traces">
        {() => {
          const line = live.value!
          if (line.no_data_reason !== '' && line.spans_seen === 0)
            return (
              <div class="card">
                <Empty title="No traces" why={line.no_data_reason} command="svc doctor traces" />
              </div>
            )
          return (
            <>
              {line.no_data_reason === '' ? null : <p class="notice">{line.no_data_reason}</p>}
              <h2 class="unseen">Request durations</h2>
              <HeatmapFigure line={line} seconds={windowSeconds.value} choice={choice} onChoose={choose} />
              <Filters services={line.services} errors={errors} choice={choice} />
              <section class="card stack" aria-label="Matching traces">
                <h2 class="unseen">Matching traces</h2>
                <Reading of={shown} what="traces of the selected interval">
                  {() => (
                    <Found
                      line={shown.value!}
                      seen={line.spans_seen}
                      kept={line.spans_retained}
                      chosen={choice !== undefined}
                    />
                  )}
                </Reading>
              </section>
            </>
          )
        }}
      </Reading>
    </>
  )
}

/** The interval relative to the agent's clock, with a margin. */
function reachOf({ fromMs, toMs }: Chosen) {
  const now = Math.floor(agentNow() / againMs) * againMs
  return {
    since_ms: Math.max(1, Math.ceil(now - fromMs) + 2 * againMs),
    until_ms: Math.max(0, Math.floor(now - toMs) - againMs) || '',
    limit: 500,
  }
}

/** Traces that started within the interval. */
function within(line: TracesLine, { fromMs, toMs, minMs, maxMs }: Chosen): TracesLine {
  const traces = line.traces.filter(
    ({ start_ms, duration_ms }) =>
      start_ms >= fromMs && start_ms < toMs && duration_ms >= minMs && (maxMs === 0 || duration_ms <= maxMs),
  )
  const all = line.traces.length === line.matched
  return { ...line, traces, matched: all ? traces.length : line.matched }
}

function Filters({
  services,
  errors,
  choice,
}: {
  readonly services: readonly string[]
  readonly errors: boolean
  readonly choice: Chosen | undefined
}) {
  return (
    <search class="row filters">
      <ServiceChoice services={services} />
      <TypedField label="Text in names and attributes" name="q" />
      {choice === undefined ? <TypedField label="Minimum duration (ms)" name="min_ms" digits /> : null}
      <button type="button" aria-pressed={errors} onClick={() => setParameters({ errors: errors ? '' : 1 })}>
        Show failed only
      </button>
      {choice === undefined ? null : (
        <button type="button" onClick={() => choose(undefined, { step: true })}>
          {wordsOf(choice)} <span aria-hidden="true">✕</span>
          <span class="unseen">: clear the selection</span>
        </button>
      )}
    </search>
  )
}

/** `14:03:10–14:03:40, 10 ms to 100 ms`. */
function wordsOf({ fromMs, toMs, minMs, maxMs }: Chosen): string {
  const times = `${time(fromMs)}–${time(toMs)}`
  if (minMs === 0 && maxMs === 0) return times
  if (maxMs === 0) return `${times}, above ${duration(minMs)}`
  return minMs === 0
    ? `${times}, up to ${duration(maxMs)}`
    : `${times}, ${duration(minMs)} to ${duration(maxMs)}`
}

function Found({
  line,
  seen,
  kept,
  chosen,
}: {
  readonly line: TracesLine
  readonly seen: number
  readonly kept: number
  /** A part of the heatmap is selected. */
  readonly chosen: boolean
}) {
  if (line.traces.length > 0)
    return (
      <>
        <p class="note">
          {line.matched > line.traces.length
            ? `${whole(line.traces.length)} of ${whole(line.matched)} matching traces.`
            : line.matched === 1
              ? 'One matching trace.'
              : `${whole(line.matched)} matching traces.`}{' '}
          {whole(kept)} of {whole(seen)} spans are retained: the latest, slow and failed ones.
        </p>
        <TraceTable traces={line.traces} />
      </>
    )
  if (seen === 0)
    return (
      <Empty
        title="No requests yet"
        why="Send a request to a server on this host, for example with curl: it appears here two seconds later. If it stays missing, check the reason by port, process or service:"
        command="svc explain PORT"
      />
    )
  return (
    <Empty
      title="No matching traces"
      why={`${whole(kept)} of ${whole(seen)} spans are retained: the latest, slow and failed ones. Ordinary spans are removed first.${chosen ? ' The heatmap counts each request; a trace lasts as long as all of its requests together, so it may be higher up.' : ''}`}
    >
      <button
        type="button"
        onClick={() =>
          setParameters(
            { service: '', q: '', errors: '', from: '', to: '', min_ms: '', max_ms: '' },
            { replace: false },
          )
        }
      >
        Show all traces
      </button>
    </Empty>
  )
}
