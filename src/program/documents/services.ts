// The services of this host: activity in the last minute, and usual values.

import type { OverviewLine } from '../../view/api/ui/documents.ts'
import { durationBuckets } from '../../view/window/duration-counts.ts'
import { type EdgeColumn, type EdgeWindow, slotMs } from '../../view/window/edge-window.ts'
import {
  type CallNode,
  callGraph,
  errorsPercent,
  type Figures,
  localNames,
  Naming,
  protocolWord,
  Sides,
  together,
} from './call-graph.ts'
import type { DocumentContext } from './document-context.ts'
import type { LocalNames } from './local-names.ts'
import { durationMs, percentilesOf, rounded } from './percentiles.ts'

export type ServiceRow = Extract<OverviewLine, { kind: 'tick' }>['services'][number]

/** A service with its usual 95th percentile. */
export interface ServicePast {
  readonly service: ServiceRow
  /** Number of requests that its errors and durations of the last minute are based on. */
  readonly requests: number
  /** Median over the window, in milliseconds; null if unknown. */
  readonly usualP95Ms: number | null
}

/** The last minute. */
export const recentSeconds = 60
const mostServices = 200
const mostCalls = 12
const trendPoints = 30
/** Least number of slots with durations for a usual value. */
const leastSlots = 3

/** Services, worst first: by errors, then slowness, then requests. */
export function services(parts: DocumentContext): ServiceRow[] {
  return servicePasts(parts).map(({ service }) => service)
}

/** The same, with usual values. */
export function servicePasts(parts: DocumentContext): ServicePast[] {
  const names = localNames(parts)
  const { edges } = parts.window
  const pasts = pastsOf(edges, names)
  const recent = callGraph(edges, names, recentSeconds)
  const found: ServicePast[] = []
  for (const [id, past] of pasts) {
    const party = recent.get(id)
    const { count } = figuresOf(past, party)
    found.push({ service: rowOf(past, party), requests: count, usualP95Ms: past.usualP95Ms })
  }
  return found.sort(byBadness).slice(0, mostServices)
}

/**
 * One service as in the list. `party` is its activity over the window, `recent` that of the last minute; undefined:
 * none.
 */
export function serviceRow(
  parts: DocumentContext,
  party: CallNode,
  recent: CallNode | undefined,
): ServiceRow {
  const past = pastsOf(parts.window.edges, localNames(parts)).get(party.id)
  return rowOf(past ?? { party, serves: false, trend: [], usualP95Ms: null, protocols: [] }, recent)
}

/** A service over the window. */
interface Past {
  readonly party: CallNode
  readonly serves: boolean
  /** Protocols that it serves, or else calls with. */
  readonly protocols: readonly string[]
  readonly trend: readonly number[]
  readonly usualP95Ms: number | null
}

function figuresOf({ serves }: Past, recent: CallNode | undefined): Figures {
  return together((serves ? recent?.answers : recent?.asks) ?? [])
}

function rowOf(past: Past, recent: CallNode | undefined): ServiceRow {
  const { party, serves, protocols, trend } = past
  const figures = figuresOf(past, recent)
  const calls = [...(recent?.asks ?? [])].sort((a, b) => b.figures.count - a.figures.count)
  return {
    name: party.name,
    namespace: party.namespace,
    protocols,
    requests_per_s: rounded(figures.perSecond),
    serves,
    errors_percent: errorsPercent(figures),
    ...percentilesOf(figures.durations),
    dependencies: [...new Set(calls.map(({ to }) => to.name))].slice(0, mostCalls),
    trend,
  }
}

function byBadness(a: ServicePast, b: ServicePast): number {
  return (
    Math.round(b.service.errors_percent) - Math.round(a.service.errors_percent) ||
    slowness(b) - slowness(a) ||
    b.service.requests_per_s - a.service.requests_per_s ||
    (a.service.name < b.service.name ? -1 : 1)
  )
}

/** How many times slower than usual, in whole steps; less than twice does not change the order. */
function slowness({ service: { p95_ms }, usualP95Ms }: ServicePast): number {
  if (p95_ms === null || usualP95Ms === null || usualP95Ms <= 0) return 0
  const times = p95_ms / usualP95Ms
  return times < 2 ? 0 : Math.round(times)
}

interface Pasts {
  readonly slot: number
  readonly edges: number
  readonly madeMs: number
  readonly pasts: ReadonlyMap<string, Past>
}

