import { ownText } from './span-origins.ts'

/** Why a trace is kept longer than others, by ascending priority. */
export const Interest = { none: 0, example: 1, slow: 2, error: 3 } as const
export type Interest = (typeof Interest)[keyof typeof Interest]

const sliceMs = 10_000
/** Limits per slice: further errors and examples are of no interest. */
const mostErrors = 20
const mostExamples = 1
/** Number of the slowest, in a slice and in the window. */
const slowest = 4
/** With fewer spans in a slice, none of them counts as slow. */
const leastSpans = 20
/** Idle slices after which a route may be replaced. */
const idleSlices = 6
/** Maximum number of services with a route of the same name. */
const mostServices = 64
/** Limit in UTF-16 code units; longer names are not routes. */
const mostNameLength = 255
/** Memory of a route besides its numbers and texts. */
const objectBytes = 160

// Numbers of a route:
const sliceAt = 0
const spansAt = 1
const errorsAt = 2
const examplesAt = 3
/** The fourth-longest duration of the previous slice. */
const barAt = 4
/** The longest durations of this slice, descending. */
const sliceTopAt = 5
/** The longest durations of the window in any order, and their times. */
const topAt = sliceTopAt + slowest
const topTimeAt = topAt + slowest
const figures = topTimeAt + slowest

interface Route {
  readonly service: string
  readonly name: string
  readonly number: number
  /** Next route of the same name, of another service. */
  next: Route | undefined
}

/** Statistics of spans by service and name, as far as needed to decide which are of interest. */
export class SpanRoutes {
  readonly #byName = new Map<string, Route>()
  readonly #free: number[] = []
  readonly #figures: Float64Array
  readonly #most: number
  readonly #windowMs: number
  /** Maximum and current memory of routes, besides their numbers. */
  readonly #maxBytes: number
  #bytes = 0
  /** Number 0 stands for all routes without room. */
  #size = 1
  #sweptSlice = 0

  constructor({ maxBytes, windowMs }: { readonly maxBytes: number; readonly windowMs: number }) {
    // Assumes names of some 60 letters.
    this.#most = Math.max(2, Math.floor(maxBytes / (figures * 8 + objectBytes + 128)))
    this.#windowMs = windowMs
    this.#figures = new Float64Array(this.#most * figures)
    this.#maxBytes = maxBytes - this.#figures.byteLength
  }

  get bytes(): number {
    return this.#figures.byteLength + this.#bytes
  }

  /** The route number of a span. */
  of(service: string, name: string, nowMs: number): number {
    let route = this.#byName.get(name)
    for (let looked = 0; route !== undefined && route.service !== service; route = route.next)
      if (++looked === mostServices) return 0
    return route === undefined ? this.#enter(service, name, nowMs) : route.number
  }

  /** Why a span is of interest. Only entry spans become examples. */
  rank(route: number, durationMs: number, failed: boolean, isEntry: boolean, nowMs: number): Interest {
    const values = this.#figures
    const base = route * figures
    const slice = Math.floor(nowMs / sliceMs)
    if (values[base + sliceAt] !== slice) this.#begin(base, slice)
    const spans = ++values[base + spansAt]!
    const isTop = this.#noteTop(base, durationMs, nowMs)
    const isSliceTop = this.#noteSliceTop(base, durationMs) && spans > leastSpans
    if (failed && ++values[base + errorsAt]! <= mostErrors) return Interest.error
    if (isTop || (isSliceTop && durationMs > values[base + barAt]!)) return Interest.slow
    if (isEntry && ++values[base + examplesAt]! <= mostExamples) return Interest.example
    return Interest.none
  }

  /** Whether a span of this duration (as a 32-bit float) and arrival second is still among the slowest. */
  isTop(route: number, durationMs: number, second: number, nowMs: number): boolean {
    const values = this.#figures
    const base = route * figures
    for (let i = 0; i < slowest; i++) {
      const isSame =
        Math.fround(values[base + topAt + i]!) === durationMs &&
        Math.floor(values[base + topTimeAt + i]! / 1000) === second
      if (isSame && !this.#isOld(base, i, nowMs)) return true
    }
    return false
  }

  #begin(base: number, slice: number): void {
    const values = this.#figures
    const isNext = values[base + sliceAt] === slice - 1 && values[base + spansAt]! > leastSpans
    values[base + barAt] = isNext ? values[base + sliceTopAt + slowest - 1]! : 0
    values[base + sliceAt] = slice
    values[base + spansAt] = 0
    values[base + errorsAt] = 0
    values[base + examplesAt] = 0
    for (let i = 0; i < slowest; i++) values[base + sliceTopAt + i] = 0
  }

  #noteSliceTop(base: number, durationMs: number): boolean {
    const values = this.#figures
    let at = base + sliceTopAt + slowest - 1
    if (!(durationMs > values[at]!)) return false
    for (; at > base + sliceTopAt && values[at - 1]! < durationMs; at--) values[at] = values[at - 1]!
    values[at] = durationMs
    return true
  }

  #noteTop(base: number, durationMs: number, nowMs: number): boolean {
    const values = this.#figures
    let least = 0
    let leastMs = Number.POSITIVE_INFINITY
    for (let i = 0; i < slowest; i++) {
      const ms = this.#isOld(base, i, nowMs) ? -1 : values[base + topAt + i]!
      if (ms >= leastMs) continue
      leastMs = ms
      least = i
    }
    if (durationMs <= leastMs) return false
    values[base + topAt + least] = durationMs
    values[base + topTimeAt + least] = nowMs
    return true
  }

  #isOld(base: number, i: number, nowMs: number): boolean {
    return this.#figures[base + topTimeAt + i]! <= nowMs - this.#windowMs
  }

  #enter(service: string, name: string, nowMs: number): number {
    if (name.length > mostNameLength) return 0
    const bytes = bytesOf(service, name)
    if (!this.#hasRoom(bytes)) this.#sweep(Math.floor(nowMs / sliceMs))
    if (!this.#hasRoom(bytes)) return 0
    const number = this.#free.pop() ?? this.#size++
    this.#bytes += bytes
    this.#figures.fill(0, number * figures, (number + 1) * figures)
    const own = ownText(name, mostNameLength)
    this.#byName.set(own, { service, name: own, number, next: this.#byName.get(own) })
    return number
  }

  #hasRoom(bytes: number): boolean {
    return this.#bytes + bytes <= this.#maxBytes && (this.#free.length > 0 || this.#size < this.#most)
  }

  /** Evicts idle routes, once per slice. */
  #sweep(slice: number): void {
    if (slice === this.#sweptSlice) return
    this.#sweptSlice = slice
    for (const [name, first] of this.#byName) {
      let kept: Route | undefined
      for (let route: Route | undefined = first; route !== undefined; ) {
        const { next, service }: Route = route
        if (Math.abs(slice - this.#figures[route.number * figures + sliceAt]!) <= idleSlices) {
          route.next = kept
          kept = route
        } else {
          this.#free.push(route.number)
          this.#bytes -= bytesOf(service, name)
        }
        route = next
      }
      if (kept === undefined) this.#byName.delete(name)
      else if (kept !== first) this.#byName.set(name, kept)
    }
  }
}

function bytesOf(service: string, name: string): number {
  return objectBytes + 2 * (service.length + name.length)
}
