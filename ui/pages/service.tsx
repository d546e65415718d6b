// The requests, errors and dependencies of one service.

import type { ServiceLine } from '../../src/view/api/ui/documents.ts'
import { apiUrl } from '../lib/api.ts'
import { duration, short, whole } from '../lib/format.ts'
import { useLive } from '../lib/live.ts'
import { hrefOf, parameter } from '../lib/route.ts'
import { quoted } from '../lib/shell.ts'
import { Chart } from '../parts/chart.tsx'
import { Services } from '../parts/services.tsx'
import { Head, ServiceLink } from '../parts/small.tsx'
import { Empty, Reading } from '../parts/state.tsx'
import { Table } from '../parts/table.tsx'

export default function ServicePage() {
  const name = parameter('name')
  const reading = useLive<ServiceLine>(name === '' ? undefined : apiUrl('service', { name }))
  return (
    <>
      <Head title={name === '' ? 'Service' : name} subtitle="Requests, errors and dependencies">
        <nav aria-label={`More about ${name}`} class="row">
          <a href={hrefOf('traces', { service: name })}>Traces</a>
          <a href={hrefOf('logs', { service: name })}>Logs</a>
          <a href={hrefOf('profiles', { service: name })}>Profiles</a>
          <a href={hrefOf('map', { focus: name })}>Map</a>
        </nav>
      </Head>
      {name === '' ? (
        <Empty title="No service selected" why="Select one on the overview or the map." />
      ) : (
        <Reading of={reading} what={name}>
          {() => <Body name={name} line={reading.value!} />}
        </Reading>
      )}
    </>
  )
}

function Body({ name, line }: { readonly name: string; readonly line: ServiceLine }) {
  if (!line.found)
    return (
      <Empty
        title={`No data for ${name}`}
        why={
          line.no_data_reason ||
          'No requests in this window, or the service is not observed. Check the reason:'
        }
        command={line.no_data_reason === '' ? `svc explain ${quoted(name)}` : 'svc doctor traces'}
      />
    )
  const { from_ms, step_ms, requests_per_s, errors_per_s, p95_ms, routes, callers, callees, resource } = line
  const times = requests_per_s.map((_, i) => (from_ms + i * step_ms) / 1000)
  const sync = { times, sync: 'service' }
  return (
    <>
      <section class="card" aria-label="Last minute">
        <Services rows={[line.service]} />
      </section>
      <div class="grid">
        <Chart
          {...sync}
          title="Requests"
          unit="1/s"
          series={[{ label: 'requests', values: requests_per_s }]}
        />
        <Chart
          {...sync}
          title="Errors"
          unit="1/s"
          series={[{ label: 'errors', values: errors_per_s, colour: 'var(--bad)' }]}
        />
        <Chart {...sync} title="Duration" unit="ms" series={[{ label: 'p95', values: p95_ms }]} />
      </div>
      <section class="card stack" aria-label="Operations">
        <h2>Operations</h2>
        <Table
          caption="Operations, from the spans in this window"
          rows={routes}
          rowKey={route => route.name}
          columns={[
            {
              name: 'Operation',
              value: route => route.name,
              cell: route => <a href={hrefOf('traces', { service: name, q: route.name })}>{route.name}</a>,
            },
            { name: 'Spans', number: true, value: ({ spans }) => spans, cell: ({ spans }) => whole(spans) },
            {
              name: 'Errors',
              number: true,
              value: ({ errors }) => errors,
              cell: ({ errors }) => (errors > 0 ? <b class="bad-text">✕ {whole(errors)}</b> : '0'),
            },
            {
              name: 'Slowest',
              number: true,
              value: ({ slowest_ms }) => slowest_ms,
              cell: ({ slowest_ms, trace_id }) =>
                trace_id === '' ? (
                  duration(slowest_ms)
                ) : (
                  <a href={hrefOf('traces', { trace: trace_id })}>{duration(slowest_ms)}</a>
                ),
            },
          ]}
          empty={<p class="note">No spans in this window.</p>}
        />
      </section>
      <div class="grid">
        <Others title="Callers" rows={callers} />
        <Others title="Dependencies" rows={callees} />
        <section class="card stack" aria-label="Resource">
          <h2>Resource</h2>
          {Object.keys(resource).length === 0 ? <p class="note">No attributes.</p> : null}
          <dl class="facts">
            {Object.entries(resource).map(([key, value]) => [
              <dt key={key}>{key}</dt>,
              <dd key={`${key} is`}>{Array.isArray(value) ? value.join(', ') : String(value)}</dd>,
            ])}
          </dl>
        </section>
      </div>
    </>
  )
}

function Others({ title, rows }: { readonly title: string; readonly rows: ServiceLine['callers'] }) {
  return (
    <section class="card stack" aria-label={title}>
      <h2>{title}</h2>
      <Table
        caption={title}
        rows={rows}
        rowKey={({ name }) => name}
        columns={[
          { name: 'Name', value: ({ name }) => name, cell: ({ name }) => <ServiceLink name={name} /> },
          {
            name: 'Calls/s',
            number: true,
            value: ({ requests_per_s }) => requests_per_s,
            cell: ({ requests_per_s }) => short(requests_per_s),
          },
        ]}
        empty={<p class="note">None in this window.</p>}
      />
    </section>
  )
}
