import type { AgentDocument } from '../../../src/view/api/ui/documents.ts'
import { duration, whole } from '../../lib/format.ts'
import { Table } from '../../parts/table.tsx'

/** eBPF programs and maps of svc, and files with probes. */
export function Kernel({ agent }: { readonly agent: AgentDocument }) {
  return (
    <>
      <section class="card stack" aria-label="eBPF programs">
        <h2>eBPF programs</h2>
        <Table
          caption="eBPF programs"
          rows={agent.programs}
          rowKey={({ name, attached }) => `${name} ${attached}`}
          columns={[
            { name: 'Program', value: ({ name }) => name, cell: ({ name }) => <code>{name}</code> },
            { name: 'Type', value: ({ type }) => type, cell: ({ type }) => type },
            { name: 'Attached to', value: ({ attached }) => attached, cell: ({ attached }) => attached },
            {
              name: 'Runs',
              number: true,
              value: ({ run_count }) => run_count,
              cell: ({ run_count }) => (run_count === null ? 'not counted' : whole(run_count)),
            },
            {
              name: 'Time per run',
              number: true,
              value: ({ ns_per_run }) => ns_per_run,
              cell: ({ ns_per_run }) => (ns_per_run === null ? '–' : duration(ns_per_run / 1e6)),
            },
          ]}
          empty={
            <p class="note">None: eBPF is off, or not available here. Run the host checks to see why.</p>
          }
        />
      </section>
      <section class="card stack" aria-label="eBPF maps">
        <h2>eBPF maps</h2>
        <Table
          caption="eBPF maps"
          rows={agent.maps}
          rowKey={({ name }) => name}
          mark={({ type, entries, max_entries }) =>
            type.endsWith('hash') && entries / max_entries > 0.9 ? 'warn' : ''
          }
          columns={[
            { name: 'Map', value: ({ name }) => name, cell: ({ name }) => <code>{name}</code> },
            { name: 'Type', value: ({ type }) => type, cell: ({ type }) => type },
            {
              name: 'Entries',
              number: true,
              value: ({ entries }) => entries,
              cell: ({ entries }) => whole(entries),
            },
            {
              name: 'Limit',
              number: true,
              value: ({ max_entries }) => max_entries,
              cell: ({ max_entries }) => whole(max_entries),
            },
          ]}
          empty={<p class="note">None: no eBPF programs are loaded.</p>}
        />
      </section>
      <section class="card stack" aria-label="Probed files">
        <h2>Probed files</h2>
        <Table
          caption="Probed files"
          rows={agent.attachments}
          rowKey={({ path, functions: what }) => `${path} ${what}`}
          columns={[
            { name: 'File', value: ({ path }) => path, cell: ({ path }) => <code>{path}</code> },
            { name: 'Functions', cell: ({ functions: what }) => what },
            {
              name: 'Processes',
              number: true,
              value: ({ pids }) => pids.length,
              cell: ({ pids }) => pids.slice(0, 12).join(', ') + (pids.length > 12 ? ', …' : ''),
            },
          ]}
          empty={<p class="note">None: no supported TLS library is in use, or TLS traffic is not decoded.</p>}
        />
      </section>
    </>
  )
}
