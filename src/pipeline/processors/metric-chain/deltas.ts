import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import { mergePairs } from '../../../foundation/lib/exponential-buckets.ts'
import { counted } from '../../../foundation/lib/small-tables.ts'
import type { Attributes } from '../../../foundation/model/attributes.ts'
import type { Metric } from '../../../foundation/model/metric.ts'
import { type Resource, type Scope, scopeIdentity } from '../../../foundation/model/resource.ts'
import { SeriesHash } from '../limit-series/series-hash.ts'
import type { ScratchPoint } from './scratch.ts'

type Kind = Metric['kind']

/** Memory of the last point of a series, in bytes. */
const lastBytes = 250

/**
 * Converts cumulative points to differences from the previous point of their series. Series are identified by the
 * attributes from their source, so that those that processors made equal stay distinct.
 */
export class Deltas {
  readonly maxSeries: number
  readonly #hash: SeriesHash
  readonly #last: BoundedMap<number, Last>
  /** An unknown series that began at this time or later is new: none of its value was reported before. */
  #sinceUs: number
  #latestUs = 0

  /** Remembers at most `maxSeries`. `sinceUs`: start of this process, in microseconds since the Unix epoch. */
  constructor(maxSeries: number, sinceUs: number, before?: Deltas) {
    this.maxSeries = maxSeries
    this.#hash = before === undefined ? new SeriesHash('identity') : before.#hash
    this.#sinceUs = before === undefined ? sinceUs : Math.max(sinceUs, before.#sinceUs, before.#latestUs)
    this.#last = counted(
      new BoundedMap(
        maxSeries,
        (_, { timeUs }) => {
          this.#sinceUs = Math.max(this.#sinceUs, timeUs)
        },
        () => lastBytes,
      ),
    )
    if (before === undefined) return
    before.#last.forEach((last, key) => {
      this.#last.set(key, last)
    })
  }

  /** Resources may be other instances from now on, so an unknown series is not necessarily new. */
  resume(): void {
    this.#sinceUs = Math.max(this.#sinceUs, this.#latestUs)
  }

  begin(resource: Resource, scope: Scope, metric: Metric): void {
    this.#hash.begin(resource, scopeIdentity(scope), metric.name)
  }

  /**
   * Changes a point to a difference; `attributes` are those from its source. False for the first known point of a
   * series that began earlier: there is no difference yet.
   */
  convert(kind: Kind, attributes: Attributes, point: ScratchPoint): boolean {
    // NaN and infinity cannot be the base of a difference.
    if (kind === 'sum' && !point.noValue && !Number.isFinite(point.value)) return true
    const hash = this.#hash
    hash.of(attributes)
    const key = (hash.high & 0x1fffff) * 2 ** 32 + hash.low
    if (point.noValue) {
      // The series ended: a later one with its name is new.
      this.#last.delete(key)
      return true
    }
    this.#latestUs = Math.max(this.#latestUs, point.timeUs)
    const last = this.#last.get(key)
    if (last === undefined) return this.#first(key, kind, point)
    const { timeUs } = last
    const { startUs } = point
    const restarted = startUs > last.startUs && startUs >= timeUs
    if (!restarted && last.isBase(kind, point)) {
      last.subtractFrom(kind, point)
      point.startUs = timeUs
    } else {
      last.remember(kind, point)
      point.startUs = Math.max(startUs, timeUs)
    }
    // After the clock was set back, an interval must not end before it starts.
    point.startUs = Math.min(point.startUs, point.timeUs)
    return true
  }

  #first(key: number, kind: Kind, point: ScratchPoint): boolean {
    const isNew = point.startUs > 0 && point.startUs >= this.#sinceUs
    const last = new Last()
    last.remember(kind, point)
    this.#last.set(key, last)
    return isNew
  }
}

const empty = new Float64Array(0)

/** Last point of a series. */
class Last {
  startUs = 0
  timeUs = 0
  #kind: Kind = 'sum'
  #value = 0
  #count = 0
  #sum: number | undefined = 0
  #scale = 0
  #zeroCount = 0
  #offset = 0
  #buckets: Float64Array = empty
  #length = 0

  remember(kind: Kind, point: ScratchPoint): void {
    this.#kind = kind
    this.startUs = point.startUs
    this.timeUs = point.timeUs
    this.#value = point.value
    this.#count = point.count
    this.#sum = point.sum
    this.#offset = 0
    if (kind === 'histogram') this.#keep(point.buckets)
    if (kind !== 'exponential_histogram') return
    this.#scale = point.scale
    this.#zeroCount = point.zeroCount
    this.#offset = point.positive.offset
    this.#keep(point.positive.counts)
  }

  /** Whether a point can continue the series: none of its counts decreased. */
  isBase(kind: Kind, point: ScratchPoint): boolean {
    if (kind !== this.#kind) return false
    if (kind === 'sum') return point.value >= this.#value
    if (point.count < this.#count) return false
    if (kind === 'histogram')
      return point.buckets.length === this.#length && this.#isWithin(point.buckets, this.#offset)
    if (point.scale > this.#scale || point.zeroCount < this.#zeroCount) return false
    this.#lowerTo(point.scale)
    return this.#isWithin(point.positive.counts, point.positive.offset)
  }

  /** Remembers a point and subtracts the previous one from it, which it must continue. */
  subtractFrom(kind: Kind, point: ScratchPoint): void {
    const value = point.value - this.#value
    const count = point.count - this.#count
    const sum = point.sum === undefined || this.#sum === undefined ? undefined : point.sum - this.#sum
    const zeroCount = point.zeroCount - this.#zeroCount
    const { ownBuckets } = point
    if (kind === 'histogram') this.#subtract(point.buckets, this.#offset, ownBuckets)
    if (kind === 'exponential_histogram')
      this.#subtract(point.positive.counts, point.positive.offset, ownBuckets)
    this.remember(kind, point)
    point.value = value
    point.count = count
    point.sum = sum
    point.zeroCount = zeroCount
    // They cover all time; those of the interval are unknown.
    point.min = undefined
    point.max = undefined
    if (kind === 'histogram') point.buckets = ownBuckets
    if (kind !== 'exponential_histogram') return
    point.ownPositive.offset = point.positive.offset
    point.positive = point.ownPositive
  }

  #keep(counts: ArrayLike<number>): void {
    if (this.#buckets.length < counts.length) this.#buckets = new Float64Array(counts.length)
    for (let i = 0; i < counts.length; i++) this.#buckets[i] = counts[i]!
    this.#length = counts.length
  }

  #lowerTo(scale: number): void {
    for (; this.#scale > scale; this.#scale--) {
      this.#length = mergePairs(this.#buckets, this.#offset, this.#length)
      this.#offset = Math.floor(this.#offset / 2)
    }
  }

  /** Whether no bucket has a higher count than the same bucket of `counts`, whose first one has index `offset`. */
  #isWithin(counts: ArrayLike<number>, offset: number): boolean {
    const shift = this.#offset - offset
    for (let i = 0; i < this.#length; i++) {
      const before = this.#buckets[i]!
      if (before > 0 && !(before <= (counts[i + shift] ?? 0))) return false
    }
    return true
  }

  #subtract(counts: ArrayLike<number>, offset: number, into: number[]): void {
    const shift = offset - this.#offset
    into.length = 0
    for (let i = 0; i < counts.length; i++) {
      const at = i + shift
      into.push(counts[i]! - (at >= 0 && at < this.#length ? this.#buckets[at]! : 0))
    }
  }
}
