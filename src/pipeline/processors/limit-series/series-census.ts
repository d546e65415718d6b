import { counted } from '../../../foundation/lib/small-tables.ts'
import { LabelCounts } from './label-counts.ts'
import { ownCopy, SeriesHash } from './series-hash.ts'
import { SeriesTable } from './series-table.ts'

/** Maximum metrics counted separately; later ones share the global limit only. */
const mostMetrics = 16_384
/** Maximum metrics whose labels are counted at the same time. */
const mostWatched = 8
/** Maximum metrics with their own loss count. */
const mostNamed = 1024

/** Memory of a metric without its name, in bytes. */
const metricBytes = 300

/** State of a metric. */
export interface MetricCount {
  readonly name: string
  readonly index: number
  series: number
  /** Points over the limit, since it last had none for long. */
  refused: number
  /** Time of the last of them. */
  refusedMs: number
  labels: LabelCounts | undefined
}

/** State of the series limit: known series, their metrics, and losses. It is kept across changes of settings. */
export class SeriesCensus {
  readonly hash = new SeriesHash('content')
  readonly table = new SeriesTable()
  readonly metrics = new Map<string, MetricCount>()
  /** Total points over a limit. */
  dropped = 0
  /** Points of all metrics over the global limit, and the time of the last one. */
  refused = 0
  refusedMs = Number.NEGATIVE_INFINITY
  /** Time to sweep the next part of the table. */
  sweepMs = 0
  readonly #byIndex: (MetricCount | undefined)[] = []
  readonly #free: number[] = []
  /** Stands for all metrics above the maximum. */
  readonly others = this.#enlist('')
  readonly #watched: MetricCount[] = []
  #bytes = 0
  #droppedBy = new Map<string, number>()

  constructor() {
    counted(this)
  }

  /** Memory of the series and their metrics. */
  get bytes(): number {
    return this.#bytes + this.table.bytes
  }

  /** Metric with this name, added if new; all above the maximum share one without a name. */
  metric(name: string): MetricCount {
    const known = this.metrics.get(name)
    if (known !== undefined) return known
    if (this.metrics.size >= mostMetrics) return this.others
    const count = this.#enlist(ownCopy(name))
    this.metrics.set(count.name, count)
    this.#bytes += metricBytes + count.name.length
    return count
  }

  /** Metric of a table entry. */
  ownerOf(index: number): MetricCount {
    return this.#byIndex[index]!
  }

  /** Forgets a metric that has no series and is not watched. */
  release(count: MetricCount): void {
    if (count.series > 0 || count.labels !== undefined || this.#byIndex[count.index] !== count) return
    if (count === this.others) return
    this.metrics.delete(count.name)
    this.#bytes -= metricBytes + count.name.length
    this.#byIndex[count.index] = undefined
    this.#free.push(count.index)
  }

  /** Starts counting the metric's label values, unless worse metrics take all places. */
  watch(count: MetricCount): void {
    if (count.labels !== undefined || count === this.others) return
    if (this.#watched.length >= mostWatched) {
      const least = this.#watched.reduce((a, b) => (b.refused < a.refused ? b : a))
      if (least.refused >= count.refused) return
      this.unwatch(least)
    }
    count.labels = new LabelCounts()
    this.#watched.push(count)
  }

  unwatch(count: MetricCount): void {
    if (count.labels === undefined) return
    count.labels = undefined
    this.#watched.splice(this.#watched.indexOf(count), 1)
    this.release(count)
  }

  /** Counts a point over the limit. */
  drop(name: string): void {
    this.dropped++
    const before = this.#droppedBy.get(name)
    if (before === undefined && this.#droppedBy.size >= mostNamed) this.#forgetSmallLosses()
    this.#droppedBy.set(before === undefined ? ownCopy(name) : name, (before ?? 0) + 1)
  }

  /** Metrics with the most losses, the worst first. */
  offenders(most: number): [name: string, dropped: number][] {
    return [...this.#droppedBy].sort(([, a], [, b]) => b - a).slice(0, most)
  }

  #enlist(name: string): MetricCount {
    const index = this.#free.pop() ?? this.#byIndex.length
    const count = {
      name,
      index,
      series: 0,
      refused: 0,
      refusedMs: Number.NEGATIVE_INFINITY,
      labels: undefined,
    }
    this.#byIndex[index] = count
    return count
  }

  /** Drops the smaller half; a metric that returns is counted from 0. */
  #forgetSmallLosses(): void {
    this.#droppedBy = new Map(this.offenders(mostNamed / 2))
  }
}
