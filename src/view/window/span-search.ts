// Searches the kept spans. No index: it costs something only during a search.

import { isAscii } from 'node:buffer'
import { SpanKind } from '../../foundation/model/span.ts'
import type { Origin, SpanOrigins } from './span-origins.ts'
import { SpanRecord, type StoredSpan } from './span-record.ts'
import type { SpanRing } from './span-ring.ts'
import { Interest } from './span-routes.ts'
import type { TraceInterest } from './trace-interest.ts'
import { mostRecords, TraceTable } from './trace-table.ts'

/** The data to search. */
export interface SpanStore {
  /** The one with the newest spans first. */
  readonly rings: readonly SpanRing[]
  readonly origins: SpanOrigins
  readonly interest: TraceInterest
  readonly nowMs: number
  /** Spans that ended before are hidden. */
  readonly sinceUs: number
}

export interface TraceSearch {
  /** Traces with a span of this service; empty: any. */
  readonly service: string
  /** Only traces with a failed span. */
  readonly errors: boolean
  /**
   * Only traces with a span (of the service) of such a duration; 0: no bound. If the trace has spans that
   * `LatencyHeatmap` counts, only those count.
   */
  readonly minMs: number
  readonly maxMs: number
  /** Range of the trace's start, in milliseconds before now; 0: no bound. */
  readonly sinceMs: number
  readonly untilMs: number
  /** Searched in names and attribute values, case-insensitive; empty: no filter. */
  readonly text: string
  /** A text or attribute value as users may see it: hidden parts cannot be found. */
  readonly shown: (text: string, key?: string) => string
  readonly sort: 'slow' | 'new' | 'errors'
  readonly limit: number
}

export interface FoundTrace {
  readonly traceId: string
  /** Name of its first span. */
  readonly name: string
  readonly service: string
  /** All services, that of the first span first; at most 32. */
  readonly services: readonly string[]
  readonly startUs: number
  readonly endUs: number
  readonly spans: number
  readonly errors: number
  readonly interest: Interest
}

export interface FoundTraces {
  readonly traces: readonly FoundTrace[]
  /** Matching traces, among those that were checked. */
  readonly matched: number
  /** Visible spans. */
  readonly spans: number
}

export interface StoredTrace {
  readonly traceId: string
  readonly startUs: number
  readonly endUs: number
  readonly origins: readonly Origin[]
  /** Earliest first. */
  readonly spans: readonly (StoredSpan & { /** Index into `origins`. */ readonly origin: number })[]
  /** Number of spans omitted by the limit. */
  readonly leftOut: number
}

/** Spans with the same name. */
export interface SpanRoute {
  readonly name: string
  readonly spans: number
  readonly errors: number
  readonly slowestMs: number
  /** Trace of the slowest span. */
  readonly traceId: string
}

/** Time limit of a text search. */
const mostSearchMs = 20
const mostServices = 32
/** Maximum number of distinct routes per service. */
const mostRoutes = 1000

export function findTraces(store: SpanStore, search: TraceSearch): FoundTraces {
  const table = new TraceTable(store.rings, store.sinceUs)
  const matches = new Matches(store, table, search)
  const chosen: number[] = []
  // Roughly newest first, as in the table.
  for (let trace = 0; trace < table.traces && !matches.isLate; trace++)
    if (matches.matches(trace) && (search.text === '' || matches.hasText(trace))) chosen.push(trace)
  const first = firstOf(chosen, search.limit, rankOf(table, search.sort))
  return {
    traces: first.map(trace => described(store, table, trace)),
    matched: chosen.length,
    spans: table.spans,
  }
}

export function readTrace(store: SpanStore, id: string, mostSpans: number): StoredTrace | undefined {
  if (!/^[0-9a-f]{32}$/.test(id)) return undefined
  const wanted = wordsOf(id)
  const record = new SpanRecord()
  const found: { ring: SpanRing; at: number; startUs: number }[] = []
  let startUs = Number.POSITIVE_INFINITY
  let endUs = 0
  for (const ring of store.rings)
    ring.each(at => {
      record.of(ring, at)
      if (record.trace(3) !== wanted[3] || record.trace(2) !== wanted[2]) return
      if (record.trace(1) !== wanted[1] || record.trace(0) !== wanted[0]) return
      if (record.endUs < store.sinceUs) return
      found.push({ ring, at, startUs: record.startUs })
      startUs = Math.min(startUs, record.startUs)
      endUs = Math.max(endUs, record.endUs)
    })
  if (found.length === 0) return undefined
  const shown = found.sort((a, b) => a.startUs - b.startUs).slice(0, mostSpans)
  const indexes = new Map<number, number>()
  const spans = shown.map(({ ring, at }) => {
    const { origin } = record.of(ring, at)
    if (!indexes.has(origin)) indexes.set(origin, indexes.size)
    return { ...record.read(), origin: indexes.get(origin)! }
  })
  return {
    traceId: id,
    startUs,
    endUs,
    origins: [...indexes.keys()].map(number => store.origins.at(number)),
    spans,
    leftOut: found.length - shown.length,
  }
}

