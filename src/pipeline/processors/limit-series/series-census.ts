import { counted } from '../../../foundation/lib/small-tables.ts'
import { LabelCounts } from './label-counts.ts'
import { ownCopy, SeriesHash } from './series-hash.ts'
import { SeriesTable } from './series-table.ts'

/** Metrics that are told apart; the series of those that come later are bounded together with all others only. */
const mostMetrics = 16_384
/** Metrics whose labels are counted at the same time. */
const mostWatched = 8
/** Metrics whose losses are kept by name. */
const mostNamed = 1024

/** Of a metric in memory, beside its name. */
const metricBytes = 300

/** What is known of a metric. */
export interface MetricCount {
  readonly name: string
  readonly index: number
  series: number
  /** Points that found no room, since it last had room for long. */
  refused: number
  /** When the last of them came. */
  refusedMs: number
  labels: LabelCounts | undefined
}

/** All that the bound on series remembers: which there are, whose, and who asked for more. It outlives its settings. */
export class SeriesCensus {
  readonly hash = new SeriesHash('content')
  readonly table = new SeriesTable()
  readonly metrics = new Map<string, MetricCount>()
  /** Points that found no room, ever. */
  dropped = 0
  /** Points of all metrics that found no room because of the global bound, and when the last of them came. */
  refused = 0
  refusedMs = Number.NEGATIVE_INFINITY
  /** When the next part of the table is to be swept. */
  sweepMs = 0
  readonly #byIndex: (MetricCount | undefined)[] = []
  readonly #free: number[] = []
  /** Stands for the metrics beyond the bound. */
  readonly others = this.#enlist('')
  readonly #watched: MetricCount[] = []
  #bytes = 0
  #droppedBy = new Map<string, number>()

  constructor() {
    counted(this)
  }

  /** Of the series and of what is known of their metrics. */
  get bytes(): number {
    return this.#bytes + this.table.bytes
  }

  /** The metric of a name, which is known from now on; those beyond the bound share one without a name. */
  metric(name: string): MetricCount {
    const known = this.metrics.get(name)
    if (known !== undefined) return known
    if (this.metrics.size >= mostMetrics) return this.others
    const count = this.#enlist(ownCopy(name))
    this.metrics.set(count.name, count)
    this.#bytes += metricBytes + count.name.length
    return count
  }

  /** Who owns an entry of the table. */
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

  /** Counts the values of the metric's labels from now on, where no worse metrics take all the room. */
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

  /** Counts a point that found no room. */
  drop(name: string): void {
    this.dropped++
    const before = this.#droppedBy.get(name)
    if (before === undefined && this.#droppedBy.size >= mostNamed) this.#forgetSmallLosses()
    this.#droppedBy.set(before === undefined ? ownCopy(name) : name, (before ?? 0) + 1)
  }

  /** Those who lost most, the worst first. */
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

  /** Half of them go; should one come back, its count begins anew. */
  #forgetSmallLosses(): void {
    this.#droppedBy = new Map(this.offenders(mostNamed / 2))
  }
}
