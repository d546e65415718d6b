// The host metrics over OTLP: the readings of all collectors, in intervals, with the names of the semantic conventions.

import { build } from '../../foundation/lib/build.ts'
import { errorText, type Logger } from '../../foundation/lib/logger.ts'
import { Attributes } from '../../foundation/model/attributes.ts'
import type { OtelName } from '../../foundation/model/collector.ts'
import type { Gauge, HistogramPoint, Metric, NumberPoint, Sum } from '../../foundation/model/metric.ts'
import type { Resource, Scope } from '../../foundation/model/resource.ts'
import type { Intake } from '../../pipeline/batcher.ts'
import type { Run } from '../../signals/metrics/exposition/gatherer.ts'
import type { Page, Series, Source } from '../../signals/metrics/exposition/page.ts'

/** The running collectors, as far as a push needs them. */
export interface HostReadings {
  readonly page: Page
  readonly runs: readonly Run[]
  gather(runs: readonly Run[], withinMs: number): Promise<ReadonlySet<Source>>
}

export interface HostMetricsPushOptions {
  /** The collectors running now. */
  readonly metrics: () => HostReadings
  readonly intake: Intake<Metric>
  readonly host: { readonly resource: Resource }
  /** When the host's counters were zero: microseconds since the Unix epoch. */
  readonly bootUs: number
  readonly intervalMs: number
  readonly log: Logger
}

/** Maximum number of data points of a metric per item, so that no item is too large for a request. */
const mostPoints = 2000
/** Longest time that collectors may wait for their input; shorter intervals limit it further. */
const mostWaitMs = 10_000
/** Units of fractional values, even if some happen to be integers. */
const fractional = new Set(['s', 'J', '1', '%'])
/** Attributes that are numbers in the conventions. */
const numeric = new Set(['cpu.logical_number', 'onc_rpc.version'])

/** A point that each push fills again. */
interface Point extends NumberPoint {
  startUs: number
  timeUs: number
  value: number
}

/** A metric that each push fills again. */
type Output = (Gauge | (Sum & { integer: boolean })) & { readonly points: Point[] }

/** State of a series. */
interface Track {
  readonly output: Output
  readonly point: Point
  readonly scale: number
  readonly least: number
}

/** State of a histogram or summary series. */
interface LongTrack {
  readonly attributes: Attributes
  startUs: number
  timeUs: number
  count: number
}

export class HostMetricsPush {
  readonly #options: HostMetricsPushOptions
  readonly #scope: Scope = { name: 'svc/host', version: build().version }
  readonly #tracks = new WeakMap<Series, Track>()
  readonly #longTracks = new WeakMap<Series, LongTrack>()
  /** By OTLP name. */
  readonly #outputs = new Map<string, Output>()
  #page: Page | undefined
  #intervalMs: number
  #timer: NodeJS.Timeout | undefined
  #beganMs = performance.now()
  #busy = false
  #closed = false
  #fault = ''

  /** The first push comes after one interval. */
  constructor(options: HostMetricsPushOptions) {
    this.#options = options
    this.#intervalMs = options.intervalMs
    this.#schedule()
  }