export function routesOf(store: SpanStore, service: string, most: number): SpanRoute[] {
  const answered = gatherRoutes(
    store,
    service,
    ({ kind }) => kind === SpanKind.server || kind === SpanKind.consumer,
  )
  const routes = answered.size > 0 ? answered : gatherRoutes(store, service, () => true)
  return [...routes]
    .sort(([, a], [, b]) => b.spans - a.spans)
    .slice(0, most)
    .map(([name, { spans, errors, slowestUs, traceId }]) => ({
      name,
      spans,
      errors,
      slowestMs: slowestUs / 1000,
      traceId,
    }))
}

interface Gathered {
  spans: number
  errors: number
  slowestUs: number
  traceId: string
}

function gatherRoutes(
  { rings, origins, sinceUs }: SpanStore,
  service: string,
  counts: (record: SpanRecord) => boolean,
): Map<string, Gathered> {
  const record = new SpanRecord()
  const routes = new Map<string, Gathered>()
  for (const ring of rings)
    ring.each(at => {
      record.of(ring, at)
      if (origins.at(record.origin).service !== service || record.endUs < sinceUs || !counts(record)) return
      const { name } = record
      let route = routes.get(name)
      if (route === undefined) {
        if (routes.size === mostRoutes) return
        route = { spans: 0, errors: 0, slowestUs: -1, traceId: '' }
        routes.set(name, route)
      }
      route.spans++
      if (record.failed) route.errors++
      const us = Math.max(0, record.endUs - record.startUs)
      if (us <= route.slowestUs) return
      route.slowestUs = us
      route.traceId = record.traceId
    }, mostRecords)
  return routes
}

/** Which traces match a search. */
class Matches {
  readonly #store: SpanStore
  readonly #table: TraceTable
  readonly #search: TraceSearch
  readonly #record = new SpanRecord()
  readonly #text: string
  /** Numbers can match too, but are not stored as texts. */
  readonly #isNumber: boolean
  readonly #encoding: 'latin1' | 'utf8'
  #lateMs = Number.POSITIVE_INFINITY

  constructor(store: SpanStore, table: TraceTable, search: TraceSearch) {
    this.#store = store
    this.#table = table
    this.#search = search
    this.#text = search.text.toLowerCase()
    this.#encoding = isAscii(Buffer.from(this.#text)) ? 'latin1' : 'utf8'
    this.#isNumber = /^[\d.-]+$/.test(search.text)
  }

  /** Matches all criteria but the text. */
  matches(trace: number): boolean {
    const { service, errors, minMs, maxMs, sinceMs, untilMs } = this.#search
    const table = this.#table
    const ageMs = this.#store.nowMs - table.startUs[trace]! / 1000
    if ((sinceMs !== 0 && ageMs > sinceMs) || (untilMs !== 0 && ageMs < untilMs)) return false
    if (errors && table.errors[trace] === 0) return false
    return (service === '' && minMs === 0 && maxMs === 0) || this.#hasSpan(trace)
  }

  /** The text search has reached its time limit. */
  get isLate(): boolean {
    return this.#lateMs !== Number.POSITIVE_INFINITY && performance.now() > this.#lateMs
  }

