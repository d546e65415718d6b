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

/** Less memory than this is taken for this. */
const leastBytes = 384 * 1024

export interface SpanWindowOptions {
  /** Memory that it takes at most, 384 KiB at the least. */
  readonly maxBytes: number
  /** How far it looks back. */
  readonly windowMs: number
  /** Milliseconds since the Unix epoch. */
  readonly now: () => number
}

/**
 * The spans of the last while, in a fixed number of bytes. All of them go through a ring for the young ones. Those that
 * fall out of it are gone, unless their trace is of interest: it failed, it is among the slowest of its kind, or it is an
 * example of it. These have a ring each, so that a flood of one sort takes nothing from the others.
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
  /** What fell out of the ring for slow ones and still is among the slowest of the window. */
  readonly #slowest: SpanRing
  readonly #errors: SpanRing
  /** Whose turn it is to give way where there is no room for another origin; each other time it is the young ones'. */
  readonly #old: readonly SpanRing[]
  #turn = 0
  /** Nothing is moved: what has to go is gone. */
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

  /** Memory that it takes now. */
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

  /** Spans that are kept, also those that are older than the window and were not overwritten yet. */
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

  /** Names of the services of which there are spans. */
  services(): string[] {
    return this.#origins.services()
  }

  find(search: TraceSearch): FoundTraces {
    return findTraces(this.#store(), search)
  }

  /** What is kept of a trace, by 32 hexadecimal digits; undefined: nothing. */
  trace(id: string, mostSpans: number): StoredTrace | undefined {
    return readTrace(this.#store(), id, mostSpans)
  }

  /**
   * The spans of a service by name, the most frequent first: those of requests that it answered, or of all where it
   * answered none.
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
    // What has to go there for it moves before it does.
    const place = to.place()
    from.bytes.copy(to.bytes, place, at, at + length)
    to.close(place, length)
  }

  /** Where a record goes that falls out of a ring; undefined: nowhere. */
  #nextRing(from: SpanRing, record: SpanRecord): SpanRing | undefined {
    const nowMs = this.#now()
    if (from === this.#errors || from === this.#slowest) return undefined
    if (record.endUs < (nowMs - this.#windowMs) * 1000) return undefined
    const entry = this.#interest.find(record.trace(2), record.trace(3))
    const interest = entry < 0 ? record.interest : this.#interest.interest(entry)
    // Whoever puts everything into one trace takes no more than a part of what others need, too.
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
