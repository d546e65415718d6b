import { FairShare, isSameOwner, type Owner, type ShareLosses } from '../../../foundation/lib/fair-share.ts'
import { OwnerMap } from '../../../foundation/lib/owner-map.ts'
import { Attributes } from '../../../foundation/model/attributes.ts'
import type { DurationDesc } from '../../../foundation/model/call.ts'
import type { Metric } from '../../../foundation/model/metric.ts'
import { hostOwner, type Resource } from '../../../foundation/model/resource.ts'
import { type DurationSeries, explicit, exponential, type HistogramForm, Scale } from './duration-series.ts'
import { HistogramTable } from './histogram-table.ts'
import { serviceKey, serviceResource } from './service-resource.ts'

export interface RedOptions {
  /** Microseconds since the Unix epoch: start of counting. */
  readonly startUs: number
  /** Size of the room, which owners share, in series. */
  readonly maxSeries?: number
  /** Series of one resource above this number are counted in one per metric, marked `otel.metric.overflow`. */
  readonly maxResourceSeries?: number
  /** Size of the room in bytes, if that is less. Default: no bound. */
  readonly maxBytes?: number
  /** Resource for calls without any other place; only their metric is known, without dimensions. */
  readonly others?: Resource
  /**
   * `exponential`: each series chooses its bounds from its values, 160 buckets at most. Counts added by `merge` are put
   * in the geometric middle of their original bucket.
   */
  readonly histograms?: 'explicit' | 'exponential'
}

/** Size of a series without the texts of its dimensions, measured: with explicit bounds, and with 160 buckets. */
const explicitBytes = 2100
const exponentialBytes = 4400
/** Size of a resource's metric, and of a resource with its attributes, without their series. */
const metricBytes = 250
const resourceBytes = 1400
/** Part of the room that is freed at once, so that the search for what to free is rare. */
const givenPart = 1 / 64
/** Resources with fewer series than this are removed as a whole. */
const fewSeries = 8
/** A service without calls for this many collections is removed. */
const mostIdle = 20

/** The metrics of one resource, as returned by `collect`. */
export interface ResourceMetrics {
  readonly resource: Resource
  readonly metrics: Metric[]
}

/**
 * Rate, errors and duration of calls: one exact, cumulative histogram for each resource, metric and combination of
 * dimensions. Recording into an existing series allocates nothing.
 *
 * Every call is counted once, even without room: in the series of its dimensions, or else the overflow series of its
 * process, its service, or `others`. A series that loses its place hands over only its unexported counts: exported
 * values stay valid, so no exported value falls and no call is exported twice.
 */
export class RedTable {
  /** Observations counted in an overflow series. */
  overflowed = 0
  readonly #tables = new Map<Resource, ResourceTable>()
  /** Counts of processes that had no place or ended before their first export, by `serviceKey`. */
  readonly #services = new Map<string, ResourceTable>()
  readonly #others: ResourceTable
  /** Tables that stand in for resources without a place, until the next collection. */
  #standIns = new WeakMap<Resource, ResourceTable>()
  readonly #scales = new Map<DurationDesc, Scale>()
  readonly #share: FairShare
  readonly #owned = new OwnerMap<Set<ResourceTable>>()
  readonly #maxResourceSeries: number
  readonly #seriesBytes: number
  readonly #form: HistogramForm
  #seriesCount = 0
  #refused = 0
  #taken = 0
  /** Series are being removed: until that is done, no series takes the place of another. */
  #isGiving = false
  /** Time of the last export: the start of series created since then. */
  #sinceUs: number

  constructor(options: RedOptions) {
    const { startUs, maxSeries = 10_000, maxResourceSeries = 1_000, maxBytes, histograms, others } = options
    this.#sinceUs = startUs
    this.#maxResourceSeries = maxResourceSeries
    this.#seriesBytes = histograms === 'exponential' ? exponentialBytes : explicitBytes
    this.#form = histograms === 'exponential' ? exponential : explicit
    this.#share = new FairShare(Math.min(maxBytes ?? Number.POSITIVE_INFINITY, maxSeries * this.#seriesBytes))
    this.#others = new ResourceTable(others ?? { attributes: new Attributes() }, hostOwner)
  }

