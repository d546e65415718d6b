import type { RequestEdge } from '../../foundation/model/request-edge.ts'
import { serviceName } from '../../foundation/model/resource.ts'
import { DistinctEstimate } from './distinct-estimate.ts'
import { bucketOf, durationBuckets } from './duration-counts.ts'
import { type Edge, EdgeGraph, type EdgeNode, mostForeign } from './edge-graph.ts'
import { SlotRecords } from './slot-records.ts'

export interface EdgeWindowOptions {
  /** Maximum memory; at least 48 KiB is used. */
  readonly maxBytes: number
  /** Longest time to look back. */
  readonly windowMs: number
  /** Milliseconds since the Unix epoch. */
  readonly now: () => number
}

/** Totals of an edge in the requested time. */
export interface EdgeSum {
  readonly edge: Edge
  count: number
  failed: number
  /** Time in which it was observable: the divisor for rates. */
  readonly seconds: number
  /** Histogram, as for `percentileMs`. */
  readonly durations: Float64Array
}

/** A slot of time, for all groups. The object is reused for the next slot. */
export interface EdgeColumn {
  /** Start in milliseconds since the Unix epoch. */
  fromMs: number
  /** Elapsed part of it. */
  lengthMs: number
  /** By group. */
  readonly counts: Float64Array
  readonly failed: Float64Array
  /** `durationBuckets` per group. */
  readonly durations: Float64Array
}

/** Duration of a slot. */
export const slotMs = 10_000
/** Idle slots after which an edge may be folded. */
const idleSlots = 6
/** Share of the memory for the graph; the rest is for counts. */
const graphPart = 0.35
const leastBytes = 48 * 1024
/** Least memory per slot: below it there are fewer slots. */
const bytesForSlot = 64

/**
 * Callers and callees of the last minutes: number, errors and durations of their requests. Counts are exact for as long
 * as they are kept. If many addresses call one service, or are called by it, the rest shares one edge; if memory runs
 * out, the oldest slots go first.
 */
export class EdgeWindow {
  /** Requests that could not be counted at all. */
  lost = 0
  readonly windowMs: number
  readonly #now: () => number
  /** Milliseconds since the Unix epoch. */
  #startedMs: number
  readonly #graph: EdgeGraph
  readonly #records: SlotRecords
  readonly #leftOut = new DistinctEstimate()
  #leftOutSlot: number
  #foldable = false

