import { grouped } from '../../foundation/lib/number-text.ts'
import type { Attributes } from '../../foundation/model/attributes.ts'
import type { Metric } from '../../foundation/model/metric.ts'
import { type Resource, type Scope, scopeIdentity } from '../../foundation/model/resource.ts'
import { type MetricCount, SeriesCensus } from './limit-series/series-census.ts'
import { SeriesTable } from './limit-series/series-table.ts'
import type { LimitSettings } from './limit-settings.ts'
import { overflow, type Processor, type ProcessorEnv, type Stage, type Verdict } from './processor.ts'

/** Limits the number of metric series: the first ones are kept, until they are silent for too long. */
export const limitSeries: Processor<LimitSettings> = {
  name: 'limit_series',
  summary: 'Limits the number of metric series, and reports the label with too many values',
  signals: ['metrics'],
  compile({ limits }, env, before) {
    const { cardinality } = limits
    if (!cardinality.enabled) return undefined
    return new SeriesLimit(
      cardinality,
      env,
      before instanceof SeriesLimit ? before.census : new SeriesCensus(),
    )
  },
}

type CardinalitySettings = LimitSettings['limits']['cardinality']

/** Verdict on a new series above the limit if there is no overflow series. */
const dropped = 'series_limit'

/** Fill level from which operators are warned. */
const nearlyFull = 0.8
/** How long a metric that lost points stays in the warning, in milliseconds. */
const recentMs = 600_000
/** Unit of `seen`: small compared with the shortest `series_ttl`. */
const tickMs = 100
/** Maximum entries checked per call, but at least one part of the table, so that no call takes long. */
const mostSwept = 16_384
/** A metric above its limit asks to have its labels counted once per this number of points. */
const askEvery = 1024
const mostNamed = 50
const mostShown = 3

class SeriesLimit implements Stage {
  /** Often enough that sent series do not expire and rejected ones stay in the warning. */
  readonly lastingMs: number
  readonly census: SeriesCensus
  readonly #settings: CardinalitySettings
  readonly #overrides: ReadonlyMap<string, number>
  readonly #nowMs: () => number
  readonly #forgotten = (owner: number) => this.#forget(owner)
  readonly #refusal: Verdict
  #name = ''
  #resource: Resource | undefined
  #scope: Scope | undefined
  #count: MetricCount
  #limit = 0
  #now = 0
  #seen = 1

  constructor(settings: CardinalitySettings, env: ProcessorEnv, census: SeriesCensus) {
    this.#settings = settings
    this.#overrides = new Map(Object.entries(settings.overrides))
    this.#nowMs = env.nowMs
    this.#refusal = settings.on_limit === 'overflow' ? overflow : dropped
    this.census = census
    this.lastingMs = Math.min(settings.series_ttl / 4, recentMs / 2)
    this.#count = census.others
  }

  metric(metric: Metric, resource: Resource): Verdict {
    this.#begin(metric.name, resource, undefined)
    return ''
  }

