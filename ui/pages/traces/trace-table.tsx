import type { TracesLine } from '../../../src/view/api/ui/documents.ts'
import { nameColour } from '../../lib/colour.ts'
import { duration, exactTime, whole } from '../../lib/format.ts'
import { hrefOf } from '../../lib/route.ts'
import { Pill, ServiceLink } from '../../parts/small.tsx'
import { type Column, Table } from '../../parts/table.tsx'

type Trace = TracesLine['traces'][number]

const whyKept: Readonly<Record<Trace['retained'], string>> = {
  recent: 'recent',
  error: 'failed',
  slow: 'slow',
  example: 'example',
}

/** Traces, each with a bar for its duration. */
export function TraceTable({ traces }: { readonly traces: readonly Trace[] }) {
  const longest = traces.reduce((most, { duration_ms }) => Math.max(most, duration_ms), 0)
  const columns: readonly Column<Trace>[] = [
    { name: 'Start', cell: ({ start_ms }) => <span class="mono">{exactTime(start_ms)}</span> },
    {
      name: 'Trace',
      cell: ({ trace_id, name }) => (
        <a class="trace-name" href={hrefOf('traces', { trace: trace_id })}>
          <bdi>{name === '' ? '(no name)' : name}</bdi>
        </a>
      ),
    },
    { name: 'Service', cell: trace => <Services trace={trace} /> },
    {
      name: 'Duration',
      cell: ({ duration_ms, service }) => (
        <span class="duration">
          <span
            class="duration-bar"
            style={{
              width: `${longest > 0 ? (duration_ms / longest) * 100 : 0}%`,
              background: nameColour(service),
            }}
          />
          <span class="duration-text">{duration(duration_ms)}</span>
        </span>
      ),
    },
    { name: 'Spans', number: true, cell: ({ spans }) => whole(spans) },
    {
      name: 'Failed',
      cell: ({ errors }) => (errors > 0 ? <Pill level="bad" text={`${whole(errors)} failed`} /> : ''),
    },
    { name: 'Retained because', cell: ({ retained: kept }) => <span class="soft">{whyKept[kept]}</span> },
  ]
  return (
    <Table caption="Traces" columns={columns} rows={traces} rowKey={({ trace_id }) => trace_id} most={500} />
  )
}

function Services({ trace: { service, services } }: { readonly trace: Trace }) {
  const others = services.filter(each => each !== service)
  return (
    <span class="trace-services">
      <ServiceLink name={service} />{' '}
      {others.length > 0 ? (
        <span class="soft" title={others.join(', ')}>
          +{others.length}
          <span class="unseen">: {others.join(', ')}</span>
        </span>
      ) : null}
    </span>
  )
}
