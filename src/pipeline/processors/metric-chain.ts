import { Attributes } from '../../foundation/model/attributes.ts'
import type { DropReasonName } from '../../foundation/model/drop-reasons.ts'
import type { Exemplar, Metric } from '../../foundation/model/metric.ts'
import type { Resource, Scope } from '../../foundation/model/resource.ts'
import { Deltas } from './metric-chain/deltas.ts'
import { addsUp, isMarked, OverflowSums, overflowAttributes } from './metric-chain/overflow-sums.ts'
import { Scopes } from './metric-chain/scopes.ts'
import { type Point, ScratchMetric, ScratchPoint } from './metric-chain/scratch.ts'
import { overflow, type Stage, type Verdict } from './processor.ts'

/** Takes what is left of metrics. A metric is valid during the call only. */
export interface MetricOut {
  add(resource: Resource, scope: Scope, metric: Metric): void
  /** Data points that go no further. */
  drop(reason: DropReasonName, items: number): void
}

/** What happens to metrics on their way out. */
export interface MetricChain {
  /**
   * Changes nothing of what it is given. `resource` is what the stages made of `source`, by which what is remembered of
   * its series is found again: other stages make another one of it.
   */
  run(resource: Resource, scope: Scope, metric: Metric, out: MetricOut, source?: Resource): void
  /**
   * As `run`, for a metric that will come again and again and whose numbers are not known: none is looked at. Undefined:
   * what becomes of it depends on the numbers, or on what else comes, and nothing that `out` was told counts.
   */
  prepare(resource: Resource, scope: Scope, metric: Metric, out: MetricOut): Lasting | undefined
  /** Why a metric of so many points goes no further this time; '' lets it pass. */
  again(points: number): Verdict
}

/** For how long `out` was told the truth by a preparation. */
export interface Lasting {
  readonly forMs: number
  /** `again` is to be asked each time that it comes. */
  readonly asksAgain: boolean
}

export interface MetricChainOptions {
  /** `delta`: sums that only grow and histograms tell what came since the point before; others stay as they are. */
  readonly temporality: 'cumulative' | 'delta'
  /** Series of which the last point is remembered for `delta`; beyond it those are forgotten that were not seen of late. */
  readonly maxSeries: number
  /** When this process began, in microseconds since the Unix epoch: what began before may have been told by another. */
  readonly sinceUs?: number
}

/** Reason of a first point for `delta` whose series began before anybody watched it. */
const noBase = 'delta_start'
/** Reason of points that a fault in a processor has cost. */
const fault = 'processor'

/**
 * About how many bytes of points are handed on in one metric: the copies take little memory then, and every part fits
 * into a request. What does not would be lost as a whole.
 */
const mostBytes = 64 * 1024
/** Of a point beside its attributes and buckets, and of an attribute beside its key and value. */
const pointBytes = 40
const attributeBytes = 16
/** Of an exemplar beside its attributes. */
const exemplarBytes = 50

/** Makes the chain of these stages. What `before` remembers goes on. */
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
  /** Of `#onMetric` those that are not asked again. */
  readonly #onPreparation: readonly OnMetric[]
  readonly #lastingMs: number | undefined
  readonly #deltas: Deltas | undefined = undefined
  readonly #overflow: OverflowSums
  readonly #scratch = new ScratchMetric()
  /** The overflow point of the source itself, and what the stages said to it; undefined where there is none. */
  readonly #marked = new ScratchPoint()
  #markedVerdict: Verdict | undefined
  readonly #losses = new Losses()
  readonly #scopes: Scopes
  /** Of this metric, as its source told it: by it, too, what is remembered of its series is found again. */
  #source: Scope | undefined
  /** Points of this metric. */
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
        // As everywhere a fault in a processor costs the item, but parts of this one may be on their way.
        this.#forget()
        out.drop(fault, metric.points.length - this.#handedOn)
      }
    }
  }

  prepare(resource: Resource, scope: Scope, metric: Metric, out: MetricOut): Lasting | undefined {
    const forMs = this.#lastingMs
    if (forMs === undefined || (this.#deltas !== undefined && becomesDelta(metric))) return undefined
    if (addsUp(metric) && metric.points.some(isMarked)) return undefined
    // Whoever is asked again comes last, and is not asked about what others have dropped.
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

  /** As `#copy`, without a look at numbers. False: a series has no room, so that its numbers are added to others. */
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

  /** Most have an identifier and no attributes. */
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

  /** The overflow point of the source and the one made here would be two of one series: where both are, they are one. */
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

/** Whether one of them drops the metric as a whole. */
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

/** Whether a point is the overflow series of its source, and tells what that came to. */
function isOverflowSum(point: Point): boolean {
  return point.noValue !== true && isMarked(point)
}

/** Undefined where one of them is; infinite where there is none. */
function shortest(durations: readonly (number | undefined)[]): number | undefined {
  let least = Number.POSITIVE_INFINITY
  for (const each of durations) {
    if (each === undefined) return undefined
    least = Math.min(least, each)
  }
  return least
}

/** Whether a metric can be handed on in one part. */
function isSmall({ points }: Metric): boolean {
  let bytes = 0
  for (let i = 0; i < points.length && bytes <= mostBytes; i++) bytes += bytesOf(points[i]!)
  return bytes <= mostBytes
}

/** About as many bytes as a point takes in a request, where its texts are ASCII. */
function bytesOf(point: Point): number {
  let bytes = pointBytes + attributesBytes(point.attributes)
  // A bound belongs to each bucket.
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

/** How many points of one metric were lost, by reason. */
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
