import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import { counted } from '../../../foundation/lib/small-tables.ts'
import { Attributes } from '../../../foundation/model/attributes.ts'
import type { Metric, NumberPoint } from '../../../foundation/model/metric.ts'
import { type Resource, type Scope, scopeIdentity } from '../../../foundation/model/resource.ts'
import { noExemplars, type Point, type ScratchPoint } from './scratch.ts'

const mark = 'otel.metric.overflow'

/** Attributes of an overflow series (OpenTelemetry metrics SDK, "Overflow attribute"). */
export const overflowAttributes = Attributes.of({ [mark]: true })

/** Maximum metrics with an overflow series; above it, the one silent for longest starts again. */
const mostStates = 1024

/** Whether a point is an overflow series made by a source with its own limit. */
export function isMarked({ attributes }: { readonly attributes: Attributes }): boolean {
  return attributes.size === 1 && attributes.keys[0] === mark && attributes.values[0] === true
}

/** Whether points of a metric can be summed: they are monotonic, and a histogram has one set of bounds. */
export function addsUp(metric: Metric): boolean {
  if (metric.kind === 'sum') return metric.monotonic && metric.temporality === undefined
  return metric.kind === 'histogram' && metric.temporality === undefined
}

/**
 * Sums the series of a metric that are above the limit (members). The result is monotonic although members come and go:
 * at each collection it grows by the increase of the members' sum, per bucket, and stays where the sum decreased. So
 * when a member leaves, an increase of the others of up to its value may be missing for that interval.
 */
export class OverflowSums {
  readonly #states = counted(new BoundedMap<string, OverflowState>(mostStates))
  readonly #ids = new WeakMap<Resource, number>()
  #lastId = 0
  /** Buckets of the last filled point. */
  readonly #buckets: number[] = []
  /** Sums of the current call: sum and buckets of a histogram, or the value of a sum. */
  readonly #members: number[] = []
  #startUs = 0
  #timeUs = 0
  /** Whether the current call has members. */
  hasMembers = false
  /** Whether all histograms of the current call have a sum. */
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

  /**
   * Adds a point of the metric. False if it has no value, other buckets than the metric, or a value that is not finite.
   */
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
      // An infinite value would make all later sums infinite.
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
   * Fills a point with the sum of the members. False if there is nothing to report: no members, or the metric comes in
   * parts with the same time and an earlier part was reported; the rest is in the next collection.
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
  /** False once a member had no sum: the total is then unknown. */
  hasSums = true
  /** Totals up to the previous collection. */
  readonly #totals: Float64Array
  /** Sums of the members in the previous and in this collection. */
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

  /** Adds the members of a collection, or of a part of it. Returns whether this is the first part. */
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
