// Places the nodes of a graph in layers from left to right, after Sugiyama: who asks stands left of who is asked.

export interface LayoutNode {
  readonly id: string
  readonly width: number
  readonly height: number
}

export interface LayoutEdge {
  readonly from: string
  readonly to: string
}

export interface Place {
  /** Of the upper left corner. */
  readonly x: number
  readonly y: number
  readonly layer: number
}

export interface Layout {
  readonly places: ReadonlyMap<string, Place>
  readonly width: number
  readonly height: number
}

export interface LayoutOptions {
  readonly gapX: number
  readonly gapY: number
  /** Nodes that were there keep their order, so that they do not jump. */
  readonly before?: Layout | undefined
}

const sweeps = 6

/** Edges from or to nodes that are not there, and those of a node to itself, place nothing. */
export function layeredLayout(
  nodes: readonly LayoutNode[],
  edges: readonly LayoutEdge[],
  { gapX, gapY, before }: LayoutOptions,
): Layout {
  const ids = new Set(nodes.map(({ id }) => id))
  const known = edges.filter(({ from, to }) => from !== to && ids.has(from) && ids.has(to))
  const forward = withoutCycles(nodes, known)
  const layers = orderLayers(layersOf(nodes, forward), forward, before)
  return placed(layers, gapX, gapY)
}

/** The edges, turned round where they would close a circle. */
function withoutCycles(nodes: readonly LayoutNode[], edges: readonly LayoutEdge[]): LayoutEdge[] {
  const out = neighbours(edges, 'from', 'to')
  const state = new Map<string, 'open' | 'done'>()
  const back = new Set<string>()
  const entered = new Set(edges.map(({ to }) => to))
  // From those that nobody asks, so that a circle is cut where it is entered.
  const order = [...nodes].sort((a, b) => Number(entered.has(a.id)) - Number(entered.has(b.id)))
  for (const { id } of order) {
    if (state.has(id)) continue
    const stack = [{ id, at: 0 }]
    state.set(id, 'open')
    while (stack.length > 0) {
      const top = stack.at(-1)!
      const next = out.get(top.id)?.[top.at++]
      if (next === undefined) {
        state.set(top.id, 'done')
        stack.pop()
      } else if (state.get(next) === 'open') back.add(`${top.id}\n${next}`)
      else if (!state.has(next)) {
        state.set(next, 'open')
        stack.push({ id: next, at: 0 })
      }
    }
  }
  return edges.map(({ from, to }) => (back.has(`${from}\n${to}`) ? { from: to, to: from } : { from, to }))
}

/** Each node one layer behind the last of those that ask it. */
function layersOf(nodes: readonly LayoutNode[], edges: readonly LayoutEdge[]): LayoutNode[][] {
  const waits = new Map(nodes.map(({ id }) => [id, 0]))
  for (const { to } of edges) waits.set(to, waits.get(to)! + 1)
  const out = neighbours(edges, 'from', 'to')
  const layer = new Map(nodes.map(({ id }) => [id, 0]))
  const ready = nodes.filter(({ id }) => waits.get(id) === 0).map(({ id }) => id)
  for (let id = ready.pop(); id !== undefined; id = ready.pop())
    for (const next of out.get(id) ?? []) {
      layer.set(next, Math.max(layer.get(next)!, layer.get(id)! + 1))
      waits.set(next, waits.get(next)! - 1)
      if (waits.get(next) === 0) ready.push(next)
    }
  const layers: LayoutNode[][] = []
  for (const node of nodes) {
    const own = layer.get(node.id)!
    while (layers.length <= own) layers.push([])
    layers[own]!.push(node)
  }
  return layers
}

/** Orders each layer by where the neighbours of its nodes stand: fewer edges cross. */
function orderLayers(
  layers: LayoutNode[][],
  edges: readonly LayoutEdge[],
  before: Layout | undefined,
): LayoutNode[][] {
  const ins = neighbours(edges, 'to', 'from')
  const outs = neighbours(edges, 'from', 'to')
  const rank = new Map<string, number>()
  const note = (layer: readonly LayoutNode[]) => {
    layer.forEach(({ id }, i) => {
      rank.set(id, (i + 0.5) / layer.length)
    })
  }
  const ordered = layers.map(layer =>
    before === undefined
      ? [...layer]
      : sorted(layer, ({ id }) => before.places.get(id)?.y ?? Number.MAX_VALUE),
  )
  for (const layer of ordered) note(layer)
  // What stood there before was ordered, and would only jump.
  if (before !== undefined && layers.flat().every(({ id }) => before.places.has(id))) return ordered
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const right = sweep % 2 === 0
    for (let i = 0; i < ordered.length; i++) {
      const at = right ? i : ordered.length - 1 - i
      const sides = right ? ins : outs
      ordered[at] = sorted(ordered[at]!, ({ id }) => mean(sides.get(id), rank) ?? rank.get(id)!)
      note(ordered[at]!)
    }
  }
  return ordered
}

function placed(layers: readonly (readonly LayoutNode[])[], gapX: number, gapY: number): Layout {
  const heights = layers.map(layer => layer.reduce((sum, { height }) => sum + height + gapY, -gapY))
  const height = Math.max(0, ...heights)
  const places = new Map<string, Place>()
  let x = 0
  layers.forEach((layer, number) => {
    let y = (height - heights[number]!) / 2
    for (const node of layer) {
      places.set(node.id, { x, y, layer: number })
      y += node.height + gapY
    }
    x += Math.max(0, ...layer.map(({ width }) => width)) + gapX
  })
  return { places, width: Math.max(0, x - gapX), height }
}

function neighbours(
  edges: readonly LayoutEdge[],
  of: 'from' | 'to',
  other: 'from' | 'to',
): Map<string, string[]> {
  const all = new Map<string, string[]>()
  for (const edge of edges) {
    const own = all.get(edge[of])
    if (own === undefined) all.set(edge[of], [edge[other]])
    else own.push(edge[other])
  }
  return all
}

function mean(ids: readonly string[] | undefined, rank: ReadonlyMap<string, number>): number | undefined {
  if (ids === undefined || ids.length === 0) return undefined
  return ids.reduce((sum, id) => sum + rank.get(id)!, 0) / ids.length
}

/** Equal ones stay as they stand. */
function sorted<T>(items: readonly T[], by: (item: T) => number): T[] {
  return [...items].sort((a, b) => by(a) - by(b))
}
