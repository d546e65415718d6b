import type { Resource } from '../../foundation/model/resource.ts'
import { type Span, StatusCode } from '../../foundation/model/span.ts'
import type { EncodedItem } from '../../pipeline/exporters/otlp/request.ts'
import { type Heatmap, LatencyHeatmap } from './latency-heatmap.ts'
import { SpanOrigins } from './span-origins.ts'
import { SpanRecord, writeSpan } from './span-record.ts'
import { SpanRing } from './span-ring.ts'
import { Interest, SpanRoutes } from './span-routes.ts'
import {
  type FoundTraces,
  findTraces,
  readTrace,
  routesOf,
  type SpanRoute,
  type StoredTrace,
  type TraceSearch,
} from './span-search.ts'
import { TraceInterest } from './trace-interest.ts'

/** Minimum memory. */
const leastBytes = 384 * 1024

export interface SpanWindowOptions {
  /** Maximum memory, at least 384 KiB. */
  readonly maxBytes: number
  /** Longest time to look back. */
  readonly windowMs: number
  /** Milliseconds since the Unix epoch. */
  readonly now: () => number
}

/**
 * The latest spans, in fixed memory. All of them enter a ring for new spans. Evicted ones are dropped, unless their
 * trace is of interest: it failed, is among the slowest of its route, or is an example of it. Each of these kinds has
 * its own ring, so that a flood of one takes nothing from the others.
 */
export class SpanWindow {
  /** Spans since the start. */
  seen = 0
  readonly #now: () => number
  readonly #windowMs: number
  readonly #heatmap: LatencyHeatmap
  readonly #routes: SpanRoutes
  readonly #interest: TraceInterest
  readonly #origins: SpanOrigins
  readonly #young: SpanRing
  readonly #examples: SpanRing
  readonly #slow: SpanRing
  /** Evicted from the ring for slow spans, but still among the slowest of the window. */
  readonly #slowest: SpanRing
  readonly #errors: SpanRing
  /**
   * Rings to evict from in turn when there is no room for another origin; every other time it is the ring of new spans.
   */
  readonly #old: readonly SpanRing[]
  #turn = 0
  /** Evicted spans are dropped, not moved to another ring. */
  #isDropping = false
  readonly #record = new SpanRecord()
  readonly #moved = new SpanRecord()

