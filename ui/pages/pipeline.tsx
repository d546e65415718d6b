// The data flow, the queues and the losses.

import type { PipelineLine } from '../../src/view/api/ui/documents.ts'
import { apiUrl } from '../lib/api.ts'
import { short, whole } from '../lib/format.ts'
import { useLive } from '../lib/live.ts'
import { parameter, setParameters } from '../lib/route.ts'
import { Figure } from '../parts/figure.tsx'
import { Graph, type GraphEdge, type GraphNode } from '../parts/graph.tsx'
import { Choice, Head, Pill } from '../parts/small.tsx'
import { Reading } from '../parts/state.tsx'
import { Table } from '../parts/table.tsx'
import { Ledger } from './pipeline/ledger.tsx'
import { Stage } from './pipeline/stage.tsx'
import { Try } from './pipeline/try.tsx'

type Node = PipelineLine['nodes'][number]
type Edge = PipelineLine['edges'][number]

const signals = [
  ['', 'All'],
  ['traces', 'Traces'],
  ['metrics', 'Metrics'],
  ['logs', 'Logs'],
  ['profiles', 'Profiles'],
] as const
type Choosable = (typeof signals)[number][0]

export default function PipelinePage() {
  const reading = useLive<PipelineLine>(apiUrl('pipeline'))
  return (
    <>
      <Head title="Pipeline" subtitle="Data flow, queues and losses">
        <Choice
          label="Signal"
          values={signals}
          value={parameter('signal') as Choosable}
          onChoose={signal => setParameters({ signal })}
        />
      </Head>
      <Reading of={reading} what="the pipeline">
        {() => <Body line={reading.value!} />}
      </Reading>
      <Try />
    </>
  )
}

function Body({ line }: { readonly line: PipelineLine }) {
  const signal = parameter('signal')
  const chosen = parameter('node')
  const of = ({ signals: all }: Node) => signal === '' || all.some(each => each === signal)
  const nodes = line.nodes.filter(of)
  const edges = line.edges.filter(edge => signal === '' || edge.signal === signal)
  const node = line.nodes.find(({ id }) => id === chosen)
  return (
    <>
      <Ledger signals={line.signals} />
      <Figure title="Data flow" summary={summaryOf(line)} table={() => <Nodes rows={nodes} />}>
        <Graph
          label="Sources, processors, queues and exporters. Arrow keys move between them, Enter opens one."
          nodes={nodes.map(graphNode)}
          edges={together(edges)}
          chosen={chosen}
          onChoose={id => setParameters({ node: id === chosen ? '' : id }, { replace: false })}
        />
      </Figure>
      {node === undefined ? null : <Stage key={node.id} node={node} />}
    </>
  )
}

function summaryOf({ signals: all, nodes }: PipelineLine): string {
  const sum = (of: (signal: PipelineLine['signals'][number]) => number) =>
    all.reduce((total, each) => total + of(each), 0)
  const lost = sum(({ dropped_per_s }) => dropped_per_s)
  const failed = nodes.filter(({ state }) => state === 'failed').length
  return `${short(sum(({ collected_per_s }) => collected_per_s))} items/s received, ${short(
    sum(({ exported_per_s }) => exported_per_s),
  )}/s exported, ${short(lost)}/s lost, ${whole(sum(({ queued }) => queued))} queued; ${
    failed === 0 ? 'no failed stages' : `${failed} of ${nodes.length} stages failed`
  }.`
}

const levels = { ok: '', limited: 'warn', failed: 'bad', off: 'off' } as const

function graphNode({ id, kind, name, state, reason, details: facts }: Node): GraphNode {
  const note = state === 'ok' ? (facts[0] === undefined ? kind : `${facts[0].name} ${facts[0].value}`) : state
  const marks = { ok: '', limited: '! ', failed: '✕ ', off: '– ' } as const
  return {
    id,
    title: name,
    note: `${marks[state]}${note}`,
    label: `${kind} ${name}, ${state}${reason === '' ? '' : `: ${reason}`}`,
    tone: levels[state],
  }
}

/** Signals with the same route share one line. */
function together(edges: readonly Edge[]): GraphEdge[] {
  const byWay = new Map<string, Edge[]>()
  for (const edge of edges) {
    const key = `${edge.from}\n${edge.to}`
    byWay.set(key, [...(byWay.get(key) ?? []), edge])
  }
  return [...byWay.values()].map(all => {
    const rate = all.reduce((sum, { per_s }) => sum + per_s, 0)
    return {
      from: all[0]!.from,
      to: all[0]!.to,
      label: `${all.map(({ signal }) => signal).join(', ')} ${short(rate)}/s`,
      width: Math.max(1, Math.min(8, 1 + Math.log10(1 + rate) * 2)),
      tone: rate === 0 ? 'faint' : '',
    }
  })
}

function Nodes({ rows }: { readonly rows: readonly Node[] }) {
  return (
    <Table
      caption="Pipeline stages"
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        { name: 'Kind', value: ({ kind }) => kind, cell: ({ kind }) => kind },
        { name: 'Name', value: ({ name }) => name, cell: ({ name }) => name },
        { name: 'State', value: ({ state }) => state, cell: ({ state }) => <Pill level={state} /> },
        { name: 'Signals', cell: ({ signals: all }) => all.join(', ') },
        { name: 'Reason', cell: ({ reason }) => reason },
      ]}
    />
  )
}
