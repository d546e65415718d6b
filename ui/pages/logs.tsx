// Logs: recent records, and new ones as they arrive.

import './logs.css'
import type { LogsLine } from '../../src/view/api/ui/documents.ts'
import { apiUrl } from '../lib/api.ts'
import { time } from '../lib/format.ts'
import { windowSeconds } from '../lib/host.ts'
import { useLastValue } from '../lib/last-value.ts'
import { useLive } from '../lib/live.ts'
import { agentNow } from '../lib/now.ts'
import { hrefOf, parameter, setParameters } from '../lib/route.ts'
import { ServiceChoice } from '../parts/service-choice.tsx'
import { Field, Head } from '../parts/small.tsx'
import { Empty, Reading } from '../parts/state.tsx'
import { TypedField } from '../parts/typed-field.tsx'
import { HistogramFigure } from './logs/histogram-figure.tsx'
import { Records } from './logs/records.tsx'
import { extended, newest, type Tail } from './logs/tail.ts'

/** By lowest SeverityNumber. */
const levels = [
  ['', 'All'],
  ['5', 'Debug and above'],
  ['9', 'Info and above'],
  ['13', 'Warn and above'],
  ['17', 'Error and above'],
  ['21', 'Fatal'],
] as const

/** Records of the first load; the limit of the API. */
const firstRecords = 1000

export default function LogsPage() {
  const traceId = parameter('trace_id')
  const pid = /^\d{1,7}$/.test(parameter('pid')) ? parameter('pid') : ''
  const [from, to] = [Number(parameter('from', '0')), Number(parameter('to', '0'))]
  const question = {
    service: parameter('service'),
    min_severity: levels.some(([value]) => value === parameter('min_severity'))
      ? parameter('min_severity')
      : '',
    q: parameter('q'),
    trace_id: traceId,
    pid,
  }
  const reading = useLastValue(
    useLive<LogsLine, Tail | undefined>(
      apiUrl('logs', { ...question, limit: firstRecords }),
      (before, line) => extended(before, line, agentNow()),
    ),
  )
  const asked = Object.values(question).some(value => value !== '') || to > from
  return (
    <>
      <Head title="Logs" subtitle={to > from ? 'Logs around this time' : 'Recent and new log records'} />
      <Filters services={reading.value?.services ?? []} minSeverity={question.min_severity}>
        {traceId !== '' ? <Without names={['trace_id']} text={`trace ${traceId.slice(0, 8)}…`} /> : null}
        {pid !== '' ? <Without names={['pid']} text={`process ${pid}`} /> : null}
        {to > from ? <Without names={['from', 'to']} text={`${time(from)}–${time(to)}`} /> : null}
      </Filters>
      <Reading of={reading} what="logs">
        {() => (
          <Told
            key={JSON.stringify([question, from, to])}
            tail={reading.value!}
            from={from}
            to={to}
            asked={asked}
          />
        )}
      </Reading>
    </>
  )
}

function Told({
  tail,
  from,
  to,
  asked,
}: {
  readonly tail: Tail
  readonly from: number
  readonly to: number
  readonly asked: boolean
}) {
  const records =
    to > from ? tail.records.filter(({ time_ms }) => time_ms >= from && time_ms <= to) : tail.records
  const histogram = newest(tail.histogram, windowSeconds.value)
  if (records.length > 0)
    return (
      <>
        {tail.off === '' ? null : <p class="notice">{tail.off}</p>}
        <h2 class="unseen">Log volume</h2>
        <HistogramFigure histogram={histogram} />
        <Records records={records} skipped={tail.skipped} />
      </>
    )
  return (
    <div class="card">
      {asked ? (
        <Empty
          title="No matching logs"
          why={tail.off || 'Nothing in the window matches; new logs appear automatically.'}
        >
          <a href={hrefOf('logs')}>Show all logs</a>
        </Empty>
      ) : (
        <Empty
          title="No logs"
          why={
            tail.off ||
            'Nothing was written to the followed logs since svc started; new logs appear automatically.'
          }
          command="svc doctor logs"
        />
      )}
    </div>
  )
}

function Filters({
  services,
  minSeverity,
  children,
}: {
  readonly services: readonly string[]
  readonly minSeverity: string
  readonly children: preact.ComponentChildren
}) {
  const turned = (name: string) => parameter(name) === '1'
  const turn = (name: string, text: string) => (
    <button
      type="button"
      aria-pressed={turned(name)}
      onClick={() => setParameters({ [name]: turned(name) ? '' : 1 })}
    >
      {text}
    </button>
  )
  return (
    <search class="row filters">
      <Field label="Level">
        <select
          value={minSeverity}
          onChange={event => setParameters({ min_severity: event.currentTarget.value })}
        >
          {levels.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      </Field>
      <ServiceChoice services={services} />
      <TypedField label="Text" name="q" />
      {turn('fold', 'Group duplicates')}
      {turn('wrap', 'Wrap lines')}
      {children}
    </search>
  )
}

/** A filter from a link, with a button to remove it. */
function Without({ names, text }: { readonly names: readonly string[]; readonly text: string }) {
  return (
    <button
      type="button"
      onClick={() => setParameters(Object.fromEntries(names.map(name => [name, ''])), { replace: false })}
    >
      {text} <span aria-hidden="true">✕</span>
      <span class="unseen">: remove this filter</span>
    </button>
  )
}
