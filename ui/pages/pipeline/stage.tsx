import { useSignal } from '@preact/signals'
import type { PipelineLine, TapLine } from '../../../src/view/api/ui/documents.ts'
import { apiUrl } from '../../lib/api.ts'
import { duration, exactTime } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { setParameters } from '../../lib/route.ts'
import { Command } from '../../parts/command.tsx'
import { Drawer } from '../../parts/drawer.tsx'
import { Choice, Pill } from '../../parts/small.tsx'

type Node = PipelineLine['nodes'][number]
type Signal = Node['signals'][number]
type Item = Extract<TapLine, { kind: 'item' }>

/** One stage with its details and live items. */
export function Stage({
  node: { name, kind, state, reason, details: facts, signals },
}: {
  readonly node: Node
}) {
  const tapped = useSignal<Signal | ''>('')
  return (
    <Drawer title={`${kinds[kind]}: ${name}`} onClose={() => setParameters({ node: '' })}>
      <p>
        <Pill level={state} /> {reason}
      </p>
      <dl class="facts">
        {facts.map(({ name: what, value }) => [
          <dt key={what}>{what}</dt>,
          <dd key={`${what} is`}>{value}</dd>,
        ])}
      </dl>
      <h3>Tap: items after all processors</h3>
      <Choice
        label="Signal to tap"
        values={[['', 'None'], ...signals.map(each => [each, each] as const)]}
        value={tapped.value}
        onChoose={signal => {
          tapped.value = signal
        }}
      />
      {tapped.value === '' ? null : <Tapped signal={tapped.value} />}
    </Drawer>
  )
}

const kinds: Readonly<Record<Node['kind'], string>> = {
  source: 'Source',
  processor: 'Processor',
  queue: 'Queue',
  exporter: 'Exporter',
}

const mostItems = 20

interface Seen {
  readonly items: readonly Item[]
  readonly skipped: number
}

function Tapped({ signal }: { readonly signal: Signal }) {
  const { value, error } = useLive<TapLine, Seen>(apiUrl('tap', { signal }), (before, line) => {
    const { items, skipped } = before ?? { items: [], skipped: 0 }
    return line.kind === 'item'
      ? { items: [line, ...items].slice(0, mostItems), skipped }
      : { items, skipped: skipped + line.items }
  })
  return (
    <>
      <Command text={`svc tap ${signal}`} />
      {error === '' ? null : <p class="notice">{error}</p>}
      {value === undefined ? (
        <p class="note">Waiting for {signal} …</p>
      ) : (
        <>
          <ol class="stack">
            {value.items.map((item, i) => (
              <li key={`${item.time_ms} ${item.title} ${i}`}>
                <span class="soft">{exactTime(item.time_ms)}</span> {item.service}{' '}
                <b class={item.error ? 'bad-text' : ''}>
                  {item.error ? '✕ ' : ''}
                  {item.title}
                </b>{' '}
                {item.duration_ms === null ? '' : duration(item.duration_ms)}{' '}
                <span class="soft">{item.detail}</span>
              </li>
            ))}
          </ol>
          {value.skipped > 0 ? <p class="note">{value.skipped} more not shown.</p> : null}
        </>
      )}
    </>
  )
}
