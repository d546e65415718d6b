import type { PipelineLine } from '../../../src/view/api/ui/documents.ts'
import { bytes, duration, percent, short, whole } from '../../lib/format.ts'
import { Table } from '../../parts/table.tsx'

type Signal = PipelineLine['signals'][number]

/** The item balance of each signal: received, exported, rejected, dropped and queued. */
export function Ledger({ signals }: { readonly signals: readonly Signal[] }) {
  return (
    <section class="card stack" aria-label="Totals">
      <h2>Totals since start</h2>
      <Table
        caption="Items by signal"
        rows={signals}
        rowKey={({ signal }) => signal}
        mark={({ dropped_per_s }) => (dropped_per_s > 0 ? 'warn' : '')}
        columns={[
          { name: 'Signal', cell: ({ signal }) => signal },
          {
            name: 'Received',
            number: true,
            cell: ({ collected, recovered, collected_per_s }) => (
              <>
                {whole(collected)}
                {recovered > 0 ? ` + ${whole(recovered)} recovered from disk` : ''}
                <p class="soft">{short(collected_per_s)}/s</p>
              </>
            ),
          },
          {
            name: 'Exported',
            number: true,
            cell: ({ exported, exported_per_s }) => (
              <>
                {whole(exported)}
                <p class="soft">{short(exported_per_s)}/s</p>
              </>
            ),
          },
          { name: 'Rejected', number: true, cell: ({ rejected }) => whole(rejected) },
          { name: 'Dropped', cell: Lost },
          { name: 'Queued', cell: Queue },
          { name: 'Balance', cell: Sum },
        ]}
      />
    </section>
  )
}

function Lost({ dropped, dropped_per_s }: Signal) {
  if (dropped.length === 0) return <>0</>
  return (
    <>
      <ul>
        {dropped.map(({ reason, items, intended }) => (
          <li key={reason} class={intended ? 'soft' : 'bad-text'}>
            {intended ? '' : '✕ '}
            {whole(items)} {reason}
          </li>
        ))}
      </ul>
      <p class="soft">{short(dropped_per_s)}/s lost</p>
    </>
  )
}

function Queue({ queued, queued_bytes, capacity_bytes, full_in_s, oldest_ms, durable }: Signal) {
  const full = capacity_bytes === 0 ? 0 : (100 * queued_bytes) / capacity_bytes
  return (
    <>
      {whole(queued)}
      <meter
        min={0}
        max={100}
        high={80}
        value={full}
        aria-label={`Queue ${percent(full)} full`}
        title={
          durable
            ? `${bytes(queued_bytes)} on disk, shared by all signals; current limit ${bytes(capacity_bytes)}`
            : `${bytes(queued_bytes)} of ${bytes(capacity_bytes)} in memory`
        }
      />
      <p class="soft">
        {percent(full)} full, {durable ? 'on disk' : 'in memory'}
        {oldest_ms > 0 ? `, oldest ${duration(oldest_ms)}` : ''}
      </p>
      {full_in_s === null ? null : <p class="bad-text">✕ full in {duration(full_in_s * 1000)}</p>}
    </>
  )
}

function Sum({ collected, recovered, exported, rejected, dropped, queued }: Signal) {
  const lost = dropped.reduce((sum, { items }) => sum + items, 0)
  const rest = collected + recovered - exported - rejected - lost - queued
  return rest === 0 ? <>✓ balanced</> : <b class="bad-text">✕ {whole(rest)} unaccounted for</b>
}