  hasText(trace: number): boolean {
    const table = this.#table
    if (this.#lateMs === Number.POSITIVE_INFINITY) this.#lateMs = performance.now() + mostSearchMs
    for (let i = table.first[trace]!; i >= 0 && !this.isLate; i = table.next[i]!) {
      const record = this.#at(i)
      if (this.#mayHaveText(record) && this.#showsText(record)) return true
    }
    return false
  }

  /** Rules out most records with one look at all their texts. */
  #mayHaveText(record: SpanRecord): boolean {
    return this.#isNumber || record.allTexts(this.#encoding).toLowerCase().includes(this.#text)
  }

  #showsText(record: SpanRecord): boolean {
    const { shown } = this.#search
    const matches = (text: string, key?: string) =>
      text.toLowerCase().includes(this.#text) && shown(text, key).toLowerCase().includes(this.#text)
    const { name, statusMessage, attributes } = record.read()
    if (matches(name) || matches(statusMessage)) return true
    for (const key in attributes) {
      const value = attributes[key]!
      if (typeof value === 'object' ? value.some(each => matches(each, key)) : matches(String(value), key))
        return true
    }
    return false
  }

  /** Whether it has a span of the service within the bounds. */
  #hasSpan(trace: number): boolean {
    const { service, minMs, maxMs } = this.#search
    const table = this.#table
    let hasEntry = false
    let inBounds = false
    for (let i = table.first[trace]!; i >= 0; i = table.next[i]!) {
      const record = this.#at(i)
      if (service !== '' && this.#store.origins.at(record.origin).service !== service) continue
      if (hasEntry && !record.isEntry) continue
      if (record.isEntry && !hasEntry) {
        hasEntry = true
        inBounds = false
      }
      const ms = (record.endUs - record.startUs) / 1000
      inBounds ||= ms >= minMs && (maxMs === 0 || ms <= maxMs)
    }
    return inBounds
  }

  #at(i: number): SpanRecord {
    const table = this.#table
    return this.#record.of(this.#store.rings[table.ring[i]!]!, table.at[i]!)
  }
}

/** Sort key, descending. */
function rankOf(table: TraceTable, sort: TraceSearch['sort']): (trace: number) => number {
  if (sort === 'slow') return trace => table.endUs[trace]! - table.startUs[trace]!
  if (sort === 'new') return trace => table.startUs[trace]!
  return trace => (table.errors[trace]! > 0 ? table.startUs[trace]! : table.startUs[trace]! - 1e16)
}

/** The first traces in sort order. Sorts no more than necessary. */
function firstOf(traces: readonly number[], limit: number, rank: (trace: number) => number): number[] {
  const ranks = new Float64Array(traces.length)
  for (let i = 0; i < ranks.length; i++) ranks[i] = rank(traces[i]!)
  ranks.sort()
  const least = ranks[Math.max(0, ranks.length - limit)] ?? 0
  return traces
    .filter(trace => rank(trace) >= least)
    .sort((a, b) => rank(b) - rank(a))
    .slice(0, limit)
}

function described({ rings, origins, interest }: SpanStore, table: TraceTable, trace: number): FoundTrace {
  const record = new SpanRecord()
  const at = (i: number) => record.of(rings[table.ring[i]!]!, table.at[i]!)
  const services = new Set<string>()
  let first = table.first[trace]!
  let answering = -1
  for (let i = first; i >= 0; i = table.next[i]!) {
    if (isEarlier(at(i), rings, table, first)) first = i
    const answers = at(i).kind === SpanKind.server
    if (answers && (answering < 0 || isEarlier(record, rings, table, answering))) answering = i
  }
  services.add(origins.at(at(first).origin).service)
  for (let i = table.first[trace]!; i >= 0 && services.size < mostServices; i = table.next[i]!)
    services.add(origins.at(at(i).origin).service)
  services.delete('')
  // Client spans are named by method only, server spans by route.
  const isClient = at(first).kind === SpanKind.client
  const { name } = at(isClient && answering >= 0 ? answering : first)
  at(first)
  const entry = interest.find(record.trace(2), record.trace(3))
  return {
    traceId: record.traceId,
    name,
    service: origins.at(record.origin).service,
    services: [...services],
    startUs: table.startUs[trace]!,
    endUs: table.endUs[trace]!,
    spans: table.count[trace]!,
    errors: table.errors[trace]!,
    interest: interestOf(table, trace, entry < 0 ? record.interest : interest.interest(entry)),
  }
}

/** The table of interesting traces is bounded, and so are its errors: failed spans are checked directly. */
function interestOf(table: TraceTable, trace: number, known: Interest): Interest {
  return table.errors[trace]! > 0 ? Interest.error : known === Interest.error ? Interest.none : known
}

/** Whether a span sorts before another: it began earlier, or else is the root, or else took longer. */
function isEarlier(
  record: SpanRecord,
  rings: readonly SpanRing[],
  table: TraceTable,
  other: number,
): boolean {
  const { startUs, endUs, isRoot } = record
  const than = new SpanRecord().of(rings[table.ring[other]!]!, table.at[other]!)
  if (startUs !== than.startUs) return startUs < than.startUs
  return isRoot === than.isRoot ? endUs > than.endUs : isRoot
}

function wordsOf(id: string): Uint32Array {
  const bytes = new Uint8Array(16)
  bytes.set(Buffer.from(id, 'hex'))
  return new Uint32Array(bytes.buffer)
}
