import './metrics.css'
import { useSignal } from '@preact/signals'
import { Fragment } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'
import type { MetricsDocument } from '../../src/view/api/ui/documents.ts'
import { apiUrl } from '../lib/api.ts'
import { time, whole } from '../lib/format.ts'
import { paused, useDocument } from '../lib/live.ts'
import { hrefOf, parameter, setParameters } from '../lib/route.ts'
import { Drawer } from '../parts/drawer.tsx'
import { Field, Head } from '../parts/small.tsx'
import { Empty, Reading } from '../parts/state.tsx'
import { type Family, FamilyFilter, type Fit, firstOf, type Section } from './metrics/families.ts'
import { Metric, valueText } from './metrics/metric.tsx'

const againMs = 10_000
/** Maximum number of rows; there may be thousands. */
const mostRows = 300

export default function MetricsPage() {
  const reading = useDocument<MetricsDocument>(apiUrl('metrics'), useAgain())
  const name = parameter('name')
  const chosen = reading.value?.sections.find(({ families }) => families.some(each => each.name === name))
  return (
    <>
      <Head title="Metrics" subtitle="Metrics of this host and the agent">
        <Field label="Filter">
          <input
            type="search"
            value={parameter('q')}
            onInput={event => setParameters({ q: event.currentTarget.value })}
          />
        </Field>
      </Head>
      <Reading of={reading} what="metrics">
        {() => <Metrics document={reading.value!} />}
      </Reading>
      {name === '' ? null : (
        <Drawer
          key={name}
          title={name}
          onClose={() => setParameters({ name: '', split: '', only: '' }, { replace: false })}
        >
          <Metric name={name} section={chosen} />
        </Drawer>
      )}
    </>
  )
}

/** Changes every few seconds while the page is visible, to trigger an update. */
function useAgain(): number {
  const again = useSignal(0)
  useEffect(() => {
    const timer = setInterval(() => {
      if (!paused.peek() && !document.hidden) again.value++
    }, againMs)
    return () => clearInterval(timer)
  }, [])
  return again.value
}

function Metrics({ document }: { readonly document: MetricsDocument }) {
  const { sections, no_data_reason: off, at_ms } = document
  const q = parameter('q')
  const section = parameter('section')
  const filter = useMemo(() => new FamilyFilter(sections), [sections])
  const matches = useMemo(() => filter.find(q), [filter, q])
  const all = count(matches)
  const wanted = section === '' ? matches : matches.filter(fit => fit.section.name === section)
  const found = count(wanted)
  const shown = firstOf(wanted, mostRows).filter(({ families }) => families.length > 0)
  const silent = wanted.map(fit => fit.section).filter(({ families }) => families.length === 0)
  const isFiltered = q.trim() !== ''
  return (
    <>
      {off === '' || sections.length === 0 ? null : (
        <p class="notice" role="status">
          {off}
        </p>
      )}
      <div class="metrics">
        <Sections matches={matches} all={all} chosen={section} />
        <div class="stack">
          <h2 class="unseen">Results</h2>
          <p class="soft" role="status">
            {whole(found)} metrics{isFiltered ? ` match “${q.trim()}”` : ''}, read at {time(at_ms)}.
          </p>
          {shown.map(fit => (
            <Families key={fit.section.name} fit={fit} />
          ))}
          {found > mostRows ? (
            <p class="note">
              {whole(found - mostRows)} more not shown: enter a filter, or select a collector.
            </p>
          ) : null}
          {silent.length > 0 && !isFiltered ? <Silent sections={silent} isOpen={section !== ''} /> : null}
          {found === 0 && isFiltered ? (
            <div class="card">
              <Empty
                title="No matching metrics"
                why="The filter searches names, OpenTelemetry names, help texts, types, units and collectors; all words must match."
              >
                <button type="button" onClick={() => setParameters({ q: '', section: '' })}>
                  Show all metrics
                </button>
              </Empty>
            </div>
          ) : null}
          {found === 0 && !isFiltered && silent.length === 0 ? (
            <div class="card">
              <Empty
                title="No metrics"
                why={
                  off ||
                  'No collector returned data. To see which are enabled, and why one returns nothing, run:'
                }
                command="svc doctor"
              />
            </div>
          ) : null}
        </div>
      </div>
    </>
  )
}

