import './profiles.css'
import { effect, useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { ProfilesLine } from '../../src/view/api/ui/documents.ts'
import { apiUrl } from '../lib/api.ts'
import { time, withUnit } from '../lib/format.ts'
import { overview, windowSeconds } from '../lib/host.ts'
import { useLive } from '../lib/live.ts'
import { parameter, setParameters } from '../lib/route.ts'
import { Choice, Field, Head } from '../parts/small.tsx'
import { Empty, Reading } from '../parts/state.tsx'
import { allNodes, Flame } from './profiles/flame.tsx'
import { type Chosen, chosenIntervals, intervalsBefore, type Range, rangeOf } from './profiles/intervals.ts'
import { Timeline } from './profiles/timeline.tsx'

const kinds = [
  ['cpu', 'On-CPU'],
  ['off_cpu', 'Off-CPU'],
  ['memory', 'Memory'],
] as const
type Kind = (typeof kinds)[number][0]

const titles: Readonly<Record<Kind, string>> = {
  cpu: 'CPU time',
  off_cpu: 'Off-CPU time (waiting)',
  memory: 'Memory, by place of first use',
}

/** Offset of the agent's clock from the browser's. */
let clockMs = 0
effect(() => {
  const at = overview.value?.tick?.at_ms
  if (at !== undefined) clockMs = at - Date.now()
})

export default function ProfilesPage() {
  const kind = kinds.find(([id]) => id === parameter('kind'))?.[0] ?? 'cpu'
  const service = parameter('service')
  const reading = useLive<ProfilesLine>(apiUrl('profiles', { kind, service }))
  return (
    <>
      <Head title="Profiles" subtitle="CPU time, waiting and memory by function">
        <Choice
          label="Kind of profile"
          values={kinds}
          value={kind}
          onChoose={next => setParameters({ kind: next === 'cpu' ? '' : next, at: '', focus: '' })}
        />
        <Services service={service} line={reading.value} />
      </Head>
      <Reading of={reading} what="profiles">
        {() => <Profiles key={`${kind} ${service}`} kind={kind} service={service} line={reading.value!} />}
      </Reading>
    </>
  )
}

function Services({ service, line }: { readonly service: string; readonly line: ProfilesLine | undefined }) {
  const services = line?.services ?? []
  const isThere = service === '' || services.some(({ name }) => name === service)
  return (
    <Field label="Service">
      <select
        value={service}
        onChange={event => setParameters({ service: event.currentTarget.value, at: '' }, { replace: false })}
      >
        <option value="">All</option>
        {isThere ? null : <option value={service}>{service}</option>}
        {services.map(({ name, value }) => (
          <option key={name} value={name}>
            {`${name} (${withUnit(value, line!.unit)})`}
          </option>
        ))}
      </select>
    </Field>
  )
}

function Profiles({
  kind,
  service,
  line,
}: {
  readonly kind: Kind
  readonly service: string
  readonly line: ProfilesLine
}) {
  const { intervals } = line
  const chosen = chosenIntervals(
    intervals,
    Number(parameter('from')),
    Number(parameter('to')),
    windowSeconds.value * 1000,
  )
  if (chosen === undefined) return <None kind={kind} service={service} line={line} />
  const isPinned = parameter('to') !== ''
  const compares = parameter('diff') === '1'
  const before = compares ? intervalsBefore(chosen) : undefined
  const choose = (next: Chosen | undefined, done: boolean) => {
    const range = next === undefined ? undefined : rangeOf(intervals, next)
    setParameters({ from: range?.fromMs ?? '', to: range?.toMs ?? '' }, { replace: !done })
  }
  return (
    <>
      {line.no_data_reason === '' ? null : (
        <p class="notice" role="status">
          {line.no_data_reason}
        </p>
      )}
      <h2 class="unseen">Time range</h2>
      <Timeline title={titles[kind]} line={line} chosen={chosen} before={before} onChoose={choose} />
      <div class="row">
        <Choice
          label="Intervals"
          values={[
            ['newest', 'Newest'],
            ['all', 'All'],
          ]}
          value={
            isPinned ? (chosen.first === 0 && chosen.last === intervals.length - 1 ? 'all' : '') : 'newest'
          }
          onChoose={value =>
            choose(value === 'all' ? { first: 0, last: intervals.length - 1 } : undefined, true)
          }
        />
        <button
          type="button"
          aria-pressed={compares}
          onClick={() => setParameters({ diff: compares ? '' : 1 }, { replace: false })}
        >
          Compare with previous period
        </button>
        {compares && before === undefined ? (
          <span class="note">No earlier profile to compare with; select later intervals.</span>
        ) : null}
      </div>
      <Between
        kind={kind}
        service={service}
        range={rangeOf(intervals, chosen)}
        before={before === undefined ? undefined : rangeOf(intervals, before)}
      />
    </>
  )
}

/** The flame graph of a time range, once the selection has settled. */
function Between({
  kind,
  service,
  range,
  before,
}: {
  readonly kind: Kind
  readonly service: string
  readonly range: Range
  readonly before: Range | undefined
}) {
  const limit = parameter('all') === '1' ? { limit: allNodes } : {}
  const key = JSON.stringify([range, before, limit])
  const asked = useMemo(() => {
    // Times of the API are relative to now.
    const now = Date.now() + clockMs
    const back = (ms: number) => Math.max(1, Math.round(now - ms))
    const url = apiUrl('flame', {
      kind,
      service,
      since_ms: back(range.fromMs),
      until_ms: back(range.toMs),
      ...(before && { base_since_ms: back(before.fromMs), base_until_ms: back(before.toMs) }),
      ...limit,
    })
    const span = before === undefined ? 0 : before.toMs - before.fromMs
    const words = `${time(range.fromMs)} to ${time(range.toMs)}`
    return {
      url,
      baseFactor: span > 0 ? (range.toMs - range.fromMs) / span : 1,
      title:
        before === undefined
          ? words
          : `${words}, compared with ${time(before.fromMs)} to ${time(before.toMs)}`,
      fileName: `svc-${kind}${service === '' ? '' : `-${service.replace(/[^\w.-]+/g, '_')}`}-${Math.round(range.toMs / 1000)}`,
    }
  }, [key])
  const settled = useSignal(asked)
  useEffect(() => {
    const timer = setTimeout(() => {
      settled.value = asked
    }, restMs)
    return () => clearTimeout(timer)
  }, [asked])
  const query = new URLSearchParams({ kind, seconds: '10', ...(service !== '' && { service }) })
  return <Flame {...settled.value} recording={`/profiles?${query}`} />
}

const restMs = 150

function kindTitle(kind: Kind): string {
  return kinds.find(([id]) => id === kind)![1]
}

/** Lower case, for use within a sentence. */
function lowered(title: string): string {
  return title.charAt(0).toLowerCase() + title.slice(1)
}

function None({
  kind,
  service,
  line,
}: {
  readonly kind: Kind
  readonly service: string
  readonly line: ProfilesLine
}) {
  const others = kinds.filter(([id]) => id !== kind && line.kinds.includes(id)).map(([, title]) => title)
  const why =
    line.no_data_reason !== ''
      ? line.no_data_reason
      : service !== ''
        ? `${service} has no samples on this host in this window. Select another service, or all.`
        : 'The first profile appears at the end of its first interval, a few seconds after the start.'
  return (
    <div class="card">
      <h2 class="unseen">Profiles</h2>
      <Empty
        title={`No ${lowered(kindTitle(kind))} profiles${line.no_data_reason === '' ? ' yet' : ''}`}
        why={why}
        {...(line.no_data_reason !== '' && { command: 'svc doctor profiles' })}
      >
        {others.length > 0 ? <p class="note">Other profiles: {others.join(', ')}.</p> : null}
      </Empty>
    </div>
  )
}
