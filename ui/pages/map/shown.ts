// Selects the part of the map to show: the user's filters, and a limited number of nodes.

import type { MapLine } from '../../../src/view/api/ui/documents.ts'

export type MapNode = MapLine['nodes'][number]
export type MapEdge = MapLine['edges'][number]

export interface MapFilter {
  readonly errors: boolean
  readonly probes: boolean
  readonly resolvers: boolean
  /** None: all. */
  readonly namespaces: readonly string[]
  /** Name of the node in focus; '' for none. */
  readonly focus: string
  readonly hops: number
  readonly most: number
}

export interface ShownMap {
  readonly nodes: readonly MapNode[]
  readonly edges: readonly MapEdge[]
  /** Nodes that represent several, by id: their number. */
  readonly folded: ReadonlyMap<string, number>
}

export function shownMap({ nodes, edges }: Pick<MapLine, 'nodes' | 'edges'>, filter: MapFilter): ShownMap {
  const byId = new Map(nodes.map(node => [node.id, node]))
  const may = ({ probe, kind, namespace }: MapNode) =>
    (filter.probes || !probe) &&
    (filter.resolvers || kind !== 'resolver') &&
    (filter.namespaces.length === 0 || filter.namespaces.includes(namespace))
  let kept = edges.filter(({ from, to, errors_percent }) => {
    const [a, b] = [byId.get(from), byId.get(to)]
    return a !== undefined && b !== undefined && may(a) && may(b) && (!filter.errors || errors_percent > 0)
  })
  let ids = new Set(kept.flatMap(({ from, to }) => [from, to]))
  // Nodes without calls are shown too, unless only failures are requested.
  if (!filter.errors) for (const node of nodes) if (may(node)) ids.add(node.id)
  const centre = nodes.find(
    ({ name, id }) => filter.focus !== '' && (name === filter.focus || id === filter.focus),
  )
  if (centre !== undefined) {
    ids = around(centre.id, kept, filter.hops)
    kept = kept.filter(({ from, to }) => ids.has(from) && ids.has(to))
  }
  return fold(
    nodes.filter(({ id }) => ids.has(id)),
    kept,
    filter.most,
    centre?.id,
  )
}

/** All nodes within a number of hops, in either direction. */
function around(id: string, edges: readonly MapEdge[], hops: number): Set<string> {
  const found = new Set([id])
  for (let hop = 0; hop < hops; hop++)
    for (const { from, to } of edges.filter(edge => found.has(edge.from) !== found.has(edge.to))) {
      found.add(from)
      found.add(to)
    }
  return found
}

/** Folds the least called nodes by kind and namespace. */
function fold(
  nodes: readonly MapNode[],
  edges: readonly MapEdge[],
  most: number,
  centre: string | undefined,
): ShownMap {
  if (nodes.length <= most) return { nodes, edges, folded: new Map() }
  const traffic = new Map<string, number>()
  for (const { from, to, requests_per_s } of edges)
    for (const id of [from, to]) traffic.set(id, (traffic.get(id) ?? 0) + requests_per_s)
  const weight = ({ id, errors_percent }: MapNode) =>
    id === centre ? Number.MAX_VALUE : (traffic.get(id) ?? 0) * (errors_percent > 0 ? 2 : 1)
  const ranked = [...nodes].sort((a, b) => weight(b) - weight(a))
  const kept = ranked.slice(0, most - foldRoom)
  const into = new Map<string, string>()
  const folded = new Map<string, number>()
  const made = new Map<string, MapNode>()
  for (const node of ranked.slice(most - foldRoom)) {
    const { kind, namespace } = node
    const own = `rest:${kind}/${namespace}`
    const id = made.has(own) || made.size < foldRoom - 1 ? own : 'rest:'
    into.set(node.id, id)
    folded.set(id, (folded.get(id) ?? 0) + 1)
    const before = made.get(id)
    made.set(id, {
      ...node,
      id,
      name: id === 'rest:' ? 'others' : `${kind}s${namespace === '' ? '' : ` in ${namespace}`}`,
      probe: false,
      p95_ms: null,
      requests_per_s: (before?.requests_per_s ?? 0) + node.requests_per_s,
      errors_percent: Math.max(before?.errors_percent ?? 0, node.errors_percent),
    })
  }
  const together = new Map<string, MapEdge>()
  for (const edge of edges) {
    const from = into.get(edge.from) ?? edge.from
    const to = into.get(edge.to) ?? edge.to
    if (from === to) continue
    const key = `${from}\n${to}\n${edge.protocol}`
    const before = together.get(key)
    const rate = (before?.requests_per_s ?? 0) + edge.requests_per_s
    together.set(key, {
      ...(before ?? edge),
      from,
      to,
      requests_per_s: rate,
      errors_percent:
        rate === 0
          ? 0
          : ((before?.errors_percent ?? 0) * (before?.requests_per_s ?? 0) +
              edge.errors_percent * edge.requests_per_s) /
            rate,
    })
  }
  return { nodes: [...kept, ...made.values()], edges: [...together.values()], folded }
}

/** Maximum number of folded nodes. */
const foldRoom = 6
