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
  /** Microseconds since the Unix epoch: from when the table counts. */
  readonly startUs: number
  /** The room, which owners share, is for as many series as this. */
  readonly maxSeries?: number
  /** Series of one resource beyond this many go to one per metric, marked `otel.metric.overflow`. */
  readonly maxResourceSeries?: number
  /** Bytes of that room, if that is less. Default: no bound. */
  readonly maxBytes?: number
  /** Whose calls are counted of which nothing but the metric is told, as there was no other place. */
  readonly others?: Resource
  /**
   * `exponential`: each series chooses its bounds by what it sees, 160 buckets at most. What `merge` adds then stands in
   * the geometric middle of the bucket that it was counted in.
   */
  readonly histograms?: 'explicit' | 'exponential'
}

/** What a series takes without the texts of its dimensions, measured: explicit bounds, and 160 buckets besides. */
const explicitBytes = 2100
const exponentialBytes = 4400
/** A metric of a resource, and a resource with its attributes, without their series. */
const metricBytes = 250
const resourceBytes = 1400
/** So much of the room is given up at once, so that whoever is kept looks for it seldom. */
const givenPart = 1 / 64
/** Resources with fewer series than this are let go of as a whole. */
const fewSeries = 8
/** A service of which nothing was counted for so many collections is let go of. */
const mostIdle = 20

/** The metrics of one resource, as `collect` gives them. */
export interface ResourceMetrics {
  readonly resource: Resource
  readonly metrics: Metric[]
}

/**
 * Rate, errors and duration of calls: one exact, cumulative histogram for each resource, metric and combination of
 * dimensions. Recording into a series that exists allocates nothing.
 *
 * Every call is counted once, whatever the room: in the series of its dimensions, else in the overflow series of its
 * process, else in its service, else in `others`. A series that loses its place hands over what was not told of it yet,
 * and no more: what was told stays true, and nothing that is told falls or is told twice.
 */
export class RedTable {
  /** Observations that went to an overflow series. */
  overflowed = 0
  readonly #tables = new Map<Resource, ResourceTable>()
  /** Of processes that had no place, or ended before anything was told of them, by `serviceKey`. */
  readonly #services = new Map<string, ResourceTable>()
  readonly #others: ResourceTable
  /** Where the calls of resources without a place are counted, until the next collection. */
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
  /** Series are being let go of: meanwhile none takes the place of another. */
  #isGiving = false
  /** When something was told last, and so when a series that is new since then began. */
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

  /** How many series there are, overflow series left out. */
  get series(): number {
    return this.#seriesCount
  }

  /** Memory that is taken now, by estimate. */
  get bytes(): number {
    return this.#share.used + this.#others.bytes
  }

  /** Series that owners did not get, and that were let go of for other owners. */
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
   * All series at `timeUs` (microseconds since the Unix epoch), sums in seconds. The points stay valid until the next
   * call on this table. Resources that were forgotten are told here for the last time.
   */
  collect(timeUs: number): ResourceMetrics[] {
    return [...this.collectEach(() => timeUs)]
  }

  /**
   * The same, one resource after the other, each as of its own moment: calls may be recorded in between. The points of one
   * stay valid until the next is asked for.
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
   * The resource is gone (its process ended). What was told of it is told once more; of what was told nothing, its service
   * takes over all, or `next`, which has taken its place.
   */
  forget(resource: Resource, next?: Resource): void {
    const table = this.#tables.get(resource)
    if (table === undefined || next === resource) return
    if (table.reported) {
      table.forgotten = true
      return
    }
    const heir = next === undefined ? this.#serviceOf(table, true) : this.#tableOf(next)
    // It may have had to make room for its heir.
    if (table.bytes > 0) this.#dissolve(table, heir)
  }

  #find(resource: Resource, desc: DurationDesc, dimensions: Attributes, count: number): DurationSeries {
    const table = this.#tableOf(resource)
    return table.histograms.get(desc)?.find(dimensions) ?? this.#place(table, desc, dimensions, count)
  }

  #tableOf(resource: Resource): ResourceTable {
    const known = this.#tables.get(resource)
    if (known === undefined) return this.#standIns.get(resource) ?? this.#enter(resource)
    // It was taken for gone, and has come back.
    if (known.forgotten) known.forgotten = false
    return known
  }

  /** A place for a resource, or whoever stands in for it. */
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

  /** The service of a process; `others` where it has no place. `isWanted`: for it others of its owner's may go. */
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

  /** A new series, or the one of overflow. */
  #place(table: ResourceTable, desc: DurationDesc, dimensions: Attributes, count: number): DurationSeries {
    if (table !== this.#others && table.series < this.#maxResourceSeries) {
      const bytes = this.#seriesBytes + textBytesOf(dimensions)
      if (this.#mayGrow(table, bytes + (table.histograms.has(desc) ? 0 : metricBytes))) {
        const histogram = this.#histogramOf(table, desc)
        // Whoever gave room may have had this table take over what was not told of it.
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

  /** The series for what has none of its own. */
  #overflow(table: ResourceTable, desc: DurationDesc): DurationSeries {
    const histogram = table.histograms.get(desc)
    if (histogram?.overflow !== undefined) return histogram.overflow
    if (table !== this.#others && !this.#mayGrow(table, this.#seriesBytes + metricBytes)) {
      // The newest makes room for it.
      if (histogram !== undefined && histogram.series.length > 0)
        return this.#cut(table, histogram, histogram.series.length - 1)
      return this.#overflow(this.#serviceOf(table, false), desc)
    }
    const made = this.#histogramOf(table, desc)
    if (made.overflow !== undefined) return made.overflow // it was taken over meanwhile
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

  /** Lets go of the newest series of a metric but for `most`. Returns the overflow series, which goes on for them. */
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

  /** Lets go of a resource; `to` takes over what was not told of it. */
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

  /** A table takes so much more, or less. */
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

  /** Whoever was refused asks again after the next collection: what is beyond the room comes often. */
  #mayGrow(table: ResourceTable, bytes: number): boolean {
    if (table.refused) return false
    if (this.#hasRoom(table.owner, bytes)) return true
    table.refused = !this.#isGiving
    return false
  }

  /**
   * Whether there is room for so much more of an owner's, for which whoever has most gives something up. `own`: if that is
   * the owner itself, too.
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

  /** An owner gives up some of what it has, and what it misses least first. */
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

  /** The bounds of a metric, made once. */
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
  /** `serviceKey`; '' until it is asked for. */
  key: string
  readonly isService: boolean
  readonly histograms = new Map<DurationDesc, HistogramTable>()
  bytes = 0
  /** Overflow series left out. */
  series = 0
  forgotten = false
  /** A receiver knows of it. */
  reported = false
  /** It gets no more room until the next collection. */
  refused = false
  /** Collections since something was counted last. */
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
    this.reported = true
    this.refused = false
    this.idle++
    for (const histogram of this.histograms.values()) if (histogram.markReported()) this.idle = 0
  }
}

/** What the values of dimensions take: most characters are of one byte. */
function textBytesOf({ size, values }: Attributes): number {
  let bytes = 0
  for (let i = 0; i < size; i++) {
    const value = values[i]
    if (typeof value === 'string') bytes += value.length
  }
  return bytes
}
