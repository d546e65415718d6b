import { Attributes, type AttributeValue } from '../model/attributes.ts'
import type { DurationDesc } from '../model/exchange.ts'
import type { Metric } from '../model/metric.ts'
import type { Resource } from '../model/resource.ts'
import { type DurationSeries, explicit, exponential, type HistogramForm, Scale } from './duration-series.ts'

export interface RedOptions {
  /** Microseconds since the Unix epoch: from when the table counts. */
  readonly startUs: number
  /** Series beyond this many go to one series per resource and metric, marked `otel.metric.overflow`. */
  readonly maxSeries?: number
  /** The same for the series of one resource, so that a flood of one takes no room from the others. */
  readonly maxResourceSeries?: number
  /** Resources beyond this many are not recorded at all; what they lose is counted in `lost`. */
  readonly maxResources?: number
  /** Bytes of all series; beyond them new ones overflow as beyond `maxSeries`. Default: no bound. */
  readonly maxBytes?: number
  /**
   * `exponential`: each series chooses its bounds by what it sees, 160 buckets at most. What `merge` adds then stands in
   * the geometric middle of the bucket that it was counted in.
   */
  readonly histograms?: 'explicit' | 'exponential'
}

/** What a series takes without the texts of its dimensions, measured: explicit bounds, and 160 buckets besides. */
const explicitBytes = 1400
const exponentialBytes = 2700

/** The metrics of one resource, as `collect` gives them. */
export interface ResourceMetrics {
  readonly resource: Resource
  readonly metrics: Metric[]
}

/**
 * Rate, errors and duration of calls: one exact, cumulative histogram for each resource, metric and combination of
 * dimensions. Recording into a series that exists allocates nothing.
 */
export class RedTable {
  /** Observations that went to an overflow series. */
  overflowed = 0
  /** Observations that found no room at all. */
  lost = 0
  private readonly resources = new Map<Resource, ResourceTable>()
  private readonly scales = new Map<DurationDesc, Scale>()
  private readonly maxSeries: number
  private readonly maxResourceSeries: number
  private readonly maxResources: number
  private readonly maxBytes: number
  private readonly seriesBytes: number
  private readonly form: HistogramForm
  private seriesCount = 0
  private textBytes = 0
  /** When the last collection was, and so when a series that is new since then began. */
  private sinceUs: number

  constructor(options: RedOptions) {
    this.sinceUs = options.startUs
    this.maxSeries = options.maxSeries ?? 10_000
    this.maxResourceSeries = options.maxResourceSeries ?? 1_000
    this.maxResources = options.maxResources ?? 4_096
    this.maxBytes = options.maxBytes ?? Number.POSITIVE_INFINITY
    this.seriesBytes = options.histograms === 'exponential' ? exponentialBytes : explicitBytes
    this.form = options.histograms === 'exponential' ? exponential : explicit
  }

  /** How many series there are, overflow series left out. */
  get series(): number {
    return this.seriesCount
  }

  /** Memory that is taken now, by estimate. */
  get bytes(): number {
    return this.seriesCount * this.seriesBytes + this.textBytes
  }

  /** Records one call. `dimensions` are copied. */
  observe(resource: Resource, desc: DurationDesc, dimensions: Attributes, durationNs: number): void {
    this.find(resource, desc, dimensions, 1)?.observe(durationNs)
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
    this.find(resource, desc, dimensions, count)?.merge(count, sumNs, buckets)
  }

  /**
   * All series at `timeUs` (microseconds since the Unix epoch), sums in seconds. The points stay valid until the next
   * call on this table. Resources that were forgotten are told here for the last time.
   */
  collect(timeUs: number): ResourceMetrics[] {
    const all: ResourceMetrics[] = []
    for (const [resource, table] of this.resources) {
      all.push({ resource, metrics: table.metrics(timeUs) })
      if (!table.forgotten) continue
      this.resources.delete(resource)
      this.seriesCount -= table.series
      this.textBytes -= table.textBytes
    }
    this.sinceUs = timeUs
    return all
  }

  /** The resource is gone (its process ended): its series are collected once more and then let go. */
  forget(resource: Resource): void {
    const table = this.resources.get(resource)
    if (table !== undefined) table.forgotten = true
  }

