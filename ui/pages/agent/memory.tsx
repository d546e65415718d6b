import type { AgentDocument } from '../../../src/view/api/ui/documents.ts'
import { bytes, percent } from '../../lib/format.ts'
import { Table } from '../../parts/table.tsx'

type MemoryTable = AgentDocument['memory']['tables']['largest'][number]

/** Effects of each pressure level, as for `limits.memory`. */
const pressures = [
  'Enough memory.',
  'Memory is getting short: caches shrink.',
  'Memory is getting short: caches shrink, and detail is left out.',
  'Memory is short: detail is left out, and new spans are only counted.',
]

const kinds: Readonly<Record<MemoryTable['kind'], string>> = {
  cache: 'first: can be rebuilt',
  detail: 'second: enriches data',
  intake: 'last: needed to create data',
}

/** Fill level in percent; null if a key of its own limits the table. */
const fullOf = ({ bytes, limit }: MemoryTable) =>
  limit === 0 ? null : Math.round((1000 * bytes) / limit) / 10

/** Memory of the agent by table. */
export function Memory({ memory }: { readonly memory: AgentDocument['memory'] }) {
  const { limit, resident, anonymous, heap, pressure, shortages, tables } = memory
  const facts: readonly (readonly [string, string])[] = [
    ['Resident', `${bytes(resident)}, including program files`],
    ['Anonymous', `${bytes(anonymous)} of ${bytes(limit)} (limits.memory)`],
    ['Live heap', `${bytes(heap.live)} of ${bytes(heap.limit)}`],
    ['Tables', `${bytes(tables.used)} of ${bytes(tables.limit)}`],
    ['State', pressures[pressure] ?? String(pressure)],
    ['Shortages', shortages === 0 ? 'None since start' : `${shortages} since start`],
  ]
  const rows = tables.largest.filter(({ bytes, released: shed }) => bytes > 0 || shed > 0)
  const idle = tables.largest.length - rows.length
  return (
    <section class="card stack" aria-label="Memory">
      <h2>Memory</h2>
      <dl class="facts">
        {facts.map(([name, value]) => [<dt key={name}>{name}</dt>, <dd key={`${name} is`}>{value}</dd>])}
      </dl>
      <Table
        caption="Memory by table"
        rows={rows}
        rowKey={({ name }) => name}
        mark={table => ((fullOf(table) ?? 0) > 90 ? 'warn' : '')}
        columns={[
          { name: 'Table', value: ({ name }) => name, cell: ({ name }) => name },
          { name: 'Size', number: true, value: row => row.bytes, cell: row => bytes(row.bytes) },
          {
            name: 'Limit',
            number: true,
            value: row => row.limit || null,
            cell: row => (row.limit === 0 ? 'own limit' : bytes(row.limit)),
          },
          { name: 'Full', number: true, value: fullOf, cell: row => percent(fullOf(row)) },
          {
            name: 'Released',
            number: true,
            value: ({ released: shed }) => shed,
            cell: ({ released: shed }) => (shed === 0 ? '–' : bytes(shed)),
          },
          { name: 'Release order', value: ({ kind }) => kind, cell: ({ kind }) => kinds[kind] },
        ]}
        empty={<p class="note">No table has data yet.</p>}
      />
      {idle > 0 && rows.length > 0 ? (
        <p class="note">{idle === 1 ? 'One more table is' : `${idle} more tables are`} empty.</p>
      ) : null}
    </section>
  )
}
