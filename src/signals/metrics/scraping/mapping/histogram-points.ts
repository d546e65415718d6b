import type { Exemplar, HistogramPoint } from '../../../../foundation/model/metric.ts'
import { isCount } from './count.ts'
import { type Counted, CountedPoints } from './counted-points.ts'
import { otlpExemplar } from './exemplar.ts'
import type { FamilyDraft } from './family-draft.ts'
import type { MappedSeries } from './mapped-family.ts'
import { withoutSuffix } from './number-points.ts'
import { entry, numberOf, type Origin } from './series-labels.ts'

interface Bucket {
  readonly bound: number
  readonly series: MappedSeries
}

/** The series of one histogram. */
type Gathered = Counted & { readonly buckets: Bucket[] }

/** Points with equal bounds. */
interface Bounded {
  readonly bounds: readonly number[]
  readonly points: HistogramPoint[]
}

/** A family of classic histograms. */
export class HistogramPoints {
  readonly #draft: FamilyDraft
  readonly #points: CountedPoints<Pick<Gathered, 'buckets'>>

  constructor(draft: FamilyDraft) {
    this.#draft = draft
    this.#points = new CountedPoints(draft, () => ({ buckets: [] }))
  }

  add(series: MappedSeries): void {
    const { name } = series
    if (name !== this.#draft.family.name && name.endsWith('_bucket')) this.#addBucket(series)
    else this.#points.add(series)
  }

  finish(): void {
    this.#points.metrics.forEach((gathered, origin, name) => {
      this.#finishMetric(gathered, origin, name)
    })
    this.#points.finish()
  }

  #addBucket(series: MappedSeries): void {
    const { origin, attributes, key, special } = this.#draft.labels.sort(series.labels, 'le')
    const bound = numberOf(special)
    if (Number.isNaN(bound) || bound === Number.NEGATIVE_INFINITY) this.#draft.drop('bad_le')
    else
      this.#points.of(origin, withoutSuffix(series.name, '_bucket'), key, attributes).buckets.push({
        bound,
        series,
      })
  }

  #finishMetric(byKey: ReadonlyMap<string, Gathered>, origin: Origin, name: string): void {
    const draft = this.#draft
    const all = new Map<string, Bounded>()
    let last: Bounded | undefined
    for (const gathered of byKey.values()) {
      const { count, sum, buckets: unordered } = gathered
      if (count === undefined) {
        if (sum !== undefined || unordered.length > 0) draft.drop('no_count')
        continue
      }
      const buckets = this.#ordered(unordered)
      const bounds = draft.numbers === 'ended' ? [] : boundsOf(buckets)
      if (last === undefined || !areSame(last.bounds, bounds))
        last = entry(all, bounds.join(), () => ({ bounds, points: [] }))
      const point = this.#point(gathered, count, buckets)
      if (point === undefined) draft.drop('inconsistent_histogram')
      else last.points.push(point)
    }
    for (const { bounds, points } of all.values())
      draft.emit(origin, { kind: 'histogram', ...draft.described(name, 'histogram'), bounds, points })
  }

  /** Buckets by rising bound; duplicates are removed, except the first on the page. */
  #ordered(buckets: Bucket[]): readonly Bucket[] {
    let isRising = true
    for (let i = 1; i < buckets.length; i++) isRising &&= buckets[i]!.bound > buckets[i - 1]!.bound
    if (isRising) return buckets
    const ordered: Bucket[] = []
    for (const bucket of buckets.sort((a, b) => a.bound - b.bound || 0)) {
      if (ordered.at(-1)?.bound === bucket.bound) this.#draft.drop('duplicate_series')
      else ordered.push(bucket)
    }
    return ordered
  }

  /** Undefined if its numbers contradict each other. */
  #point(gathered: Gathered, count: MappedSeries, buckets: readonly Bucket[]): HistogramPoint | undefined {
    const { attributes, sum, created } = gathered
    const times = this.#draft.times(count, created)
    const { numbers } = this.#draft
    if (numbers === 'ended')
      return { attributes, ...times, noValue: true, count: 0, sum: undefined, buckets: [] }
    const cumulative: number[] = []
    for (const { series } of buckets) cumulative.push(series.value)
    if (buckets.at(-1)?.bound !== Number.POSITIVE_INFINITY) cumulative.push(count.value)
    const point = { attributes, ...times, count: count.value, sum: sum?.value }
    if (numbers === 'places') return { ...point, buckets: cumulative }
    const own = ownCounts(cumulative, count.value)
    if (own === undefined) return undefined
    const exemplars = exemplarsOf(buckets)
    return { ...point, buckets: own, ...(exemplars.length > 0 && { exemplars }) }
  }
}

/** Explicit bounds; that of the last bucket is implicit. */
function boundsOf(buckets: readonly Bucket[]): number[] {
  const bounds: number[] = []
  for (const { bound } of buckets) if (bound !== Number.POSITIVE_INFINITY) bounds.push(bound)
  return bounds
}

/**
 * Counts per bucket. Undefined if the cumulative counts decrease, are not integers that a double represents exactly, or
 * do not end with the histogram's count.
 */
function ownCounts(cumulative: readonly number[], count: number): number[] | undefined {
  if (cumulative.at(-1) !== count || !isCount(count)) return undefined
  const own: number[] = []
  let before = 0
  for (const value of cumulative) {
    if (!isCount(value - before)) return undefined
    own.push(value - before)
    before = value
  }
  return own
}

function exemplarsOf(buckets: readonly Bucket[]): Exemplar[] {
  const exemplars: Exemplar[] = []
  for (const { series } of buckets)
    if (series.exemplar !== undefined) exemplars.push(otlpExemplar(series.exemplar))
  return exemplars
}

function areSame(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}
