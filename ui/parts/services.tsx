import type { OverviewLine } from '../../src/view/api/ui/documents.ts'
import { duration, percent, short } from '../lib/format.ts'
import { unobserving } from '../lib/host.ts'
import { ServiceLink, Spark } from './small.tsx'
import { Empty } from './state.tsx'
import { Table } from './table.tsx'

type Row = Extract<OverviewLine, { kind: 'tick' }>['services'][number]

/** Error rate from which it is marked. */
const badPercent = 5

/** Services with their activity in the last minute, in the given order. */
export function Services({ rows }: { readonly rows: readonly Row[] }) {
  return (
    <Table
      caption="Services in the last minute, worst first"
      rows={rows}
      rowKey={({ namespace, name }) => `${namespace}/${name}`}
      mark={({ errors_percent }) => (errors_percent >= badPercent ? 'bad' : '')}
      columns={[
        { name: 'Service', value: ({ name }) => name, cell: ({ name }) => <ServiceLink name={name} /> },
        { name: 'Protocols', cell: ({ protocols }) => protocols.join(', ') },
        {
          name: 'Requests/s',
          number: true,
          value: ({ requests_per_s }) => requests_per_s,
          cell: ({ requests_per_s, serves }) => (
            <>
              {short(requests_per_s)}
              {serves ? '' : ' (out)'}
            </>
          ),
        },
        {
          name: 'Errors',
          number: true,
          value: ({ errors_percent }) => errors_percent,
          cell: ({ errors_percent }) =>
            errors_percent > 0 ? <b class="bad-text">✕ {percent(errors_percent)}</b> : '0',
        },
        { name: 'p50', number: true, value: ({ p50_ms }) => p50_ms, cell: ({ p50_ms }) => duration(p50_ms) },
        { name: 'p95', number: true, value: ({ p95_ms }) => p95_ms, cell: ({ p95_ms }) => duration(p95_ms) },
        { name: 'p99', number: true, value: ({ p99_ms }) => p99_ms, cell: ({ p99_ms }) => duration(p99_ms) },
        {
          name: 'Trend',
          cell: ({ name, trend }) => (
            <Spark
              values={trend}
              label={`Requests of ${name} over the window, ${short(trend.at(-1))}/s now`}
            />
          ),
        },
        { name: 'Dependencies', cell: ({ dependencies: calls }) => calls.join(', ') },
      ]}
      empty={
        <Empty
          title={unobserving.value === '' ? 'No services yet' : 'No services'}
          why={
            unobserving.value ||
            'A service appears with its first request: send one to a server on this host. If it stays missing, check the reason by its port:'
          }
          command={unobserving.value === '' ? 'svc explain 8080' : undefined}
        />
      }
    />
  )
}
