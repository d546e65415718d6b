import type { Interest } from './span-routes.ts'

const ways = 4
// An entry, in words: the random half of the trace ID, interest and route, time, the duration as a float, and how many
// of its spans were retained.
const stride = 6
const kindAt = 2
const timeAt = 3
const durationAt = 4
const spansAt = 5

/**
 * Why traces are of interest, by the last eight bytes of their IDs, which are random. A table of fixed size: a full
 * bucket evicts the entry of lowest priority, then the oldest.
 */
export class TraceInterest {
  readonly #words: Uint32Array
  readonly #floats: Float32Array
  readonly #mask: number
  readonly #windowMs: number
  readonly #mostSpans: number

  /** Room for `most` traces, each with up to `mostSpans` retained spans. */
  constructor({ most, mostSpans, windowMs }: { most: number; mostSpans: number; windowMs: number }) {
    const buckets = 2 ** Math.floor(Math.log2(Math.max(1, most / ways)))
    this.#mask = buckets - 1
    this.#words = new Uint32Array(buckets * ways * stride)
    this.#floats = new Float32Array(this.#words.buffer)
    this.#windowMs = windowMs
    this.#mostSpans = mostSpans
  }

  get bytes(): number {
    return this.#words.byteLength
  }

  /** Marks a trace as interesting because of a span with this route and duration. */
  mark(a: number, b: number, interest: Interest, route: number, durationMs: number, nowMs: number): void {
    const words = this.#words
    const known = this.find(a, b)
    const kind = (route << 2) | interest
    const now = Math.floor(nowMs / 1000) >>> 0
    if (known >= 0) {
      const before = words[known + kindAt]! & 3
      if (interest < before || (interest === before && durationMs <= this.#floats[known + durationAt]!))
        return
    }
    const at = known >= 0 ? known : this.#vacate(a, b, now)
    if (known < 0) words[at + spansAt] = 0
    words[at] = a
    words[at + 1] = b
    words[at + kindAt] = kind
    words[at + timeAt] = now
    this.#floats[at + durationAt] = durationMs
  }

  /** The entry of a trace; -1: none. */
  find(a: number, b: number): number {
    const words = this.#words
    const from = this.#bucket(a, b)
    for (let at = from; at < from + ways * stride; at += stride)
      if (words[at] === a && words[at + 1] === b && words[at + kindAt] !== 0) return at
    return -1
  }

  interest(entry: number): Interest {
    return (this.#words[entry + kindAt]! & 3) as Interest
  }

  route(entry: number): number {
    return this.#words[entry + kindAt]! >>> 2
  }

  durationMs(entry: number): number {
    return this.#floats[entry + durationAt]!
  }

  /** Counts a retained span; false: over the limit. */
  takesSpan(entry: number): boolean {
    return ++this.#words[entry + spansAt]! <= this.#mostSpans
  }

  /** When it was marked, in seconds since the Unix epoch. */
  second(entry: number): number {
    return this.#words[entry + timeAt]!
  }

  #bucket(a: number, b: number): number {
    const hash = Math.imul(a ^ Math.imul(b, 0x9e3779b1), 0x85ebca6b)
    return ((hash ^ (hash >>> 15)) & this.#mask) * ways * stride
  }

  #vacate(a: number, b: number, now: number): number {
    const words = this.#words
    const from = this.#bucket(a, b)
    let found = from
    let worth = Number.POSITIVE_INFINITY
    for (let at = from; at < from + ways * stride; at += stride) {
      const age = now - words[at + timeAt]!
      const isOver = words[at + kindAt] === 0 || age * 1000 > this.#windowMs
      const own = isOver ? Number.NEGATIVE_INFINITY : (words[at + kindAt]! & 3) * 2 ** 33 - age
      if (own >= worth) continue
      worth = own
      found = at
    }
    return found
  }
}
