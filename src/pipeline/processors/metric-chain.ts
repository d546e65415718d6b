import { Attributes } from '../../foundation/model/attributes.ts'
import type { DropReasonName } from '../../foundation/model/drop-reasons.ts'
import type { Exemplar, Metric } from '../../foundation/model/metric.ts'
import type { Resource, Scope } from '../../foundation/model/resource.ts'
import { Deltas } from './metric-chain/deltas.ts'
import { addsUp, isMarked, OverflowSums, overflowAttributes } from './metric-chain/overflow-sums.ts'
import { Scopes } from './metric-chain/scopes.ts'
import { type Point, ScratchMetric, ScratchPoint } from './metric-chain/scratch.ts'
import { overflow, type Stage, type Verdict } from './processor.ts'

/** Receives the metrics that pass. A metric is valid only during the call. */
export interface MetricOut {
  add(resource: Resource, scope: Scope, metric: Metric): void
  /** Counts dropped data points. */
  drop(reason: DropReasonName, items: number): void
}

/** Processing of metrics before they are sent. */
export interface MetricChain {
  /**
   * Does not change its arguments. `resource` is the result of the stages for `source`. State of series is kept by
   * `source`, as other stages would produce another resource.
   */
  run(resource: Resource, scope: Scope, metric: Metric, out: MetricOut, source?: Resource): void
  /**
   * As `run`, for a recurring metric whose numbers are not known yet. Undefined if the result depends on the numbers or
   * on other metrics; all calls of `out` are then void.
   */
  prepare(resource: Resource, scope: Scope, metric: Metric, out: MetricOut): Lasting | undefined
  /** Reason to drop a metric with this number of points this time; '' to pass it. */
  again(points: number): Verdict
}

/** Validity of a preparation. */
export interface Lasting {
  readonly forMs: number
  /** Whether `again` must be called each time the metric recurs. */
  readonly asksAgain: boolean
}

export interface MetricChainOptions {
  /**
   * With `delta`, monotonic sums and histograms are sent as differences from the previous point; others are unchanged.
   */
  readonly temporality: 'cumulative' | 'delta'
  /** Maximum series whose last point is kept for `delta`; above it, the ones not seen for longest are forgotten. */
  readonly maxSeries: number
  /**
   * Start of this process, in microseconds since the Unix epoch: another process may have reported series that began
   * before.
   */
  readonly sinceUs?: number
}

/** Drop reason of the first known point of a series that began earlier, with `delta`. */
const noBase = 'delta_start'
/** Drop reason of points lost by an exception in a processor. */
const fault = 'processor'

/**
 * Approximate bytes of points per passed-on metric: so the copies take little memory, and each part is smaller than a
 * request. A part above the limit of requests would be dropped as a whole.
 */
const mostBytes = 64 * 1024
/** Overhead of a point without attributes and buckets, and of an attribute without key and value. */
const pointBytes = 40
const attributeBytes = 16
/** Overhead of an exemplar without attributes. */
const exemplarBytes = 50

/** Makes the chain of these stages. State of `before` is kept. */
export function metricChain(
  stages: readonly Stage[],
  options: MetricChainOptions,
  before?: MetricChain,
): MetricChain {
  return new StagedChain(stages, options, before instanceof StagedChain ? before : undefined)
}

type OnSeries = (attributes: Attributes, metric: Metric, resource: Resource, scope: Scope) => Verdict
type OnMetric = (metric: Metric, resource: Resource) => Verdict
type OnExemplar = (attributes: Attributes) => void
type OnAgain = (points: number) => Verdict