  constructor({ maxBytes: given, windowMs, now }: EdgeWindowOptions) {
    const maxBytes = Math.max(leastBytes, given)
    this.#now = now
    this.#startedMs = now()
    this.windowMs = windowMs
    const slot = Math.floor(this.#startedMs / slotMs)
    this.#leftOutSlot = slot
    this.#graph = new EdgeGraph(maxBytes * graphPart)
    const rest = maxBytes * (1 - graphPart) - this.#leftOut.bytes
    const slots = Math.ceil(Math.min(windowMs / slotMs, maxBytes / bytesForSlot)) + 1
    this.#records = new SlotRecords(rest, slots, slot, series => {
      const edge = this.#graph.edges[series]!
      edge.records--
      if (edge.records === 0) this.#graph.remove(edge)
    })
  }

  /** Memory in use. */
  get bytes(): number {
    return this.#graph.bytes + this.#records.bytes + this.#leftOut.bytes
  }

  /** Approximate number of edges of the window without room of their own. */
  get leftOut(): number {
    this.#turn(this.#now())
    return this.#leftOut.count
  }

  /** The current slot; increases by one every `slotMs`. */
  get slot(): number {
    this.#turn(this.#now())
    return this.#records.newest
  }

  /** Edges with any data. */
  edges(): Edge[] {
    this.#turn(this.#now())
    return this.#graph.edges.filter(edge => edge !== undefined)
  }

  /** Counts a request, with the server's time if it was observed, else the client's. */
  add(request: RequestEdge): void {
    const nowMs = this.#now()
    this.#turn(nowMs)
    const edge = this.#graph.find(request) ?? this.#made(request, nowMs)
    if (edge === undefined) {
      this.lost++
      return
    }
    const { failed, clientNs, serverNs } = request
    seenAt(edge.from, request.clientAddress)
    seenAt(edge.to, request.serverAddress)
    if (edge.probe) edge.probe = request.probe
    const ns = serverNs >= 0 ? serverNs : clientNs
    const bucket = ns >= 0 ? bucketOf(ns) : -1
    const records = this.#records
    if (edge.slot === records.newest && records.count(edge.record, failed, bucket)) return
    // This count keeps the edge from being evicted below.
    edge.records++
    edge.record = records.open(edge.number)
    if (edge.record >= 0) {
      edge.slot = records.newest
      records.count(edge.record, failed, bucket)
      return
    }
    edge.slot = -1
    edge.records--
    if (edge.records === 0) this.#graph.remove(edge)
    this.lost++
  }

  /** Totals of each edge in about the last `seconds`, as far as the window and its memory go back. */
  sums(seconds: number): EdgeSum[] {
    const nowMs = this.#now()
    this.#turn(nowMs)
    const { newest, oldest } = this.#records
    const first = Math.max(oldest, Math.min(newest, Math.round((nowMs - seconds * 1000) / slotMs)))
    const sinceMs = Math.max(this.#startedMs, first * slotMs)
    const found: (EdgeSum | undefined)[] = []
    for (let slot = first; slot <= newest; slot++)
      this.#records.each(slot, (series, count, failed, buckets, at) => {
        let sum = found[series]
        if (sum === undefined) {
          const edge = this.#graph.edges[series]!
          const passedMs = nowMs - Math.max(sinceMs, edge.firstMs)
          const durations = new Float64Array(durationBuckets)
          sum = { edge, count: 0, failed: 0, seconds: Math.max(1, passedMs / 1000), durations }
          found[series] = sum
        }
        sum.count += count
        sum.failed += failed
        for (let i = 0; i < durationBuckets; i++) sum.durations[i]! += buckets[at + i]!
      })
    return found.filter(sum => sum !== undefined)
  }

  /**
   * Calls `visit` for each slot of the window, oldest first; the last one is still open. `groupOf` assigns each edge to
   * one of `groups` groups; a negative one excludes it.
   */
  history(groups: number, groupOf: (edge: Edge) => number, visit: (column: EdgeColumn) => void): void {
    const nowMs = this.#now()
    this.#turn(nowMs)
    const { newest, oldest } = this.#records
    const of = this.#graph.edges.map(edge => (edge === undefined ? -1 : groupOf(edge)))
    const column: EdgeColumn = {
      fromMs: 0,
      lengthMs: 0,
      counts: new Float64Array(groups),
      failed: new Float64Array(groups),
      durations: new Float64Array(groups * durationBuckets),
    }
    for (let slot = oldest; slot <= newest; slot++) {
      const beginMs = Math.max(this.#startedMs, slot * slotMs)
      column.fromMs = slot * slotMs
      column.lengthMs = Math.max(0, Math.min(nowMs, (slot + 1) * slotMs) - beginMs)
      column.counts.fill(0)
      column.failed.fill(0)
      column.durations.fill(0)
      this.#records.each(slot, (series, count, failed, buckets, at) => {
        const group = of[series]!
        if (group < 0) return
        column.counts[group]! += count
        column.failed[group]! += failed
        const base = group * durationBuckets
        for (let i = 0; i < durationBuckets; i++) column.durations[base + i]! += buckets[at + i]!
      })
      visit(column)
    }
  }

  #made(request: RequestEdge, nowMs: number): Edge | undefined {
    const made = this.#graph.make(request, nowMs)
    if (made !== undefined) return made
    const { client, server, protocol, serverPort } = request
    this.#leftOut.add(serviceName(client), serviceName(server), typeof server === 'string' ? serverPort : 0)
    this.#foldable = true
    if (typeof client === 'string')
      return typeof server === 'string' ? undefined : this.#graph.others(true, server, protocol, nowMs)
    return typeof server === 'string' ? this.#graph.others(false, client, protocol, nowMs) : undefined
  }

  /** If the clock is set back a little, the slot lasts longer. */
  #turn(nowMs: number): void {
    const records = this.#records
    const slot = Math.floor(nowMs / slotMs)
    // A start in the future would make the elapsed time zero, and every rate far too high.
    if (nowMs < this.#startedMs) this.#startedMs = nowMs
    if (slot === records.newest || slot === records.newest - 1) return
    records.turnTo(slot)
    if (slot - this.#leftOutSlot >= records.slots || slot < this.#leftOutSlot) {
      this.#leftOut.clear()
      this.#leftOutSlot = slot
    }
    if (this.#foldable) this.#fold(nowMs)
  }

  /** Makes room for new callers: folds idle addresses into the shared edge where there are too many. */
  #fold(nowMs: number): void {
    this.#foldable = false
    const graph = this.#graph
    const isFull = ({ from, to }: Edge): boolean =>
      (from.resource === undefined && to.callers >= mostForeign) ||
      (to.resource === undefined && from.callees >= mostForeign)
    const names = new Map<number, number>()
    const idle = this.#records.newest - idleSlots
    for (const edge of [...graph.edges]) {
      if (edge === undefined || edge.slot > idle || isOthers(edge) || !(graph.crowded || isFull(edge)))
        continue
      const others = graph.othersOf(edge, nowMs)
      if (others === undefined) continue
      names.set(edge.number, others.number)
      others.records += edge.records
      others.probe &&= edge.probe
      others.firstMs = Math.min(others.firstMs, edge.firstMs)
      edge.records = 0
      this.#leftOut.add(edge.from.name, edge.to.name, edge.to.port)
    }
    if (names.size === 0) return
    this.#records.rename(names)
    for (const number of names.keys()) graph.remove(graph.edges[number]!)
  }
}

/** Notes the address of a service; empty: unknown. */
function seenAt(node: EdgeNode, address: string): void {
  if (address !== '' && address !== node.address && node.resource !== undefined) node.at(address)
}

/** Whether it is a shared edge of addresses without room. */
function isOthers({ from, to }: Edge): boolean {
  return isRest(from) || isRest(to)
}

/** The node of addresses without room. */
export function isRest({ name, resource }: EdgeNode): boolean {
  return name === '' && resource === undefined
}