  private find(
    resource: Resource,
    desc: DurationDesc,
    dimensions: Attributes,
    count: number,
  ): DurationSeries | undefined {
    let table = this.resources.get(resource)
    if (table === undefined) {
      if (this.resources.size >= this.maxResources) {
        this.lost += count
        return undefined
      }
      table = new ResourceTable()
      this.resources.set(resource, table)
    }
    let histogram = table.histograms.get(desc)
    if (histogram === undefined) {
      histogram = new HistogramTable(this.scaleOf(desc), this.form)
      table.histograms.set(desc, histogram)
    }
    const found = histogram.find(dimensions)
    if (found !== undefined) return found
    const isFull = this.seriesCount >= this.maxSeries || this.bytes >= this.maxBytes
    if (isFull || table.series >= this.maxResourceSeries) {
      this.overflowed += count
      return histogram.overflow(this.sinceUs)
    }
    const textBytes = textBytesOf(dimensions)
    this.seriesCount++
    this.textBytes += textBytes
    table.series++
    table.textBytes += textBytes
    return histogram.add(dimensions, this.sinceUs)
  }

  /** The bounds of a metric, made once. */
  private scaleOf(desc: DurationDesc): Scale {
    let scale = this.scales.get(desc)
    if (scale === undefined) {
      scale = new Scale(desc.bounds)
      this.scales.set(desc, scale)
    }
    return scale
  }
}

class ResourceTable {
  readonly histograms = new Map<DurationDesc, HistogramTable>()
  /** Overflow series left out. */
  series = 0
  textBytes = 0
  forgotten = false

  metrics(timeUs: number): Metric[] {
    const metrics: Metric[] = []
    for (const [desc, histogram] of this.histograms) metrics.push(histogram.metric(desc, timeUs))
    return metrics
  }
}

/** Where a list of dimensions led: the series that ends here, and the keys that may come next. */
class Place {
  series: DurationSeries | undefined
  next: Branch | undefined
}

/** The values of one key. `other` has another key: a protocol leaves out the dimensions that do not apply. */
class Branch {
  readonly key: string
  readonly places = new Map<AttributeValue, Place>()
  readonly other: Branch | undefined
  constructor(key: string, other: Branch | undefined) {
    this.key = key
    this.other = other
  }
}

/** The series of one resource and metric, in a tree: a protocol gives its keys in a fixed order. */
class HistogramTable {
  private readonly all: DurationSeries[] = []
  private readonly root = new Place()
  private readonly scale: Scale
  private readonly form: HistogramForm
  private overflowing: DurationSeries | undefined

  constructor(scale: Scale, form: HistogramForm) {
    this.scale = scale
    this.form = form
  }

  find(dimensions: Attributes): DurationSeries | undefined {
    let place = this.root
    for (let i = 0; i < dimensions.size; i++) {
      const next = branchOf(place, dimensions.keys[i]!)?.places.get(dimensions.values[i]!)
      if (next === undefined) return undefined
      place = next
    }
    return place.series
  }

  /** Adds a series that `find` did not find. */
  add(dimensions: Attributes, startUs: number): DurationSeries {
    const attributes = new Attributes()
    let place = this.root
    for (let i = 0; i < dimensions.size; i++) {
      const key = dimensions.keys[i]!
      const value = dimensions.values[i]!
      attributes.add(key, value)
      let branch = branchOf(place, key)
      if (branch === undefined) {
        branch = new Branch(key, place.next)
        place.next = branch
      }
      let next = branch.places.get(value)
      if (next === undefined) {
        next = new Place()
        branch.places.set(value, next)
      }
      place = next
    }
    place.series = this.form.create(attributes, startUs, this.scale)
    this.all.push(place.series)
    return place.series
  }

  /** The series for whatever has no room of its own. */
  overflow(startUs: number): DurationSeries {
    if (this.overflowing === undefined) {
      this.overflowing = this.form.create(
        Attributes.of({ 'otel.metric.overflow': true }),
        startUs,
        this.scale,
      )
      this.all.push(this.overflowing)
    }
    return this.overflowing
  }

  metric(desc: DurationDesc, timeUs: number): Metric {
    return this.form.metric(desc, this.all, timeUs)
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

function branchOf(place: Place, key: string): Branch | undefined {
  let branch = place.next
  while (branch !== undefined && branch.key !== key) branch = branch.other
  return branch
}
