import { useSignal } from '@preact/signals'
import type { AgentDocument } from '../../../src/view/api/ui/documents.ts'
import { post } from '../../lib/api.ts'
import { parameter, setParameters } from '../../lib/route.ts'
import { download } from '../../parts/download.ts'
import { Field } from '../../parts/small.tsx'
import { Table } from '../../parts/table.tsx'

type Key = AgentDocument['config'][number]

/** The effective configuration: each key with its value, origin and default. */
export function Configuration({
  agent: { config, reload },
  onReload,
}: {
  readonly agent: AgentDocument
  readonly onReload: () => void
}) {
  const text = parameter('q')
  const differing = parameter('differing') === '1'
  const sought = text.toLowerCase()
  const rows = config.filter(
    ({ key, summary, origin }) =>
      (!differing || origin !== 'default') && `${key} ${summary}`.toLowerCase().includes(sought),
  )
  return (
    <section class="card stack" aria-label="Configuration">
      <h2>Configuration</h2>
      <div class="row">
        <Field label="Find a key">
          <input
            type="search"
            value={text}
            onInput={event => setParameters({ q: event.currentTarget.value })}
          />
        </Field>
        <label>
          <input
            type="checkbox"
            checked={differing}
            onChange={event => setParameters({ differing: event.currentTarget.checked ? '1' : '' })}
          />{' '}
          Changed keys only
        </label>
        <button type="button" onClick={() => download('svc-config.yaml', 'application/yaml', yamlOf(rows))}>
          Download shown keys
        </button>
        <Reload onReload={onReload} />
      </div>
      <p class="soft">
        {reload.last === '' ? 'Not reloaded since start.' : `Last reload: ${reload.last}.`}
        {reload.requires_restart.length === 0
          ? ''
          : ` Changes that need a restart: ${reload.requires_restart.join(', ')}.`}
      </p>
      <Table
        caption="Configuration keys"
        rows={rows}
        most={500}
        rowKey={({ key }) => key}
        mark={({ origin }) => (origin === 'default' ? '' : 'chosen')}
        columns={[
          {
            name: 'Key',
            value: ({ key }) => key,
            cell: ({ key, summary, requires_restart: restart }) => (
              <>
                <code>{key}</code>
                <p class="soft">
                  {summary}
                  {restart ? ' Changes take effect after a restart.' : ''}
                </p>
              </>
            ),
          },
          { name: 'Value', cell: ({ value }) => <code>{value}</code> },
          { name: 'Origin', value: ({ origin }) => origin, cell: ({ origin }) => origin },
          { name: 'Default', cell: ({ default: fallback }) => <code>{fallback}</code> },
        ]}
        empty={<p class="note">No matching keys.</p>}
      />
    </section>
  )
}

function Reload({ onReload }: { readonly onReload: () => void }) {
  const said = useSignal('')
  const reload = async () => {
    said.value = 'Reloading …'
    try {
      said.value = (await post<{ message: string }>('/admin/reload')).message
    } catch (error) {
      said.value = (error as Error).message
    }
    onReload()
  }
  return (
    <>
      <button type="button" onClick={reload}>
        Reload configuration
      </button>
      <span role="status">{said.value}</span>
    </>
  )
}

/** Keys with their paths and origins, as YAML that svc can read. */
function yamlOf(rows: readonly Key[]): string {
  const lines: string[] = []
  let open: readonly string[] = []
  for (const { key, value, origin } of rows) {
    const path = key.split('.')
    const parents = path.slice(0, -1)
    let shared = 0
    while (shared < parents.length && open[shared] === parents[shared]) shared++
    for (let depth = shared; depth < parents.length; depth++)
      lines.push(`${'  '.repeat(depth)}${parents[depth]}:`)
    open = parents
    const indent = '  '.repeat(parents.length)
    const own = value.split('\n')
    if (own.length === 1) lines.push(`${indent}${path.at(-1)}: ${value} # ${origin}`)
    else lines.push(`${indent}${path.at(-1)}: # ${origin}`, ...own.map(line => `${indent}  ${line}`))
  }
  return `${lines.join('\n')}\n`
}
