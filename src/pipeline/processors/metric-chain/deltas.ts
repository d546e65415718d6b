import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import { mergePairs } from '../../../foundation/lib/exponential-buckets.ts'
import { counted } from '../../../foundation/lib/small-tables.ts'
import type { Attributes } from '../../../foundation/model/attributes.ts'
import type { Metric } from '../../../foundation/model/metric.ts'
import { type Resource, type Scope, scopeIdentity } from '../../../foundation/model/resource.ts'
import { SeriesHash } from '../limit-series/series-hash.ts'
import type { ScratchPoint } from './scratch.ts'

type Kind = Metric['kind']

/** Of the last point of a series, in memory. */
const lastBytes = 250

/**
 * Turns cumulative points into what came since the point before, series by series. A series is told from others by what
 * its source said, so that those which processors made look alike stay apart.
 */
export class Deltas {
  readonly maxSeries: number
  readonly #hash: SeriesHash
  readonly #last: BoundedMap<number, Last>
  /** A series that is not known and began then or later is new: nobody has been told of any of it. */
  #sinceUs: number
  #latestUs = 0

  /** Remembers `maxSeries` at most. `sinceUs`: when this process began, in microseconds since the Unix epoch. */
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

  /** Resources may be other instances from here on: what is not known then need not be new. */
  resume(): void {
    this.#sinceUs = Math.max(this.#sinceUs, this.#latestUs)
  }

  begin(resource: Resource, scope: Scope, metric: Metric): void {
    this.#hash.begin(resource, scopeIdentity(scope), metric.name)
  }

  /**
   * Changes a point, whose source gave it these attributes, to the difference. False: it is the first that is known of
   * a series that began before, and tells no difference.
   */
  convert(kind: Kind, attributes: Attributes, point: ScratchPoint): boolean {
    // What is no number, or infinite, cannot be the base of a difference.
    if (kind === 'sum' && !point.noValue && !Number.isFinite(point.value)) return true
    const hash = this.#hash
    hash.of(attributes)
    const key = (hash.high & 0x1fffff) * 2 ** 32 + hash.low
    if (point.noValue) {
      // The series ended: what comes later under its name begins anew.
      this.#last.delete(key)
      return true
    }
    this.#latestUs = Math.max(this.#latestUs, point.timeUs)
    const last = this.#last.get(key)
    if (last === undefined) return this.#first(key, kind, point)
    const { timeUs } = last
    const { startUs } = point
    const beganAnew = startUs > last.startUs && startUs >= timeUs
    if (!beganAnew && last.isBase(kind, point)) {
      last.subtractFrom(kind, point)
      point.startUs = timeUs
    } else {
      last.remember(kind, point)
      point.startUs = Math.max(startUs, timeUs)
    }
    // A clock that was set back must not make an interval that ends before it begins.
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

/** What a series said last. */
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

  /** Whether a point can be the same series going on: nothing in it has become less. */
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

  /** Remembers a point and takes from it what was remembered before, of which it must be a continuation. */
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
    // They are of all time, and nobody knows those of the interval.
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

  /** Whether none of the buckets counts more than the same one of `counts`, the first of which has index `offset`. */
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