  series(attributes: Attributes, metric: Metric, resource: Resource, scope?: Scope): Verdict {
    if (resource !== this.#resource || metric.name !== this.#name || scope !== this.#scope)
      this.#begin(metric.name, resource, scope)
    const { hash, table } = this.census
    const count = this.#count
    hash.of(attributes)
    const { low, high } = hash
    const known = table.touch(low, high, this.#seen)
    count.labels?.add(attributes, resource, hash)
    if (known) return ''
    if (count.series >= this.#limit || table.size >= this.#settings.global_max_series)
      return this.#refuse(count)
    table.add(low, high, count.index, this.#seen)
    count.series++
    if (count.labels === undefined && count.series >= this.#limit * nearlyFull) this.census.watch(count)
    return ''
  }

  counters(emit: (rule: string, outcome: string, total: number) => void): void {
    const { census } = this
    emit('', 'series', census.table.size)
    emit('', 'dropped', census.dropped)
    for (const [name, total] of census.offenders(mostNamed)) emit(name, 'dropped', total)
  }

  /** Metrics that lose points or soon will, the worst first, each with the label that causes it. */
  get warning(): string {
    const now = this.#nowMs()
    const noteworthy: MetricCount[] = []
    for (const count of this.census.metrics.values())
      if (this.#isNoteworthy(count, now)) noteworthy.push(count)
    noteworthy.sort((a, b) => b.refused - a.refused || b.series - a.series)
    const texts = noteworthy.slice(0, mostShown).map(count => this.#describe(count, isRecent(count, now)))
    if (noteworthy.length > mostShown)
      texts.push(`${noteworthy.length - mostShown} more metrics near or above their limit`)
    return [...this.#globalWarning(now), ...texts].join('; ')
  }

  #begin(name: string, resource: Resource, scope: Scope | undefined): void {
    const { census } = this
    this.#now = this.#nowMs()
    this.#seen = 1 + Math.max(0, Math.floor(this.#now / tickMs))
    if (name !== this.#name) census.release(this.#count)
    // This may remove metrics, so the count is looked up afterwards.
    this.#sweep()
    this.#name = name
    this.#resource = resource
    this.#scope = scope
    this.#count = census.metric(name)
    this.#limit = this.#count === census.others ? Number.POSITIVE_INFINITY : this.#limitOf(name)
    census.hash.begin(resource, scope === undefined ? '' : scopeIdentity(scope), name)
  }

  #limitOf(name: string): number {
    return this.#overrides.get(name) ?? this.#settings.default_max_series
  }

  #refuse(count: MetricCount): Verdict {
    const { census } = this
    const now = this.#now
    census.drop(this.#name)
    if (!isRecent(count, now)) count.refused = 0
    count.refused++
    if (count.labels === undefined && count.refused % askEvery === 0) census.watch(count)
    count.refusedMs = now
    if (census.table.size >= this.#settings.global_max_series) {
      if (!isRecent(census, now)) census.refused = 0
      census.refused++
      census.refusedMs = now
    }
    return this.#refusal
  }

  /**
   * Removes series that are silent for too long, one part of the table at a time; all parts take a quarter of that
   * time.
   */
  #sweep(): void {
    const { census } = this
    const { series_ttl } = this.#settings
    const pauseMs = series_ttl / 4 / SeriesTable.sweeps
    const since = this.#seen - Math.ceil(series_ttl / tickMs)
    // After a long pause, one pass over the whole table is enough.
    census.sweepMs = Math.max(census.sweepMs, this.#now - pauseMs * SeriesTable.sweeps)
    for (let looked = 0; census.sweepMs <= this.#now && looked < mostSwept; census.sweepMs += pauseMs)
      looked += since > 1 ? census.table.sweepNext(since, this.#forgotten) : 0
  }

  #forget(owner: number): void {
    const { census } = this
    const count = census.ownerOf(owner)
    count.series--
    if (count.labels !== undefined && !this.#isNoteworthy(count, this.#now)) census.unwatch(count)
    census.release(count)
  }

  #isNoteworthy(count: MetricCount, now: number): boolean {
    return isRecent(count, now) || count.series >= this.#limitOf(count.name) * nearlyFull
  }

  #describe(count: MetricCount, recent: boolean): string {
    const limit = this.#limitOf(count.name)
    const worst = count.labels?.worst ?? ''
    const label = worst === '' ? '' : `${worst} `
    const end = this.#settings.on_limit === 'overflow' ? 'points over it' : 'points dropped'
    const state = recent
      ? `limit ${grouped(limit)} series, ${grouped(count.refused)} ${end}`
      : `${grouped(count.series)} of ${grouped(limit)} series`
    return `metric ${count.name}: ${label}(${state})`
  }

  #globalWarning(now: number): string[] {
    const { census } = this
    const { global_max_series } = this.#settings
    const recent = isRecent(census, now)
    if (!recent && census.table.size < global_max_series * nearlyFull) return []
    const largest = [...census.metrics.values()].sort((a, b) => b.series - a.series).slice(0, mostShown)
    const names = largest.map(({ name, series }) => `${name} ${grouped(series)}`).join(', ')
    const lost = recent ? `, ${grouped(census.refused)} points over the limit` : ''
    const state = `${grouped(census.table.size)} of ${grouped(global_max_series)} series`
    return [`all metrics: ${state}${lost}; largest: ${names}`]
  }
}

function isRecent({ refusedMs }: { readonly refusedMs: number }, now: number): boolean {
  return now - refusedMs < recentMs
}
