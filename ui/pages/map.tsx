// The calls between services.

import type { MapLine } from '../../src/view/api/ui/documents.ts'
import { apiUrl } from '../lib/api.ts'
import { nameColour } from '../lib/colour.ts'
import { duration, percent, short, whole } from '../lib/format.ts'
import { windowSeconds } from '../lib/host.ts'
import { useLive } from '../lib/live.ts'
import { hrefOf, parameter, setParameters } from '../lib/route.ts'
import { Drawer } from '../parts/drawer.tsx'
import { Figure } from '../parts/figure.tsx'
import { Graph, type GraphEdge, type GraphNode } from '../parts/graph.tsx'
import { Choice, Field, Head } from '../parts/small.tsx'
import { Empty, Reading } from '../parts/state.tsx'
import { Table } from '../parts/table.tsx'
import { type MapEdge, type MapFilter, type MapNode, type ShownMap, shownMap } from './map/shown.ts'

const mostNodes = 40
/** Error rate from which an edge or a node counts as failing. */
const badPercent = 1

export default function MapPage() {
  const reading = useLive<MapLine>(apiUrl('map', { seconds: windowSeconds.value }))
  return (
    <>
      <Head title="Map" subtitle="Calls between services">
        <Filters line={reading.value} />
      </Head>
      <Reading of={reading} what="the map">
        {() => <Body line={reading.value!} />}
      </Reading>
    </>
  )
}

function filterOf(): MapFilter {
  return {
    errors: parameter('errors') === '1',
    probes: parameter('probes') === '1',
    resolvers: parameter('resolvers') === '1',
    namespaces: parameter('namespace') === '' ? [] : parameter('namespace').split(','),
    focus: parameter('focus'),
    hops: Number(parameter('hops', '1')) || 1,
    most: mostNodes,
  }
}

const switches = [
  ['errors', 'Show errors only'],
  ['probes', 'Show scrapers and probes'],
  ['resolvers', 'Show resolvers'],
] as const

function Filters({ line }: { readonly line: MapLine | undefined }) {
  const { namespaces, focus, hops } = filterOf()
  const known = [...new Set((line?.nodes ?? []).map(({ namespace }) => namespace))].filter(
    each => each !== '',
  )
  return (
    <>
      {switches.map(([name, text]) => (
        <button
          key={name}
          type="button"
          aria-pressed={parameter(name) === '1'}
          onClick={() => setParameters({ [name]: parameter(name) === '1' ? '' : '1' })}
        >
          {text}
        </button>
      ))}
      {known.sort().map(namespace => {
        const isOn = namespaces.includes(namespace)
        const others = namespaces.filter(each => each !== namespace)
        return (
          <button
            key={namespace}
            type="button"
            aria-pressed={isOn}
            onClick={() => setParameters({ namespace: (isOn ? others : [...others, namespace]).join(',') })}
          >
            {namespace}
          </button>
        )
      })}
      <Field label="Focus">
        <select value={focus} onChange={event => setParameters({ focus: event.currentTarget.value })}>
          <option value="">All</option>
          {[...(line?.nodes ?? [])]
            .sort((a, b) => a.name.localeCompare(b.name))
            .map(({ id, name }) => (
              <option key={id} value={name}>
                {name}
              </option>
            ))}
        </select>
      </Field>
      {focus === '' ? null : (
        <Choice
          label="Distance from the focus"
          values={[
            ['1', '± 1 hop'],
            ['2', '± 2 hops'],
          ]}
          value={hops === 2 ? '2' : '1'}
          onChoose={value => setParameters({ hops: value })}
        />
      )}
    </>
  )
}

function Body({ line }: { readonly line: MapLine }) {
  if (line.nodes.length === 0)
    return (
      <Empty
        title="No traffic yet"
        why={
          line.no_data_reason ||
          'A line appears with the first request between two services, or from this host to another one. If something is missing, check the reason by port or name:'
        }
        command={line.no_data_reason === '' ? 'svc explain 8080' : 'svc doctor traces'}
      />
    )
  const shown = shownMap(line, filterOf())
  const names = new Map(shown.nodes.map(({ id, name }) => [id, name]))
  const chosen = parameter('node')
  const node = shown.nodes.find(({ id }) => id === chosen)
  return (
    <>
      <Figure title="Calls" summary={summaryOf(line, shown)} table={() => <Edges {...shown} names={names} />}>
        {shown.nodes.length === 0 ? (
          <p class="note">No calls match the filters.</p>
        ) : (
          <Graph
            label="Services and their calls. Arrow keys move between them, Enter opens one."
            nodes={shown.nodes.map(each => graphNode(each, shown.folded.get(each.id)))}
            edges={shown.edges.map(each => graphEdge(each, names))}
            chosen={chosen}
            onChoose={id => setParameters({ node: id === chosen ? '' : id }, { replace: false })}
          />
        )}
      </Figure>
      {line.omitted > 0 || line.lost > 0 ? (
        <p class="notice">
          {line.omitted} connections and {whole(line.lost)} requests were omitted for lack of memory: raise{' '}
          <code>self_telemetry.ui.max_memory</code>.
        </p>
      ) : null}
      {node === undefined ? null : <About node={node} shown={shown} names={names} />}
    </>
  )
}