  /** Number of series, without overflow series. */
  get series(): number {
    return this.#seriesCount
  }

  /** Estimated memory in use. */
  get bytes(): number {
    return this.#share.used + this.#others.bytes
  }

  /** Series refused to owners, and series removed for other owners. */
  get losses(): ShareLosses {
    return { refused: this.#refused, taken: this.#taken }
  }

  /** Records one call. `dimensions` are copied. */
  observe(resource: Resource, desc: DurationDesc, dimensions: Attributes, durationNs: number): void {
    this.#find(resource, desc, dimensions, 1).observe(durationNs)
  }

  /**
   * Adds calls that were counted elsewhere (in the kernel). `buckets` has one entry more than `desc.bounds`; its counts
   * add up to `count`.
   */
  merge(
    resource: Resource,
    desc: DurationDesc,
    dimensions: Attributes,
    count: number,
    sumNs: number,
    buckets: ArrayLike<number>,
  ): void {
    this.#find(resource, desc, dimensions, count).merge(count, sumNs, buckets)
  }

  /**
   * All series at `timeUs` (microseconds since the Unix epoch), sums in seconds. The points are valid until the next
   * call on this table. Forgotten resources are included for the last time.
   */
  collect(timeUs: number): ResourceMetrics[] {
    return [...this.collectEach(() => timeUs)]
  }

  /**
   * The same, one resource at a time, each at its own time: calls may be recorded in between. The points of one
   * resource are valid until the next is requested.
   */
  *collectEach(nowUs: () => number): Generator<ResourceMetrics> {
    this.#standIns = new WeakMap()
    for (const tables of [this.#tables.values(), this.#services.values(), [this.#others]])
      for (const table of tables) {
        this.#sinceUs = nowUs()
        const metrics = table.metrics(this.#sinceUs)
        table.markReported()
        if (table.forgotten || (table.isService && table.idle > mostIdle)) this.#remove(table)
        if (metrics.length > 0) yield { resource: table.resource, metrics }
      }
  }

  /**
   * The resource is gone (its process ended). Exported series are exported once more; unexported ones move to its
   * service, or to `next`, which replaced it.
   */
  forget(resource: Resource, next?: Resource): void {
    const table = this.#tables.get(resource)
    if (table === undefined || next === resource) return
    if (table.exported) {
      table.forgotten = true
      return
    }
    const heir = next === undefined ? this.#serviceOf(table, true) : this.#tableOf(next)
    // It may have had to make room for its successor.
    if (table.bytes > 0) this.#dissolve(table, heir)
  }

  #find(resource: Resource, desc: DurationDesc, dimensions: Attributes, count: number): DurationSeries {
    const table = this.#tableOf(resource)
    return table.histograms.get(desc)?.find(dimensions) ?? this.#place(table, desc, dimensions, count)
  }

  #tableOf(resource: Resource): ResourceTable {
    const known = this.#tables.get(resource)
    if (known === undefined) return this.#standIns.get(resource) ?? this.#enter(resource)
    // It was considered gone and came back.
    if (known.forgotten) known.forgotten = false
    return known
  }

  /** A place for a resource, or the table that stands in for it. */
  #enter(resource: Resource): ResourceTable {
    const table = new ResourceTable(resource, resource.owner ?? hostOwner)
    if (this.#hasRoom(table.owner, resourceBytes + metricBytes + this.#seriesBytes)) {
      this.#tables.set(resource, table)
      this.#hold(table, resourceBytes)
      return table
    }
    const service = this.#serviceOf(table, true)
    this.#standIns.set(resource, service)
    return service
  }

  /**
   * The service of a process; `others` if it has no place. `isWanted`: other services of its owner may be removed for
   * it.
   */
  #serviceOf(table: ResourceTable, isWanted: boolean): ResourceTable {
    if (table.isService) return this.#others
    table.key ||= serviceKey(table.resource)
    const { key, owner, resource } = table
    const known = this.#services.get(key)
    if (known !== undefined || !isWanted) return known ?? this.#others
    if (!this.#hasRoom(owner, resourceBytes + metricBytes + this.#seriesBytes, true)) return this.#others
    const service = new ResourceTable(serviceResource(resource), owner, key)
    this.#services.set(key, service)
    this.#hold(service, resourceBytes)
    return service
  }

  /** A new series, or the overflow series. */
  #place(table: ResourceTable, desc: DurationDesc, dimensions: Attributes, count: number): DurationSeries {
    if (table !== this.#others && table.series < this.#maxResourceSeries) {
      const bytes = this.#seriesBytes + textBytesOf(dimensions)
      if (this.#mayGrow(table, bytes + (table.histograms.has(desc) ? 0 : metricBytes))) {
        const histogram = this.#histogramOf(table, desc)
        // Making room may have moved unexported counts into this table.
        const given = histogram.find(dimensions)
        if (given !== undefined) return given
        this.#hold(table, bytes)
        this.#seriesCount++
        table.series++
        return histogram.add(dimensions, this.#sinceUs)
      }
    }
    this.overflowed += count
    return this.#overflow(table, desc)
  }

  /** The series for calls without a series of their own. */
  #overflow(table: ResourceTable, desc: DurationDesc): DurationSeries {
    const histogram = table.histograms.get(desc)
    if (histogram?.overflow !== undefined) return histogram.overflow
    if (table !== this.#others && !this.#mayGrow(table, this.#seriesBytes + metricBytes)) {
      // The newest series makes room for it.
      if (histogram !== undefined && histogram.series.length > 0)
        return this.#cut(table, histogram, histogram.series.length - 1)
      return this.#overflow(this.#serviceOf(table, false), desc)
    }
    const made = this.#histogramOf(table, desc)
    if (made.overflow !== undefined) return made.overflow // created while making room
    this.#hold(table, this.#seriesBytes)
    return made.addOverflow(this.#sinceUs)
  }

  #histogramOf(table: ResourceTable, desc: DurationDesc): HistogramTable {
    let histogram = table.histograms.get(desc)
    if (histogram === undefined) {
      histogram = new HistogramTable(this.#scaleOf(desc), this.#form)
      table.histograms.set(desc, histogram)
      this.#hold(table, metricBytes)
    }
    return histogram
  }

  /**
   * Removes the newest series of a metric until `most` are left. Returns the overflow series, which continues for them.
   */
  #cut(table: ResourceTable, histogram: HistogramTable, most: number): DurationSeries {
    const gone = histogram.cut(most)
    let bytes = 0
    for (const { attributes } of gone) bytes += this.#seriesBytes + textBytesOf(attributes)
    this.#hold(table, -bytes)
    table.series -= gone.length
    this.#seriesCount -= gone.length
    if (histogram.overflow === undefined) this.#hold(table, this.#seriesBytes)
    const overflow = histogram.overflow ?? histogram.addOverflow(this.#sinceUs)
    for (const series of gone) {
      this.overflowed += series.unreported
      series.handOver(overflow)
    }
    return overflow
  }

  /** Removes a resource; `to` takes over its unexported counts. */
  #dissolve(table: ResourceTable, to: ResourceTable): void {
    this.#remove(table)
    for (const [desc, { series, overflow }] of table.histograms) {
      for (const each of series) {
        const { unreported: untold, attributes } = each
        if (untold === 0) continue
        each.handOver(to.histograms.get(desc)?.find(attributes) ?? this.#place(to, desc, attributes, untold))
      }
      if (overflow !== undefined && overflow.unreported > 0) overflow.handOver(this.#overflow(to, desc))
    }
  }

  #remove(table: ResourceTable): void {
    if (table.isService) {
      this.#services.delete(table.key)
      this.#standIns = new WeakMap()
    } else this.#tables.delete(table.resource)
    this.#seriesCount -= table.series
    table.series = 0
    this.#hold(table, -table.bytes)
  }

  /** Adjusts the memory of a table by `bytes`, which may be negative. */
  #hold(table: ResourceTable, bytes: number): void {
    const { owner } = table
    table.bytes += bytes
    if (table === this.#others) return
    const owned = this.#owned.get(owner)
    if (table.bytes === 0) {
      owned?.delete(table)
      if (owned?.size === 0) this.#owned.delete(owner)
    } else if (owned === undefined) this.#owned.set(owner, new Set([table]))
    else owned.add(table)
    if (bytes > 0) this.#share.add(owner, bytes)
    else this.#share.remove(owner, -bytes)
  }

  /** A refused table may ask again after the next collection, because calls beyond the room are frequent. */
  #mayGrow(table: ResourceTable, bytes: number): boolean {
    if (table.refused) return false
    if (this.#hasRoom(table.owner, bytes)) return true
    table.refused = !this.#isGiving
    return false
  }

  /**
   * Whether an owner has room for `bytes` more; the owner that has most gives up series for it. `own`: even if that is
   * the same owner.
   */
  #hasRoom(owner: Owner, bytes: number, own = false): boolean {
    while (!this.#share.hasRoom(bytes)) {
      const giver = this.#isGiving ? undefined : this.#share.giver(owner, bytes)
      const isOwn = giver !== undefined && isSameOwner(giver, owner)
      if (giver === undefined || (isOwn && !own) || !this.#giveUp(giver, bytes, isOwn)) {
        if (!this.#isGiving) this.#refused++
        return false
      }
    }
    return true
  }

  /** An owner gives up some of its series, least valuable first. */
  #giveUp(giver: Owner, bytes: number, isOwn: boolean): boolean {
    const owned = [...(this.#owned.get(giver) ?? [])]
    if (owned.length === 0) return false
    const before = this.#share.used
    const most = before - Math.max(bytes, this.#share.capacity * givenPart)
    const seriesBefore = this.#seriesCount
    const dissolve = (wanted: (table: ResourceTable) => boolean) => {
      for (const table of owned)
        if (this.#share.used > most && table.bytes > 0 && wanted(table))
          this.#dissolve(table, this.#serviceOf(table, false))
    }
    this.#isGiving = true
    try {
      dissolve(({ forgotten }) => forgotten)
      while (this.#share.used > most) {
        const largest = owned.reduce((a, b) => (b.series > a.series ? b : a))
        if (largest.series < fewSeries) break
        const { used } = this.#share
        for (const histogram of largest.histograms.values())
          if (histogram.series.length > 1)
            this.#cut(largest, histogram, Math.floor(histogram.series.length / 2))
        if (this.#share.used >= used) break
      }
      dissolve(({ isService }) => !isService)
      dissolve(() => true)
    } finally {
      this.#isGiving = false
    }
    if (!isOwn) this.#taken += seriesBefore - this.#seriesCount
    return this.#share.used < before
  }

  /** The bounds of a metric, created once. */
  #scaleOf(desc: DurationDesc): Scale {
    let scale = this.#scales.get(desc)
    if (scale === undefined) {
      scale = new Scale(desc.bounds)
      this.#scales.set(desc, scale)
    }
    return scale
  }
}

class ResourceTable {
  readonly resource: Resource
  readonly owner: Owner
  /** `serviceKey`; '' until first use. */
  key: string
  readonly isService: boolean
  readonly histograms = new Map<DurationDesc, HistogramTable>()
  bytes = 0
  /** Without overflow series. */
  series = 0
  forgotten = false
  /** A receiver has seen it. */
  exported = false
  /** It gets no more room until the next collection. */
  refused = false
  /** Collections since the last call. */
  idle = 0

  constructor(resource: Resource, owner: Owner, service = '') {
    this.resource = resource
    this.owner = owner
    this.key = service
    this.isService = service !== ''
  }

  metrics(timeUs: number): Metric[] {
    const metrics: Metric[] = []
    for (const [desc, histogram] of this.histograms) {
      const metric = histogram.metric(desc, timeUs)
      if (metric.points.length > 0) metrics.push(metric)
    }
    return metrics
  }

  markReported(): void {
    this.exported = true
    this.refused = false
    this.idle++
    for (const histogram of this.histograms.values()) if (histogram.markReported()) this.idle = 0
  }
}

/** Memory of dimension values, as if most characters took one byte. */
function textBytesOf({ size, values }: Attributes): number {
  let bytes = 0
  for (let i = 0; i < size; i++) {
    const value = values[i]
    if (typeof value === 'string') bytes += value.length
  }
  return bytes
}