function count(matches: readonly Fit[]): number {
  return matches.reduce((sum, { families }) => sum + families.length, 0)
}

/** Menu of collectors: a list, or a field in a narrow window. */
function Sections({
  matches,
  all,
  chosen,
}: {
  readonly matches: readonly Fit[]
  readonly all: number
  readonly chosen: string
}) {
  const isSilent = ({ section }: Fit) => section.families.length === 0
  const entries = [
    { name: '', title: 'All', count: all, fault: '' },
    // Collectors without data come last.
    ...[...matches.filter(fit => !isSilent(fit)), ...matches.filter(isSilent)].map(
      ({ section, families }) => ({
        name: section.name,
        title: section.name,
        count: families.length,
        fault: families.length > 0 ? section.fault : '',
      }),
    ),
  ]
  return (
    <>
      <nav class="sections card" aria-label="Collectors">
        <ul>
          {entries.map(({ name, title, count: fitting, fault }) => (
            <li key={name}>
              <a
                href={hrefTo({ section: name, name: '' })}
                {...(name === chosen && { 'aria-current': 'true' })}
              >
                <span>
                  {title}
                  {fault === '' ? null : <span class="warn-text"> !</span>}
                </span>
                <span class="soft">{fitting}</span>
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="section-choice">
        <Field label="Collector">
          <select
            value={chosen}
            onChange={event => setParameters({ section: event.currentTarget.value }, { replace: false })}
          >
            {entries.map(({ name, title, count: fitting }) => (
              <option key={name} value={name}>
                {`${title} (${fitting})`}
              </option>
            ))}
          </select>
        </Field>
      </div>
    </>
  )
}

/** This view with other parameters. */
function hrefTo(changes: Readonly<Record<string, string>>): string {
  const kept = Object.fromEntries(['q', 'section'].map(name => [name, parameter(name)]))
  return hrefOf('metrics', { ...kept, ...changes })
}

function Families({ fit: { section, families } }: { readonly fit: Fit }) {
  return (
    <section class="card stack" aria-label={`Metrics of ${section.name}`}>
      <h2 class="row">
        {section.name} <span class="soft mono">{section.source}</span>
      </h2>
      {section.fault === '' ? null : <p class="notice">{section.fault}</p>}
      <ul class="families">
        {families.map(family => (
          <FamilyRow key={family.name} family={family} />
        ))}
      </ul>
    </section>
  )
}

/** Why some collectors have no data. */
function Silent({ sections, isOpen }: { readonly sections: readonly Section[]; readonly isOpen: boolean }) {
  return (
    <details class="card" open={isOpen}>
      <summary>Collectors without data: {sections.length}</summary>
      <dl class="facts">
        {sections.map(({ name, fault }) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{fault || 'no metrics at the moment'}</dd>
          </Fragment>
        ))}
      </dl>
    </details>
  )
}

function FamilyRow({ family }: { readonly family: Family }) {
  const { name, otel_name, help, type, unit, series, value } = family
  return (
    <li>
      <div>
        <a class="mono" href={hrefTo({ name })}>
          {name}
        </a>
        {otel_name === '' ? null : <div class="mono soft">{otel_name}</div>}
      </div>
      <div>{help}</div>
      <div class="soft">
        {type}
        {unit === '' ? '' : `, ${unit}`}
      </div>
      <div class="number">
        {value === null ? (
          <span class="soft">{series === 0 ? 'no series' : `${series} series`}</span>
        ) : (
          valueText(value, family)
        )}
      </div>
    </li>
  )
}
