// All details of one span, and links to related data.

import { duration, exactTime } from '../../lib/format.ts'
import { hrefOf } from '../../lib/route.ts'
import { Copy } from '../../parts/copy.tsx'
import { Pill, ServiceLink } from '../../parts/small.tsx'
import { type Drawn, oddityText } from './drawn.ts'
import { selfMs } from './waterfall.ts'

/** Logs are shown from this long before to this long after the span. */
const aroundMs = 1000

export function SpanDetails({
  drawn: { trace, tree, critical },
  at,
  onChoose,
}: {
  readonly drawn: Drawn
  readonly at: number
  readonly onChoose: (span: number) => void
}) {
  const span = tree.spans[at]!
  const parent = tree.parent[at]!
  const beganMs = trace.start_ms + span.start_ms
  const odd = oddityText(tree, at)
  const interval = {
    from: Math.floor(beganMs - aroundMs),
    to: Math.ceil(beganMs + span.duration_ms + aroundMs),
  }
  return (
    <section class="card stack span-details" aria-label="Selected span">
      <h2>
        <bdi>{span.name}</bdi>
      </h2>
      <p class="row">
        <ServiceLink name={span.service} />
        <span class="soft">{span.kind}</span>
        {span.error ? <Pill level="bad" text="failed" /> : null}
        {odd !== '' ? <Pill level="note" text={odd} /> : null}
      </p>
      {span.status_message !== '' ? <p class="bad-text">{span.status_message}</p> : null}
      <dl class="facts">
        <dt>Duration</dt>
        <dd>
          {duration(span.duration_ms)}
          {tree.children[at]!.length > 0 ? `, self time ${duration(selfMs(tree, at))}` : ''}
        </dd>
        <dt>Critical path</dt>
        <dd>{critical.has(at) ? duration(critical.get(at)) : 'not on the critical path'}</dd>
        <dt>Start</dt>
        <dd>
          {exactTime(beganMs)}, {duration(span.start_ms)} into the trace
        </dd>
        {parent >= 0 ? (
          <>
            <dt>Parent</dt>
            <dd>
              <button type="button" class="quiet parent" onClick={() => onChoose(parent)}>
                <bdi>{tree.spans[parent]!.name}</bdi>
              </button>
              {span.estimated_parent ? ' (estimated from process activity, not read from a header)' : ''}
            </dd>
          </>
        ) : null}
        {span.pid > 0 ? (
          <>
            <dt>Process</dt>
            <dd>{span.pid}</dd>
          </>
        ) : null}
        <dt>Span</dt>
        <dd>
          <code>{span.span_id}</code> <Copy text={span.span_id} what="the span ID" />
        </dd>
      </dl>
      <ul class="row">
        {span.pid > 0 ? (
          <li>
            <a href={hrefOf('logs', { pid: span.pid, ...interval })}>Process logs around this time</a>
          </li>
        ) : null}
        <li>
          <a
            href={hrefOf('profiles', {
              service: span.service,
              from: Math.floor(trace.start_ms),
              to: Math.ceil(trace.start_ms + trace.duration_ms),
            })}
          >
            Profile of the service
          </a>
        </li>
        <li>
          <a href={hrefOf('map', { focus: span.service })}>Service on the map</a>
        </li>
      </ul>
      <Attributes title="Attributes" of={span.attributes} />
      <details>
        <summary>Resource</summary>
        <Attributes title="" of={trace.resources[span.resource] ?? {}} />
      </details>
    </section>
  )
}

function Attributes({
  title,
  of,
}: {
  readonly title: string
  readonly of: Readonly<Record<string, unknown>>
}) {
  const entries = Object.entries(of)
  return (
    <>
      {title !== '' ? <h3>{title}</h3> : null}
      {entries.length === 0 ? <p class="note">None.</p> : null}
      <dl class="attributes">
        {entries.map(([key, value]) => {
          const text = typeof value === 'string' ? value : JSON.stringify(value)
          return (
            <div key={key}>
              <dt>{key}</dt>
              <dd>
                <bdi class="mono">{text}</bdi> <Copy text={text} what={key} />
              </dd>
            </div>
          )
        })}
      </dl>
    </>
  )
}