function summaryOf({ seconds }: MapLine, { nodes, edges }: ShownMap): string {
  const calls = edges.reduce((sum, { requests_per_s }) => sum + requests_per_s, 0)
  const failing = edges.filter(({ errors_percent }) => errors_percent >= badPercent)
  const bad =
    failing.length === 0 ? 'none failing' : `${failing.length} of ${edges.length} connections failing`
  return `${nodes.length} ${nodes.length === 1 ? 'service' : 'services'}, ${short(calls)} requests/s in the last ${duration(seconds * 1000)}; ${bad}.`
}

function graphNode(node: MapNode, folded: number | undefined): GraphNode {
  const { id, name, kind, requests_per_s, errors_percent, p95_ms } = node
  const rate = `${short(requests_per_s)}/s`
  const bad = errors_percent >= badPercent
  const note = [
    // The usual kind is omitted if there is something else to show.
    ...(folded !== undefined ? [`+${folded}`] : kind === 'service' && requests_per_s > 0 ? [] : [kind]),
    ...(requests_per_s > 0 ? [rate] : []),
    ...(bad ? [`✕ ${percent(errors_percent)}`] : p95_ms === null ? [] : [duration(p95_ms)]),
  ].join(' · ')
  return {
    id,
    title: name,
    note,
    label: `${name}, ${kind}, ${rate} requests, ${percent(errors_percent)} errors, p95 ${duration(p95_ms)}`,
    tone: bad ? 'bad' : '',
    colour: nameColour(name),
  }
}

function graphEdge(
  { from, to, protocol, requests_per_s, errors_percent }: MapEdge,
  names: ReadonlyMap<string, string>,
): GraphEdge {
  const bad = errors_percent >= badPercent
  const failing = bad ? ` ✕ ${percent(errors_percent)}` : ''
  return {
    from,
    to,
    label: `${protocol} ${short(requests_per_s)}/s${failing}`,
    width: Math.max(1, Math.min(8, 1 + Math.log10(1 + requests_per_s) * 2)),
    tone: bad ? 'bad' : '',
    ...(names.has(from) ? {} : { tone: 'faint' as const }),
  }
}

function Edges({ edges, names }: Pick<ShownMap, 'edges'> & { readonly names: ReadonlyMap<string, string> }) {
  return (
    <Table
      caption="Calls between services"
      rows={edges}
      rowKey={({ from, to, protocol }) => `${from} ${to} ${protocol}`}
      mark={({ errors_percent }) => (errors_percent >= badPercent ? 'bad' : '')}
      columns={[
        { name: 'From', value: ({ from }) => names.get(from) ?? from, cell: ({ from }) => names.get(from) },
        { name: 'To', value: ({ to }) => names.get(to) ?? to, cell: ({ to }) => names.get(to) },
        { name: 'Protocol', value: ({ protocol }) => protocol, cell: ({ protocol }) => protocol },
        {
          name: 'Calls/s',
          number: true,
          value: ({ requests_per_s }) => requests_per_s,
          cell: ({ requests_per_s }) => short(requests_per_s),
        },
        {
          name: 'Errors',
          number: true,
          value: ({ errors_percent }) => errors_percent,
          cell: ({ errors_percent }) => percent(errors_percent),
        },
        { name: 'p50', number: true, value: ({ p50_ms }) => p50_ms, cell: ({ p50_ms }) => duration(p50_ms) },
        { name: 'p95', number: true, value: ({ p95_ms }) => p95_ms, cell: ({ p95_ms }) => duration(p95_ms) },
      ]}
      empty={<p class="note">No calls match the filters.</p>}
    />
  )
}

function About({
  node: { id, name, kind, namespace, requests_per_s, errors_percent, p95_ms },
  shown,
  names,
}: {
  readonly node: MapNode
  readonly shown: ShownMap
  readonly names: ReadonlyMap<string, string>
}) {
  const list = (title: string, edges: readonly MapEdge[], other: 'from' | 'to') => (
    <section class="stack" aria-label={title}>
      <h3>{title}</h3>
      {edges.length === 0 ? <p class="note">None.</p> : null}
      <ul>
        {edges.map(edge => (
          <li key={`${edge[other]} ${edge.protocol}`}>
            {names.get(edge[other])}: {edge.protocol}, {short(edge.requests_per_s)}/s,{' '}
            {percent(edge.errors_percent)} errors, p95 {duration(edge.p95_ms)}
          </li>
        ))}
      </ul>
    </section>
  )
  return (
    <Drawer title={name} onClose={() => setParameters({ node: '' })}>
      <dl class="facts">
        <dt>Kind</dt>
        <dd>
          {kind}
          {namespace === '' ? '' : ` in ${namespace}`}
        </dd>
        <dt>Requests</dt>
        <dd>{short(requests_per_s)}/s</dd>
        <dt>Errors</dt>
        <dd>{percent(errors_percent)}</dd>
        <dt>p95</dt>
        <dd>{duration(p95_ms)}</dd>
      </dl>
      {list(
        'Callers',
        shown.edges.filter(({ to }) => to === id),
        'from',
      )}
      {list(
        'Dependencies',
        shown.edges.filter(({ from }) => from === id),
        'to',
      )}
      <nav class="row" aria-label={`More about ${name}`}>
        <a href={hrefOf('service', { name })}>Service</a>
        <a href={hrefOf('traces', { service: name, sort: 'slow' })}>Slow traces</a>
        <a href={hrefOf('traces', { service: name, errors: 1 })}>Errors</a>
        <a href={hrefOf('logs', { service: name })}>Logs</a>
        <a href={hrefOf('profiles', { service: name })}>Profile</a>
        <a href={hrefOf('map', { focus: name })}>Show neighbours only</a>
      </nav>
    </Drawer>
  )
}