const known = new WeakMap<EdgeWindow, Pasts>()
const pastsMs = 5_000

/** By ID; rebuilt when a slot ends, edges change, or five seconds pass. Shared by all viewers. */
function pastsOf(window: EdgeWindow, names: LocalNames): ReadonlyMap<string, Past> {
  const { slot } = window
  const edges = window.edges().length
  const before = known.get(window)
  const nowMs = performance.now()
  if (before?.slot === slot && before.edges === edges && nowMs - before.madeMs < pastsMs) return before.pasts
  const pasts = readPasts(window, names)
  known.set(window, { slot, edges, madeMs: nowMs, pasts })
  return pasts
}

interface Reading {
  readonly party: CallNode
  readonly index: number
  /** Protocols. */
  readonly served: Set<string>
  readonly spoken: Set<string>
}

function readPasts(window: EdgeWindow, names: LocalNames): Map<string, Past> {
  const naming = new Naming(window, names)
  const sides = new Sides(window, naming)
  const readings = new Map<CallNode, Reading>()
  for (const edge of window.edges()) {
    const from = naming.from(edge)
    const to = naming.to(edge)
    const word = protocolWord(edge.protocol)
    if (to.isHere) readingOf(readings, to).served.add(word)
    if (from.isHere) readingOf(readings, from).spoken.add(word)
  }
  const all = [...readings.values()]
  const slots = Math.ceil(window.windowMs / slotMs)
  const { slot: newest } = window
  const groupOf = (party: CallNode, isAsked: boolean): number => {
    const reading = readings.get(party)
    return reading !== undefined && reading.served.size > 0 === isAsked ? reading.index : -1
  }
  const servers = new Trends(all, slots, newest)
  window.history(
    all.length,
    edge => (sides.counts(edge, 'to') ? groupOf(naming.to(edge), true) : -1),
    column => servers.add(column),
  )
  const clients = new Trends(all, slots, newest)
  window.history(
    all.length,
    edge => (sides.counts(edge, 'from') ? groupOf(naming.from(edge), false) : -1),
    column => clients.add(column),
  )
  return new Map(
    all.map(({ party, index, served, spoken }) => {
      const serves = served.size > 0
      const trends = serves ? servers : clients
      const protocols = [...(serves ? served : spoken)].sort()
      return [
        party.id,
        { party, serves, protocols, trend: trends.trend(index), usualP95Ms: trends.usualP95Ms(index) },
      ]
    }),
  )
}

function readingOf(readings: Map<CallNode, Reading>, party: CallNode): Reading {
  let reading = readings.get(party)
  if (reading === undefined) {
    reading = { party, index: readings.size, served: new Set(), spoken: new Set() }
    readings.set(party, reading)
  }
  return reading
}

/** Requests and durations of many services over the window. */
class Trends {
  readonly #counts: Float64Array[]
  readonly #seconds = new Float64Array(trendPoints)
  readonly #p95s: number[][]
  readonly #slotsOfPoint: number
  readonly #newest: number

  constructor(readings: readonly Reading[], slots: number, newest: number) {
    this.#counts = readings.map(() => new Float64Array(trendPoints))
    this.#p95s = readings.map(() => [])
    this.#slotsOfPoint = Math.ceil(slots / trendPoints)
    this.#newest = newest
  }

  add({ fromMs, lengthMs, counts, durations }: EdgeColumn): void {
    const slot = fromMs / slotMs
    const point = trendPoints - 1 - (this.#pointOf(this.#newest) - this.#pointOf(slot))
    if (point >= 0) this.#seconds[point]! += lengthMs / 1000
    for (let i = 0; i < counts.length; i++) {
      if (counts[i] === 0) continue
      if (point >= 0) this.#counts[i]![point]! += counts[i]!
      // The current slot does not show what is usual.
      const p95 = slot === this.#newest ? null : durationMs(durations, 0.95, i * durationBuckets)
      if (p95 !== null) this.#p95s[i]!.push(p95)
    }
  }

  trend(index: number): number[] {
    return Array.from(this.#counts[index]!, (count, point) =>
      rounded(count / Math.max(1, this.#seconds[point]!)),
    )
  }

  usualP95Ms(index: number): number | null {
    const p95s = this.#p95s[index]!
    if (p95s.length < leastSlots) return null
    p95s.sort((a, b) => a - b)
    return p95s[p95s.length >> 1]!
  }

  #pointOf(slot: number): number {
    return Math.floor(slot / this.#slotsOfPoint)
  }
}
