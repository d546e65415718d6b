import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import { counted } from '../../../foundation/lib/small-tables.ts'
import { Attributes } from '../../../foundation/model/attributes.ts'
import type { Metric, NumberPoint } from '../../../foundation/model/metric.ts'
import { type Resource, type Scope, scopeIdentity } from '../../../foundation/model/resource.ts'
import { noExemplars, type Point, type ScratchPoint } from './scratch.ts'

const mark = 'otel.metric.overflow'

/** Of an overflow series (OpenTelemetry metrics SDK, "Overflow attribute"). */
export const overflowAttributes = Attributes.of({ [mark]: true })

/** Metrics that have an overflow series at the same time; the one that was silent longest begins anew. */
const mostStates = 1024

/** Whether a point is an overflow series already, of a source that has its own bound. */
export function isMarked({ attributes }: { readonly attributes: Attributes }): boolean {
  return attributes.size === 1 && attributes.keys[0] === mark && attributes.values[0] === true
}

/** Whether points of a metric can be added up: they only grow, and a histogram has one set of bounds. */
export function addsUp(metric: Metric): boolean {
  if (metric.kind === 'sum') return metric.monotonic && metric.temporality === undefined
  return metric.kind === 'histogram' && metric.temporality === undefined
}

/**
 * Adds up the series of a metric that have no room of their own. What it tells only grows, although members come and go:
 * from one collection to the next it grows by what their sum, bucket by bucket, has grown, and stays where that has
 * fallen. So in the interval in which a member leaves, as much of what the others counted may be missing as it had.
 */
export class OverflowSums {
  readonly #states = counted(new BoundedMap<string, OverflowState>(mostStates))
  readonly #ids = new WeakMap<Resource, number>()
  #lastId = 0
  /** Buckets of the point that was filled last. */
  readonly #buckets: number[] = []
  /** Of this call: sum and buckets of a histogram, or the one value of a sum. */
  readonly #members: number[] = []
  #startUs = 0
  #timeUs = 0
  /** Whether this call had any. */
  hasMembers = false
  /** Whether all histograms of this call told one. */
  #hasSums = true

  begin(metric: Metric): void {
    const { length } = this.#members
    const wanted = metric.kind === 'histogram' ? metric.bounds.length + 2 : 1
    for (let i = length; i < wanted; i++) this.#members.push(0)
    this.#members.length = wanted
    this.#members.fill(0)
    this.#startUs = Number.POSITIVE_INFINITY
    this.#timeUs = 0
    this.hasMembers = false
    this.#hasSums = true
  }

  /** Adds a point of the metric. False: it has no value, or not the metric's buckets, or is no finite number. */
  add(metric: Metric, point: Point): boolean {
    if (point.noValue === true) return false
    const members = this.#members
    if (metric.kind === 'histogram') {
      const { sum, buckets } = point as ScratchPoint
      if (buckets.length !== members.length - 1 || !areCounts(buckets)) return false
      if (sum === undefined) this.#hasSums = false
      else if (!Number.isFinite(sum)) return false
      else members[0]! += Math.max(0, sum)
      for (let i = 0; i < buckets.length; i++) members[i + 1]! += buckets[i]!
    } else {
      const { value } = point as NumberPoint
      // What is infinite would leave no number behind in all that comes after it.
      if (!(value >= 0 && value < Number.POSITIVE_INFINITY)) return false
      members[0]! += value
    }
    if (point.startUs > 0) this.#startUs = Math.min(this.#startUs, point.startUs)
    this.#timeUs = Math.max(this.#timeUs, point.timeUs)
    this.hasMembers = true
    return true
  }

  /** Whether the metric has had members. */
  knows(resource: Resource, scope: Scope, metric: Metric): boolean {
    return this.#states.size > 0 && this.#states.get(this.#keyOf(resource, scope, metric)) !== undefined
  }

  /**
   * Fills a point with what the members came to. False where there is nothing to tell: no members, or the metric comes
   * in parts that share one time, and an earlier part of this collection has told; the rest is in the next one.
   */
  finish(resource: Resource, scope: Scope, metric: Metric, point: ScratchPoint): boolean {
    if (!this.hasMembers) return false
    const members = this.#members
    const key = this.#keyOf(resource, scope, metric)
    let state = this.#states.get(key)
    if (state === undefined || state.size !== members.length) {
      const startUs = Number.isFinite(this.#startUs) ? this.#startUs : this.#timeUs
      state = new OverflowState(members.length, startUs)
      this.#states.set(key, state)
    }
    const isFirst = state.add(members, this.#timeUs)
    if (!this.#hasSums) state.hasSums = false
    if (isFirst) this.#fill(metric, state, point)
    return isFirst
  }

  #fill(metric: Metric, state: OverflowState, point: ScratchPoint): void {
    point.attributes = overflowAttributes
    point.startUs = state.startUs
    point.timeUs = this.#timeUs
    point.noValue = false
    point.exemplars = noExemplars
    if (metric.kind !== 'histogram') {
      point.value = state.total(0)
      return
    }
    const buckets = this.#buckets
    point.sum = state.hasSums ? state.total(0) : undefined
    point.count = 0
    buckets.length = 0
    for (let i = 1; i < state.size; i++) {
      const bucket = state.total(i)
      buckets.push(bucket)
      point.count += bucket
    }
    point.buckets = buckets
  }

  #keyOf(resource: Resource, scope: Scope, metric: Metric): string {
    let id = this.#ids.get(resource)
    if (id === undefined) {
      id = ++this.#lastId
      this.#ids.set(resource, id)
    }
    return `${id}\n${scopeIdentity(scope)}\n${metric.name}`
  }
}

function areCounts(buckets: ArrayLike<number>): boolean {
  for (let i = 0; i < buckets.length; i++) if (!(buckets[i]! >= 0 && buckets[i]! < 2 ** 64)) return false
  return true
}

class OverflowState {
  readonly size: number
  readonly startUs: number
  /** Once a member told none, what they come to is not known. */
  hasSums = true
  /** Through the collection before this one. */
  readonly #totals: Float64Array
  /** The members' sums in the collection before and in this one. */
  readonly #before: Float64Array
  readonly #now: Float64Array
  #timeUs = -1

  constructor(size: number, startUs: number) {
    this.size = size
    this.startUs = startUs
    this.#totals = new Float64Array(size)
    this.#before = new Float64Array(size)
    this.#now = new Float64Array(size)
  }

  /** Adds the members of a collection, or of a part of it. Whether this is its first part. */
  add(members: readonly number[], timeUs: number): boolean {
    const isFirst = timeUs !== this.#timeUs
    if (isFirst) this.#turn(timeUs)
    for (let i = 0; i < this.size; i++) this.#now[i]! += members[i]!
    return isFirst
  }

  total(i: number): number {
    return this.#totals[i]! + Math.max(0, this.#now[i]! - this.#before[i]!)
  }

  #turn(timeUs: number): void {
    for (let i = 0; i < this.size; i++) this.#totals[i] = this.total(i)
    this.#before.set(this.#now)
    this.#now.fill(0)
    this.#timeUs = timeUs
  }
}