class StagedChain implements MetricChain {
  readonly #onMetric: readonly OnMetric[]
  readonly #onSeries: readonly OnSeries[]
  readonly #onExemplar: readonly OnExemplar[]
  readonly #onAgain: readonly OnAgain[]
  /** `#onMetric` of the stages without `again`. */
  readonly #onPreparation: readonly OnMetric[]
  readonly #lastingMs: number | undefined
  readonly #deltas: Deltas | undefined = undefined
  readonly #overflow: OverflowSums
  readonly #scratch = new ScratchMetric()
  /** Overflow point sent by the source itself, and the stages' verdict on it; undefined if there is none. */
  readonly #marked = new ScratchPoint()
  #markedVerdict: Verdict | undefined
  readonly #losses = new Losses()
  readonly #scopes: Scopes
  /** Scope of the current metric as received; part of the key of series state. */
  #source: Scope | undefined
  /** Points of the current metric passed on so far. */
  #handedOn = 0

  constructor(stages: readonly Stage[], options: MetricChainOptions, before: StagedChain | undefined) {
    this.#scopes = new Scopes(stages)
    this.#onMetric = stages.flatMap(stage => stage.metric?.bind(stage) ?? [])
    this.#onSeries = stages.flatMap(stage => stage.series?.bind(stage) ?? [])
    this.#onExemplar = stages.flatMap(stage => stage.exemplar?.bind(stage) ?? [])
    this.#onAgain = stages.flatMap(stage => stage.again?.bind(stage) ?? [])
    this.#onPreparation = stages.flatMap(stage => (stage.again ? [] : (stage.metric?.bind(stage) ?? [])))
    this.#lastingMs = shortest(stages.map(stage => stage.lastingMs))
    this.#overflow = before === undefined ? new OverflowSums() : before.#overflow
    if (options.temporality === 'delta')
      this.#deltas = deltasOf(options, before === undefined ? undefined : before.#deltas)
  }

