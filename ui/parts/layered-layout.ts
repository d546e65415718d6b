// Places the nodes of a graph in layers from left to right, after Sugiyama: callers are to the left of callees.

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

/** Where an edge crosses a layer between its ends: horizontally, from left to right. */
export interface Pass {
  readonly left: number
  readonly right: number
  readonly y: number
}

export interface Layout {
  readonly places: ReadonlyMap<string, Place>
  /** Crossings of edges that skip layers, by `pairOf`, from the caller's end. */
  readonly passes: ReadonlyMap<string, readonly Pass[]>
  /** The vertical position of all placed nodes, for the next layout. */
  readonly levels: ReadonlyMap<string, number>
  readonly width: number
  readonly height: number
}

export interface LayoutOptions {
  readonly gapX: number
  readonly gapY: number
  /** Nodes of this layout keep their order, so that they do not jump. */
  readonly before?: Layout | undefined
}

const sweeps = 6
/** Space for an edge that crosses a layer, so that no node covers it. */
const passHeight = 10

/** Key of the edges between two nodes. */
export function pairOf({ from, to }: LayoutEdge): string {
  return `${from}\n${to}`
}

/** Edges of unknown nodes, and edges from a node to itself, do not affect the layout. */
export function layeredLayout(
  nodes: readonly LayoutNode[],
  edges: readonly LayoutEdge[],
  { gapX, gapY, before }: LayoutOptions,
): Layout {
  const ids = new Set(nodes.map(({ id }) => id))
  const known = edges.filter(({ from, to }) => from !== to && ids.has(from) && ids.has(to))
  const forward = withoutCycles(nodes, known)
  const { layers, steps, chains, standIns } = withPasses(layersOf(nodes, forward), forward)
  const { places, columns, ...size } = placed(orderLayers(layers, steps, before, standIns), gapX, gapY)
  const levels = new Map([...places].map(([id, { y }]) => [id, y]))
  const passes = new Map<string, readonly Pass[]>()
  for (const edge of known) {
    const chain =
      chains.get(pairOf(edge)) ?? chains.get(pairOf({ from: edge.to, to: edge.from }))?.toReversed()
    if (chain !== undefined)
      passes.set(
        pairOf(edge),
        chain.map(id => passOf(places.get(id)!, columns)),
      )
  }
  for (const id of [...chains.values()].flat()) places.delete(id)
  return { places, passes, levels, ...size }
}

/** An edge that skips layers becomes a chain of stand-ins, one per layer, which are placed like nodes. */
function withPasses(layers: LayoutNode[][], edges: readonly LayoutEdge[]) {
  const layerOf = new Map(layers.flatMap((layer, number) => layer.map(({ id }) => [id, number] as const)))
  const all = layers.map(layer => [...layer])
  const steps: LayoutEdge[] = []
  const chains = new Map<string, readonly string[]>()
  const standIns = new Map<string, LayoutEdge>()
  for (const edge of edges) {
    const pair = pairOf(edge)
    if (chains.has(pair)) continue
    const chain: string[] = []
    for (let layer = layerOf.get(edge.from)! + 1; layer < layerOf.get(edge.to)!; layer++) {
      const id = `${pair}\n${layer}`
      chain.push(id)
      standIns.set(id, edge)
      all[layer]!.push({ id, width: 0, height: passHeight })
    }
    const stops = [edge.from, ...chain, edge.to]
    for (let i = 1; i < stops.length; i++) steps.push({ from: stops[i - 1]!, to: stops[i]! })
    if (chain.length > 0) chains.set(pair, chain)
  }
  return { layers: all, steps, chains, standIns }
}

function passOf({ x, y, layer }: Place, columns: readonly number[]): Pass {
  return { left: x, right: x + columns[layer]!, y: y + passHeight / 2 }
}

/** The edges, reversed where they would close a cycle. */
function withoutCycles(nodes: readonly LayoutNode[], edges: readonly LayoutEdge[]): LayoutEdge[] {
  const out = neighbours(edges, 'from', 'to')
  const state = new Map<string, 'open' | 'done'>()
  const back = new Set<string>()
  const entered = new Set(edges.map(({ to }) => to))
  // Starts at nodes without callers, so that a cycle is cut where it is entered.
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

/** Each node is one layer after the last of its callers. */
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

/** Orders each layer by the positions of its nodes' neighbours, so that fewer edges cross. */
function orderLayers(
  layers: LayoutNode[][],
  edges: readonly LayoutEdge[],
  before: Layout | undefined,
  standIns: ReadonlyMap<string, LayoutEdge>,
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
    before === undefined ? [...layer] : sorted(layer, ({ id }) => formerLevel(id, before, standIns.get(id))),
  )
  for (const layer of ordered) note(layer)
  // Nodes of the previous layout are already in order, and would only jump.
  const isKnown = ({ id }: LayoutNode) => standIns.has(id) || before?.levels.has(id)
  if (before !== undefined && layers.flat().every(isKnown)) return ordered
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

/** Previous position; for the stand-in of a new edge, between its ends. New nodes come last. */
function formerLevel(id: string, { levels }: Layout, edge: LayoutEdge | undefined): number {
  const [from, to] = edge === undefined ? [] : [levels.get(edge.from), levels.get(edge.to)]
  const between = from === undefined || to === undefined ? Number.MAX_VALUE : (from + to) / 2
  return levels.get(id) ?? between
}

function placed(layers: readonly (readonly LayoutNode[])[], gapX: number, gapY: number) {
  const heights = layers.map(layer => layer.reduce((sum, { height }) => sum + height + gapY, -gapY))
  const height = Math.max(0, ...heights)
  const places = new Map<string, Place>()
  /** Widths of the layers. */
  const columns: number[] = []
  let x = 0
  layers.forEach((layer, number) => {
    let y = (height - heights[number]!) / 2
    for (const node of layer) {
      places.set(node.id, { x, y, layer: number })
      y += node.height + gapY
    }
    columns.push(Math.max(0, ...layer.map(({ width }) => width)))
    x += columns.at(-1)! + gapX
  })
  return { places, columns, width: Math.max(0, x - gapX), height }
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

/** Equal nodes keep their order. */
function sorted<T>(items: readonly T[], by: (item: T) => number): T[] {
  return [...items].sort((a, b) => by(a) - by(b))
}
