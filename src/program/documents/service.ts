import type { Resource } from '../../foundation/model/resource.ts'
import type { ServiceLine } from '../../view/api/ui/documents.ts'
import type { Live } from '../../view/api/ui/source.ts'
import { type EdgeWindow, slotMs } from '../../view/window/edge-window.ts'
import { type Call, type CallNode, callGraph, localNames, Naming, Sides } from './call-graph.ts'
import type { DocumentContext } from './document-context.ts'
import type { LocalNames } from './local-names.ts'
import { durationMs, rounded } from './percentiles.ts'
import { recentSeconds, serviceRow } from './services.ts'
import type { ShownText } from './shown-text.ts'
import { tracingOff } from './why-no-tracing.ts'

const mostColumns = 180
const mostRoutes = 50
const mostNeighbours = 100
/** Least elapsed part of a column for a meaningful rate. */
const leastColumnMs = 2000

/** One service. */
export function service(parts: DocumentContext, name: string): Live<ServiceLine> {
  return {
    everyMs: 2000,
    next: async () => {
      await localNames(parts).ready()
      return [serviceLine(parts, name)]
    },
  }
}

function serviceLine(parts: DocumentContext, name: string): ServiceLine {
  const { edges, spans, windowMs } = parts.window
  const names = localNames(parts)
  const party = partyOf(edges, names, windowMs, name)
  if (party === undefined) return nothing(name, tracingOff(parts))
  const recent = callGraph(edges, names, recentSeconds).get(party.id)
  const row = serviceRow(parts, party, recent)
  return {
    found: true,
    service: row,
    ...columnsOf(edges, names, party.id, row.serves),
    callers: neighbours(party.answers, recent?.answers, ({ from }) => from),
    callees: neighbours(party.asks, recent?.asks, ({ to }) => to),
    routes: spans.routesOf(name, mostRoutes).map(route => ({
      name: parts.shown(route.name),
      spans: route.spans,
      errors: route.errors,
      slowest_ms: route.slowestMs,
      trace_id: route.traceId,
    })),
    resource: party.resource === undefined ? {} : attributesOf(party.resource, parts.shown),
    no_data_reason: '',
  }
}

/** From several namespaces, the service with most requests. */
function partyOf(edges: EdgeWindow, names: LocalNames, windowMs: number, name: string): CallNode | undefined {
  let found: CallNode | undefined
  let most = -1
  for (const party of callGraph(edges, names, windowMs / 1000).values()) {
    if (!party.isHere || party.name !== name) continue
    const requests = [...party.answers, ...party.asks].reduce((sum, { figures }) => sum + figures.count, 0)
    if (requests <= most) continue
    found = party
    most = requests
  }
  return found
}

type Columns = Pick<ServiceLine, 'from_ms' | 'step_ms' | 'requests_per_s' | 'errors_per_s' | 'p95_ms'>

function columnsOf(edges: EdgeWindow, names: LocalNames, id: string, serves: boolean): Columns {
  const naming = new Naming(edges, names)
  const sides = new Sides(edges, naming)
  const side = serves ? 'to' : 'from'
  const slotsOfColumn = Math.ceil(edges.windowMs / slotMs / mostColumns)
  const stepMs = slotsOfColumn * slotMs
  const columns: Column[] = []
  edges.history(
    1,
    edge => (sides.counts(edge, side) && naming[side](edge).id === id ? 0 : -1),
    ({ fromMs, lengthMs, counts, failed, durations }) => {
      const at = Math.floor(fromMs / stepMs)
      let column = columns.at(-1)
      if (column?.at !== at) {
        column = { at, lengthMs: 0, count: 0, failed: 0, durations: new Float64Array(durations.length) }
        columns.push(column)
      }
      column.lengthMs += lengthMs
      column.count += counts[0]!
      column.failed += failed[0]!
      for (let i = 0; i < durations.length; i++) column.durations[i]! += durations[i]!
    },
  )
  if (columns.length > 1 && columns.at(-1)!.lengthMs < leastColumnMs) columns.pop()
  const perSecond = (count: number, { lengthMs }: Column) =>
    rounded((1000 * count) / Math.max(1000, lengthMs))
  return {
    from_ms: columns[0]!.at * stepMs,
    step_ms: stepMs,
    requests_per_s: columns.map(column => perSecond(column.count, column)),
    errors_per_s: columns.map(column => perSecond(column.failed, column)),
    p95_ms: columns.map(({ durations }) => durationMs(durations, 0.95)),
  }
}

interface Column {
  readonly at: number
  lengthMs: number
  count: number
  failed: number
  readonly durations: Float64Array
}

/** All of the window, with current rates. */
function neighbours(
  calls: readonly Call[],
  recent: readonly Call[] | undefined,
  who: (call: Call) => CallNode,
): ServiceLine['callers'] {
  const found = new Map<string, { name: string; requests_per_s: number; count: number }>()
  for (const call of calls) {
    const { id, name } = who(call)
    const one = found.get(id) ?? { name, requests_per_s: 0, count: 0 }
    one.count += call.figures.count
    found.set(id, one)
  }
  for (const call of recent ?? []) {
    const one = found.get(who(call).id)
    if (one !== undefined) one.requests_per_s += call.figures.perSecond
  }
  return [...found.values()]
    .sort((a, b) => b.requests_per_s - a.requests_per_s || b.count - a.count)
    .slice(0, mostNeighbours)
    .map(({ name, requests_per_s }) => ({ name, requests_per_s: rounded(requests_per_s) }))
}

function attributesOf({ attributes }: Resource, shown: ShownText): Record<string, unknown> {
  const texts: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(attributes.toObject())) {
    if (typeof value === 'string') texts[key] = shown(value, key)
    else texts[key] = Array.isArray(value) ? value.map(each => shown(String(each), key)) : value
  }
  return texts
}

function nothing(name: string, off: string): ServiceLine {
  return {
    found: false,
    service: {
      name,
      namespace: '',
      protocols: [],
      requests_per_s: 0,
      serves: false,
      errors_percent: 0,
      p50_ms: null,
      p95_ms: null,
      p99_ms: null,
      dependencies: [],
      trend: [],
    },
    from_ms: 0,
    step_ms: 0,
    requests_per_s: [],
    errors_per_s: [],
    p95_ms: [],
    callers: [],
    callees: [],
    routes: [],
    resource: {},
    no_data_reason: off,
  }
}