  run(resource: Resource, scope: Scope, metric: Metric, out: MetricOut, source = resource): void {
    if (refuses(this.#onMetric, resource, metric, out)) return
    const deltas = becomesDelta(metric) ? this.#deltas : undefined
    const sent = this.#scopes.after(scope)
    if (this.#isUntouched(metric, deltas)) out.add(resource, sent, metric)
    else {
      this.#source = scope
      this.#handedOn = 0
      try {
        this.#copy(resource, sent, metric, deltas, out, source)
      } catch {
        // An exception in a processor costs the item, as everywhere, but some parts may already be sent.
        this.#forget()
        out.drop(fault, metric.points.length - this.#handedOn)
      }
    }
  }

  prepare(resource: Resource, scope: Scope, metric: Metric, out: MetricOut): Lasting | undefined {
    const forMs = this.#lastingMs
    if (forMs === undefined || (this.#deltas !== undefined && becomesDelta(metric))) return undefined
    if (addsUp(metric) && metric.points.some(isMarked)) return undefined
    // Stages with `again` come last: they must not count what others have dropped.
    if (refuses(this.#onPreparation, resource, metric, out)) return { forMs, asksAgain: false }
    const sent = this.#scopes.after(scope)
    if (this.#isUntouched(metric, undefined)) out.add(resource, sent, metric)
    else {
      try {
        if (!this.#copyLasting(resource, sent, metric, out)) return undefined
      } catch {
        this.#forget()
        return undefined
      }
    }
    return { forMs, asksAgain: this.#onAgain.length > 0 }
  }

  again(points: number): Verdict {
    const onAgain = this.#onAgain
    for (let i = 0; i < onAgain.length; i++) {
      const verdict = onAgain[i]!(points)
      if (verdict !== '') return verdict
    }
    return ''
  }

  #isUntouched(metric: Metric, deltas: Deltas | undefined): boolean {
    return this.#onSeries.length + this.#onExemplar.length === 0 && deltas === undefined && isSmall(metric)
  }

  #copy(
    resource: Resource,
    scope: Scope,
    metric: Metric,
    deltas: Deltas | undefined,
    out: MetricOut,
    source: Resource,
  ): void {
    const scratch = this.#scratch
    const sums = addsUp(metric) ? this.#overflow : undefined
    this.#markedVerdict = undefined
    scratch.take(metric, deltas === undefined ? temporalityOf(metric) : 'delta')
    deltas?.begin(source, this.#source!, metric)
    sums?.begin(metric)
    const { points } = metric
    const sent = { resource, scope }
    let bytes = 0
    for (let i = 0; i < points.length; i++) {
      const point = points[i]!
      const isOverflow = sums !== undefined && this.#markedVerdict === undefined && isOverflowSum(point)
      const copy = isOverflow ? this.#marked : scratch.next
      copy.take(metric.kind, point)
      const verdict = this.#judge(point, copy, metric, sent)
      if (isOverflow && (verdict === '' || verdict === overflow)) this.#markedVerdict = verdict
      else if (verdict === '') this.#keep(point.attributes, copy, deltas)
      else {
        if (verdict === overflow) sums?.add(metric, point)
        this.#losses.count(verdict)
      }
      bytes += bytesOf(copy)
      if (bytes < mostBytes) continue
      this.#handOn(resource, scope, out)
      bytes = 0
    }
    if (sums !== undefined) this.#addUp(sums, source, this.#source!, metric, deltas)
    this.#handOn(resource, scope, out)
    this.#losses.report(out)
  }

  /** As `#copy`, without reading numbers. False if a series is above the limit, so that its numbers must be summed. */
  #copyLasting(resource: Resource, scope: Scope, metric: Metric, out: MetricOut): boolean {
    const scratch = this.#scratch
    scratch.take(metric, temporalityOf(metric))
    const { points } = metric
    const sent = { resource, scope }
    let bytes = 0
    for (let i = 0; i < points.length; i++) {
      const point = points[i]!
      const copy = scratch.next
      copy.take(metric.kind, point)
      const verdict = this.#judge(point, copy, metric, sent)
      if (verdict === overflow) {
        this.#forget()
        return false
      }
      if (verdict === '') scratch.keep(copy)
      else this.#losses.count(verdict)
      bytes += bytesOf(copy)
      if (bytes < mostBytes) continue
      this.#handOn(resource, scope, out)
      bytes = 0
    }
    this.#handOn(resource, scope, out)
    this.#losses.report(out)
    return true
  }

  #forget(): void {
    this.#scratch.empty()
    this.#losses.clear()
  }

  #judge(
    point: Point,
    copy: ScratchPoint,
    metric: Metric,
    { resource, scope }: { readonly resource: Resource; readonly scope: Scope },
  ): Verdict {
    const onSeries = this.#onSeries
    if (onSeries.length === 0) copy.attributes = point.attributes
    else copy.copyAttributes(point.attributes)
    for (let i = 0; i < onSeries.length; i++) {
      const verdict = onSeries[i]!(copy.attributes, metric, resource, scope)
      if (verdict !== '') return verdict
    }
    if (copy.exemplars.length > 0 && this.#onExemplar.length > 0)
      copy.exemplars = copy.exemplars.map(each => this.#exemplar(each))
    return ''
  }

  /** Most exemplars have an identifier and no attributes. */
  #exemplar(exemplar: Exemplar): Exemplar {
    const { keys, values, size } = exemplar.attributes
    if (size === 0) return exemplar
    const attributes = new Attributes()
    for (let i = 0; i < size; i++) attributes.add(keys[i]!, values[i]!)
    for (const change of this.#onExemplar) change(attributes)
    return { ...exemplar, attributes }
  }

  #keep(attributes: Attributes, copy: ScratchPoint, deltas: Deltas | undefined): void {
    const { kind } = this.#scratch
    if (deltas === undefined || deltas.convert(kind, attributes, copy)) this.#scratch.keep(copy)
    else this.#losses.count(noBase)
  }

  /** Merges the source's overflow point with our own: two points of one series would be duplicates. */
  #addUp(
    sums: OverflowSums,
    source: Resource,
    scope: Scope,
    metric: Metric,
    deltas: Deltas | undefined,
  ): void {
    const marked = this.#marked
    const verdict = this.#markedVerdict
    if (verdict !== undefined) {
      const joins = verdict === overflow || sums.hasMembers || sums.knows(source, scope, metric)
      if (!joins || !sums.add(metric, marked)) {
        if (verdict === '') this.#keep(overflowAttributes, marked, deltas)
        else this.#losses.count(verdict)
      }
    }
    const copy = this.#scratch.next
    if (sums.finish(source, scope, metric, copy)) this.#keep(overflowAttributes, copy, deltas)
  }

  #handOn(resource: Resource, scope: Scope, out: MetricOut): void {
    const scratch = this.#scratch
    this.#handedOn += scratch.points.length
    if (scratch.points.length > 0) out.add(resource, scope, scratch.metric)
    scratch.empty()
  }
}

/** Whether a stage drops the whole metric. */
function refuses(onMetric: readonly OnMetric[], resource: Resource, metric: Metric, out: MetricOut): boolean {
  for (let i = 0; i < onMetric.length; i++) {
    const verdict = onMetric[i]!(metric, resource)
    if (verdict === '') continue
    out.drop(verdict, metric.points.length)
    return true
  }
  return false
}

function deltasOf({ maxSeries, sinceUs }: MetricChainOptions, before: Deltas | undefined): Deltas {
  if (before?.maxSeries !== maxSeries)
    return new Deltas(maxSeries, sinceUs ?? performance.timeOrigin * 1000, before)
  before.resume()
  return before
}

function becomesDelta(metric: Metric): boolean {
  if (metric.kind === 'gauge' || metric.kind === 'summary' || metric.temporality !== undefined) return false
  return metric.kind !== 'sum' || metric.monotonic
}

function temporalityOf(metric: Metric): 'delta' | undefined {
  return metric.kind === 'gauge' || metric.kind === 'summary' ? undefined : metric.temporality
}

/** Whether a point is the overflow series of its source, with a value. */
function isOverflowSum(point: Point): boolean {
  return point.noValue !== true && isMarked(point)
}

/** Undefined if any is undefined; infinite for an empty list. */
function shortest(durations: readonly (number | undefined)[]): number | undefined {
  let least = Number.POSITIVE_INFINITY
  for (const each of durations) {
    if (each === undefined) return undefined
    least = Math.min(least, each)
  }
  return least
}

/** Whether a metric can be passed on in one part. */
function isSmall({ points }: Metric): boolean {
  let bytes = 0
  for (let i = 0; i < points.length && bytes <= mostBytes; i++) bytes += bytesOf(points[i]!)
  return bytes <= mostBytes
}

/** Approximate bytes of a point in a request, if its texts are ASCII. */
function bytesOf(point: Point): number {
  let bytes = pointBytes + attributesBytes(point.attributes)
  // Each bucket has a bound.
  if ('buckets' in point) bytes += 16 * point.buckets.length
  if ('positive' in point) bytes += 4 * point.positive.counts.length
  if ('quantiles' in point) bytes += 20 * point.quantiles.length
  if ('exemplars' in point)
    for (let i = 0; i < point.exemplars.length; i++)
      bytes += exemplarBytes + attributesBytes(point.exemplars[i]!.attributes)
  return bytes
}

function attributesBytes({ keys, values, size }: Attributes): number {
  let bytes = 0
  for (let i = 0; i < size; i++) {
    const value = values[i]!
    bytes += attributeBytes + keys[i]!.length
    if (typeof value === 'string') bytes += value.length
    else if (typeof value === 'object') for (const text of value) bytes += attributeBytes + text.length
  }
  return bytes
}

/** Lost points of one metric by reason. */
class Losses {
  readonly #reasons: DropReasonName[] = []
  readonly #counts: number[] = []

  count(reason: DropReasonName): void {
    const at = this.#reasons.indexOf(reason)
    if (at >= 0) this.#counts[at]!++
    else {
      this.#reasons.push(reason)
      this.#counts.push(1)
    }
  }

  report(out: MetricOut): void {
    for (let i = 0; i < this.#reasons.length; i++) out.drop(this.#reasons[i]!, this.#counts[i]!)
    this.clear()
  }

  clear(): void {
    this.#reasons.length = 0
    this.#counts.length = 0
  }
}