  /** The next push comes one interval after the last one. */
  configure(intervalMs: number): void {
    this.#intervalMs = intervalMs
    if (!this.#busy) this.#schedule()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  /** Reads all collectors and exports their readings. Rejects if they cannot be read at all. */
  async push(): Promise<void> {
    const { metrics, intake, host } = this.#options
    const { resource } = host
    const source = metrics()
    const { page, runs } = source
    await source.gather(runs, Math.min(this.#intervalMs, mostWaitMs))
    if (this.#closed) return
    if (page !== this.#page) this.#outputs.clear()
    this.#page = page
    const timeUs = Date.now() * 1000
    // Metrics about the collectors themselves come from other sources.
    for (const [name, all] of page.read(new Set(runs))) {
      const { type } = all[0]!.family
      if (type === 'histogram') this.#addHistograms(name, all, timeUs)
      else if (type === 'summary') this.#addSummaries(name, all, timeUs)
      else for (const series of all) this.#fill(name, series, timeUs)
    }
    for (const output of this.#outputs.values()) {
      const { points } = output
      if (points.length === 0) continue
      if (points.length <= mostPoints) intake.add(resource, this.#scope, output)
      else
        for (let at = 0; at < points.length; at += mostPoints)
          intake.add(resource, this.#scope, { ...output, points: points.slice(at, at + mostPoints) })
      points.length = 0
    }
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    if (this.#closed) return
    const restMs = Math.max(0, this.#beganMs + this.#intervalMs - performance.now())
    this.#timer = setTimeout(() => void this.#pushOnTime(), restMs)
  }

  async #pushOnTime(): Promise<void> {
    this.#beganMs = performance.now()
    this.#busy = true
    let fault = ''
    try {
      await this.push()
    } catch (error) {
      fault = errorText(error)
    }
    this.#busy = false
    if (fault !== '' && fault !== this.#fault)
      this.#options.log.error('cannot export the host metrics', { reason: fault })
    this.#fault = fault
    this.#schedule()
  }

  #fill(name: string, series: Series, timeUs: number): void {
    let track = this.#tracks.get(series)
    // A previous configuration of collectors may have had other metrics.
    if (track === undefined || this.#outputs.get(track.output.name) !== track.output) {
      track = this.#track(name, series)
      this.#tracks.set(series, track)
    }
    const { output, point, scale, least } = track
    if (series.value < least) return
    const value = scale === 1 ? series.value : series.value * scale
    if (output.kind === 'sum') {
      // The counter was reset after the previous push.
      if (output.monotonic && value < point.value) point.startUs = point.timeUs
      if (output.integer && !Number.isInteger(value)) output.integer = false
    }
    point.value = value
    point.timeUs = timeUs
    output.points.push(point)
  }

  #track(pageName: string, series: Series): Track {
    const { family } = series
    const { otel } = family
    const name = otel?.name ?? pageName
    let output = this.#outputs.get(name)
    if (output === undefined) {
      const kind = otel?.kind ?? (family.type === 'counter' ? 'counter' : 'gauge')
      const unit = otel?.unit ?? family.unit
      const described = { name, description: family.help, unit, points: [] }
      output =
        kind === 'gauge'
          ? { kind, ...described }
          : { kind: 'sum', monotonic: kind === 'counter', integer: !fractional.has(unit), ...described }
      this.#outputs.set(name, output)
    }
    const startUs = output.kind === 'sum' ? this.#options.bootUs : 0
    const point = { attributes: attributesOf(series), startUs, timeUs: 0, value: 0 }
    return { output, point, scale: otel?.scale ?? 1, least: otel?.least ?? Number.NEGATIVE_INFINITY }
  }

  #addHistograms(name: string, all: readonly Series[], timeUs: number): void {
    const byBounds = new Map<string, { readonly bounds: number[]; readonly points: HistogramPoint[] }>()
    for (const series of all) {
      const { parts, sum, count } = series.distribution!
      if (!Number.isFinite(count)) continue
      const bounds = parts.map(([bound]) => bound)
      const cumulative = [...parts.map(([, value]) => value), count]
      const buckets = cumulative.map((value, i) => Math.max(0, Math.round(value - (cumulative[i - 1] ?? 0))))
      const { attributes, startUs } = this.#longTrack(series, count, timeUs)
      const group = byBounds.get(bounds.join()) ?? { bounds, points: [] }
      byBounds.set(bounds.join(), group)
      group.points.push({
        attributes,
        startUs,
        timeUs,
        count: buckets.reduce((total, here) => total + here, 0),
        sum,
        buckets,
      })
    }
    const { help: description, unit } = all[0]!.family
    for (const { bounds, points } of byBounds.values())
      this.#add({ kind: 'histogram', name, description, unit, bounds, points })
  }

  /** OTLP has summaries only for data from elsewhere; here they are exported as their parts. */
  #addSummaries(name: string, all: readonly Series[], timeUs: number): void {
    const sums: NumberPoint[] = []
    const counts: NumberPoint[] = []
    const quantiles: NumberPoint[] = []
    for (const series of all) {
      const { parts, sum, count } = series.distribution!
      const { attributes, startUs } = this.#longTrack(series, count, timeUs)
      sums.push({ attributes, startUs, timeUs, value: sum })
      counts.push({ attributes, startUs, timeUs, value: count })
      for (const [bound, value] of parts) {
        const its = Attributes.of({ ...attributes.toObject(), quantile: String(bound) })
        quantiles.push({ attributes: its, startUs: 0, timeUs, value })
      }
    }
    const { help: description, unit } = all[0]!.family
    const sum = { kind: 'sum', monotonic: true, description } as const
    this.#add({ ...sum, name: `${name}_sum`, unit, integer: false, points: sums })
    this.#add({ ...sum, name: `${name}_count`, unit: '', integer: true, points: counts })
    this.#add({ kind: 'gauge', name, description, unit, points: quantiles })
  }

  #longTrack(series: Series, count: number, timeUs: number): LongTrack {
    let track = this.#longTracks.get(series)
    if (track === undefined) {
      track = { attributes: attributesOf(series), startUs: this.#options.bootUs, timeUs, count }
      this.#longTracks.set(series, track)
    }
    if (count < track.count) track.startUs = track.timeUs
    track.timeUs = timeUs
    track.count = count
    return track
  }

  #add(metric: Metric): void {
    this.#options.intake.add(this.#options.host.resource, this.#scope, metric)
  }
}

/** Attributes by the conventions. An empty label is absent. */
function attributesOf(series: Series): Attributes {
  const { otel } = series.family
  const attributes = Attributes.of(otel?.constant ?? {})
  const names = labelNames(series)
  for (let i = 0; i < names.length; i++) {
    const value = series.labels[i]!
    if (value !== '') set(attributes, otel, names[i]!, value)
  }
  const id = otel?.id?.map(label => series.labels[names.indexOf(label)] ?? '')
  if (id !== undefined) attributes.set('hw.id', id.join('/'))
  return attributes
}

function set(attributes: Attributes, otel: OtelName | undefined, label: string, text: string): void {
  const key = otel?.attributes?.[label]
  const value = key === undefined ? text : (otel?.values?.[text] ?? text)
  attributes.set(key ?? label, numeric.has(key ?? '') && /^\d+$/.test(value) ? Number(value) : value)
}

/** The labels of the family, without those that the page omits. */
function labelNames({ family, labels, prefix }: Series): readonly string[] {
  if (labels.length === family.labels.length) return family.labels
  return [...prefix.matchAll(/[{,](\w+)="(?:[^"\\]|\\.)*"/g)].map(([, name]) => name!)
}
