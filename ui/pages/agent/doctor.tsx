import { useSignal } from '@preact/signals'
import type { DoctorDocument } from '../../../src/view/api/ui/documents.ts'
import { apiUrl } from '../../lib/api.ts'
import { useDocument } from '../../lib/live.ts'
import { Command } from '../../parts/command.tsx'
import { Pill } from '../../parts/small.tsx'
import { Reading } from '../../parts/state.tsx'
import { Table } from '../../parts/table.tsx'

/** The checks of `svc doctor`, run on request because they have a cost. */
export function Doctor() {
  const runs = useSignal(0)
  return (
    <section class="card stack" aria-label="Host checks">
      <div class="row">
        <h2>Host checks</h2>
        <button
          type="button"
          onClick={() => {
            runs.value++
          }}
        >
          {runs.value === 0 ? 'Run checks' : 'Run checks again'}
        </button>
        <Command text="svc doctor" />
      </div>
      {runs.value === 0 ? (
        <p class="note">The checks try each feature on this host, so they run on request only.</p>
      ) : (
        <Report run={runs.value} />
      )}
    </section>
  )
}

function Report({ run }: { readonly run: number }) {
  const reading = useDocument<DoctorDocument>(apiUrl('doctor'), run)
  return (
    <Reading of={reading} what="the host checks">
      {() => (
        <Table
          caption="Host checks"
          rows={reading.value!.checks}
          rowKey={({ group, name }) => `${group} ${name}`}
          columns={[
            { name: 'Area', value: ({ group }) => group, cell: ({ group }) => group },
            { name: 'Check', value: ({ name }) => name, cell: ({ name }) => name },
            { name: 'State', value: ({ state }) => state, cell: ({ state }) => <Pill level={state} /> },
            {
              name: 'Result',
              cell: ({ detail, impact, hint }) => (
                <>
                  {detail}
                  {impact === '' ? null : <p class="soft">Impact: {impact}</p>}
                  {hint.map(each => (
                    <p key={each}>
                      <Command text={each} />
                    </p>
                  ))}
                </>
              ),
            },
          ]}
        />
      )}
    </Reading>
  )
}