  constructor({ maxBytes, windowMs, now }: SpanWindowOptions) {
    const bytes = Math.max(leastBytes, maxBytes)
    const routeBytes = Math.floor(bytes / 16)
    const originBytes = Math.floor(bytes / 8)
    this.#now = now
    this.#windowMs = windowMs
    this.#heatmap = new LatencyHeatmap(windowMs)
    this.#routes = new SpanRoutes({ maxBytes: routeBytes, windowMs })
    this.#interest = new TraceInterest({ most: bytes / 1024, mostSpans: bytes / 12_288, windowMs })
    this.#origins = new SpanOrigins(originBytes, () => this.#dropAny())
    const left = bytes - this.#heatmap.bytes - routeBytes - this.#interest.bytes - originBytes
    const ring = (part: number) =>
      new SpanRing(Math.floor(left * part), (from, at) => this.#evicted(from, at))
    this.#young = ring(0.5)
    this.#errors = ring(0.18)
    this.#slow = ring(0.12)
    this.#slowest = ring(0.1)
    this.#examples = ring(0.1)
    this.#old = [this.#examples, this.#slow, this.#slowest, this.#errors]
  }

  /** Memory in use. */
  get bytes(): number {
    let bytes =
      this.#heatmap.bytes +
      this.#routes.bytes +
      this.#interest.bytes +
      this.#origins.bytes +
      this.#young.touchedBytes
    for (const ring of this.#old) bytes += ring.touchedBytes
    return bytes
  }

  /** Kept spans, including those older than the window and not overwritten yet. */
  get kept(): number {
    let records = this.#young.records
    for (const ring of this.#old) records += ring.records
    return records
  }

  /** Copies the bytes of a span, as they are exported. */
  add(resource: Resource, span: Span, encoded: EncodedItem): void {
    this.seen++
    const now = this.#now()
    const { startUs, endUs } = span
    const durationMs = endUs > startUs ? (endUs - startUs) / 1000 : 0
    const failed = span.status === StatusCode.error
    const ring = this.#young
    const at = ring.place()
    const origin = this.#origins.of(resource)
    const length = writeSpan(ring, at, span, encoded)
    const record = this.#record.of(ring, at)
    const { isEntry } = record
    if (isEntry) this.#heatmap.add(startUs / 1000, durationMs, failed, now)
    record.origin = origin.number
    origin.spans++
    const route = this.#routes.of(origin.service, span.name, now)
    const interest = this.#routes.rank(route, durationMs, failed, isEntry, now)
    if (interest !== Interest.none) {
      record.interest = interest
      this.#interest.mark(record.trace(2), record.trace(3), interest, route, durationMs, now)
    }
    ring.close(at, length)
  }

  heatmap(): Heatmap {
    return this.#heatmap.read(this.#now())
  }

  /** Names of the services with spans. */
  services(): string[] {
    return this.#origins.services()
  }

  find(search: TraceSearch): FoundTraces {
    return findTraces(this.#store(), search)
  }

  /** The kept spans of a trace, by 32 hexadecimal digits; undefined if there are none. */
  trace(id: string, mostSpans: number): StoredTrace | undefined {
    return readTrace(this.#store(), id, mostSpans)
  }

  /**
   * The spans of a service by name, most frequent first: server and consumer spans, or all of them if there are none.
   */
  routesOf(service: string, most: number): SpanRoute[] {
    return routesOf(this.#store(), service, most)
  }

  #store() {
    const nowMs = this.#now()
    return {
      rings: [this.#young, this.#errors, this.#slow, this.#slowest, this.#examples],
      origins: this.#origins,
      interest: this.#interest,
      nowMs,
      sinceUs: (nowMs - this.#windowMs) * 1000,
    }
  }

  #evicted(from: SpanRing, at: number): void {
    const record = this.#moved.of(from, at)
    const { origin, length } = record
    const to = this.#isDropping ? undefined : this.#nextRing(from, record)
    if (to === undefined) {
      this.#origins.release(origin)
      return
    }
    // This may evict records there, which move on first.
    const place = to.place()
    from.bytes.copy(to.bytes, place, at, at + length)
    to.close(place, length)
  }

  /** The next ring for a record evicted from a ring; undefined: drop it. */
  #nextRing(from: SpanRing, record: SpanRecord): SpanRing | undefined {
    const nowMs = this.#now()
    if (from === this.#errors || from === this.#slowest) return undefined
    if (record.endUs < (nowMs - this.#windowMs) * 1000) return undefined
    const entry = this.#interest.find(record.trace(2), record.trace(3))
    const interest = entry < 0 ? record.interest : this.#interest.interest(entry)
    // An application that puts everything into one trace gets only a share of these rings.
    if (from === this.#young && entry >= 0 && !this.#interest.takesSpan(entry)) return undefined
    if (interest === Interest.error) return this.#errors
    if (from === this.#slow) {
      if (entry < 0 || interest !== Interest.slow) return undefined
      const isTop = this.#routes.isTop(
        this.#interest.route(entry),
        this.#interest.durationMs(entry),
        this.#interest.second(entry),
        nowMs,
      )
      return isTop ? this.#slowest : undefined
    }
    if (interest === Interest.slow) return this.#slow
    return interest === Interest.example && from === this.#young ? this.#examples : undefined
  }

  /** Drops one span; false: there is none. */
  #dropAny(): boolean {
    this.#isDropping = true
    const turn = this.#turn++
    const first = (turn & 1) === 0 ? this.#young : this.#old[(turn >> 1) % this.#old.length]!
    const dropped =
      first.dropOldest() || this.#young.dropOldest() || this.#old.some(ring => ring.dropOldest())
    this.#isDropping = false
    return dropped
  }
}
