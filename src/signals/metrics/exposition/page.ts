// Readings of all collectors, kept between scrapes, so that the page is written from existing strings.

import { labelText } from '../../../foundation/lib/label-text.ts'
import type { Distribution, Family, Readings } from '../../../foundation/model/collector.ts'
import type { Bounds } from './bounds.ts'
import { numberText } from './number-text.ts'
import { headerOf, isCurrent, render, type Series, type Slot, type Source } from './slot.ts'

export type { Series, Source } from './slot.ts'

/** Rounds without a reading after which a series is forgotten. */
const roundsKept = 20
/** Memory of a series without its strings, in bytes. */
const seriesBytes = 350

/** Series of one family object by label values. */
interface Index {
  readonly family: Family
  readonly slot: Slot
  single: Series | undefined
  readonly byText: Map<string, Series>
  readonly byTwo: Map<string, Map<string, Series>>
}

/** A series with the label values of its readings. */
interface Place {
  readonly family: Family
  readonly a: string | undefined
  readonly b: string | undefined
  /** Instead of `a` and `b`: more, or those of a distribution. */
  readonly long: readonly string[] | undefined
  readonly index: Index
  readonly series: Series
}

export interface PageOptions {
  /** Prefix of all names, `node`. */
  readonly namespace: string
  readonly bounds: Bounds
}

export interface Written {
  readonly text: string
  readonly families: number
  readonly series: number
  /** Families omitted by the limit on their number. */
  readonly dropped: number
}

/** The page. Readings of a source are taken in one turn between `begin` calls; nothing here waits. */
export class Page {
  readonly #namespace: string
  readonly #bounds: Bounds
  readonly #slots = new Map<string, Slot>()
  readonly #indexes = new Map<Family, Index>()
  readonly #readings = new Map<Source, SourceReadings>()
  /** Of the last page. */
  #sources: ReadonlySet<Source> = new Set()
  #order: Slot[] = []
  #ordered = true
  #bytes = 0
  /** Index of the last reading: consecutive readings are often of one family. */
  #last: Index | undefined
  /** Round of a source at which old series are removed. */
  #sweepAt = roundsKept

  constructor({ namespace, bounds }: PageOptions) {
    this.#namespace = namespace
    this.#bounds = bounds
  }

  /** Kept series, including those that are not shown now. */
  get size(): number {
    let size = 0
    for (const { series } of this.#slots.values()) size += series.length
    return size
  }

  /** Approximate memory of all series. */
  get bytes(): number {
    return this.#bytes
  }

  /** Starts a round of a source: its previous readings are no longer on the page. */
  begin(source: Source): Readings {
    if (++source.round >= this.#sweepAt) this.#sweep(source.round)
    let readings = this.#readings.get(source)
    if (readings === undefined) {
      readings = new SourceReadings(this, source)
      this.#readings.set(source, readings)
    }
    readings.begin()
    return readings
  }

  /** The place of a series, created if it is new. */
  place(source: Source, family: Family, a?: string, b?: string): Place {
    const index = this.#index(family)
    let series: Series | undefined
    if (a === undefined) series = index.single
    else if (b === undefined) series = index.byText.get(a)
    else series = index.byTwo.get(a)?.get(b)
    if (series === undefined) {
      const labels = a === undefined ? [] : b === undefined ? [a] : [a, b]
      series = this.#add(source, family, index, labels)
      if (a === undefined) index.single = series
      else if (b === undefined) index.byText.set(a, series)
      else {
        const inner = index.byTwo.get(a)
        if (inner) inner.set(b, series)
        else index.byTwo.set(a, new Map([[b, series]]))
      }
    }
    return { family, a, b, long: undefined, index, series }
  }

  /** The same with any number of labels. */
  longPlace(source: Source, family: Family, labels: readonly string[]): Place {
    const index = this.#index(family)
    const series = this.#long(source, family, index, labels)
    return { family, a: undefined, b: undefined, long: [...labels], index, series }
  }

  put(source: Source, { index, series }: Place, value: number): void {
    if (this.#take(source, index, series)) this.#set(index.slot, series, value)
    else if (this.#bounds.dropsLabels) this.#merge(index.slot, series, value)
  }

  putDistribution(source: Source, { index, series }: Place, distribution: Distribution): void {
    if (this.#take(source, index, series)) {
      series.distribution = distribution
      index.slot.stale = true
    }
    // Distributions that a dropped label merges cannot be summed: their bounds may differ.
    else if (this.#bounds.dropsLabels && agrees(index)) source.duplicates++
  }

  /** Shown series with the last readings of `sources`, by family in the page's order. */
  *read(sources: ReadonlySet<Source>): Generator<readonly [name: string, series: readonly Series[]]> {
    for (const slot of this.#shown()) {
      const current = slot.series.filter(series => isCurrent(series) && sources.has(series.source))
      if (current.length > 0) yield [slot.name, current]
    }
  }

  /** Known families with their full names. */
  families(): readonly (readonly [name: string, family: Family])[] {
    return this.#shown().map(({ name, family }) => [name, family])
  }

  /** The page in the text format 0.0.4, with the last readings of `sources`. */
  write(sources: ReadonlySet<Source>): Written {
    for (const readings of this.#readings.values()) readings.end()
    const others = !same(sources, this.#sources)
    this.#sources = sources
    let text = ''
    let families = 0
    let count = 0
    let dropped = 0
    for (const slot of this.#shown()) {
      if (others || slot.stale) render(slot, sources)
      if (slot.lines === 0) continue
      if (this.#bounds.mostFamilies > 0 && families >= this.#bounds.mostFamilies) {
        dropped++
        continue
      }
      families++
      count += slot.lines
      text += slot.text
    }
    return { text, families, series: count, dropped }
  }

  #shown(): readonly Slot[] {
    if (!this.#ordered) {
      this.#order = [...this.#slots.values()]
        .filter(({ shown }) => shown)
        .sort((a, b) => compare(a.name, b.name))
      this.#ordered = true
    }
    for (const slot of this.#order) {
      if (slot.sorted) continue
      slot.series.sort(compareSeries)
      slot.sorted = true
    }
    return this.#order
  }

  #index(family: Family): Index {
    if (this.#last?.family === family) return this.#last
    const known = this.#indexes.get(family)
    if (known !== undefined) {
      this.#last = known
      return known
    }
    const name = family.absolute ? family.name : `${this.#namespace}_${family.name}`
    let slot = this.#slots.get(name)
    if (slot === undefined) {
      slot = {
        name,
        family,
        header: headerOf(name, family),
        series: [],
        sorted: true,
        byPrefix: this.#bounds.dropsLabels ? new Map() : undefined,
        shown: this.#bounds.shows(name),
        text: '',
        lines: 0,
        stale: true,
      }
      this.#slots.set(name, slot)
      this.#ordered = false
    } else slot.byPrefix ??= new Map(slot.series.map(series => [series.prefix, series]))
    const index = { family, slot, single: undefined, byText: new Map(), byTwo: new Map() }
    this.#indexes.set(family, index)
    return index
  }

  #long(source: Source, family: Family, index: Index, labels: readonly string[]): Series {
    const key = labels.join('\uffff')
    const known = index.byText.get(key)
    if (known !== undefined) return known
    const series = this.#add(source, family, index, labels)
    index.byText.set(key, series)
    return series
  }

  #add(source: Source, family: Family, { slot }: Index, values: readonly string[]): Series {
    if (values.length !== family.labels.length)
      throw new Error(`${family.name} has ${family.labels.length} labels, but got ${values.length} values`)
    const names = family.labels.filter(label => !this.#bounds.drops(label))
    const labels = values.filter((_, i) => !this.#bounds.drops(family.labels[i]!))
    // `join` returns a flat string; a concatenation is a tree of parts, which would be walked for each page.
    const prefix = [slot.name, labelText(names, labels), ' '].join('')
    const same = slot.byPrefix?.get(prefix)
    if (same !== undefined && alike(same.family, family)) return same
    const made: Series = {
      family,
      labels,
      source,
      value: 0,
      distribution: undefined,
      prefix,
      text: '0',
      round: 0,
    }
    slot.series.push(made)
    this.#bytes += bytesOf(made)
    slot.byPrefix?.set(prefix, made)
    slot.sorted = false
    slot.stale = true
    return made
  }

  /** Whether this is the first reading of the series in this round. */
  #take(source: Source, index: Index, series: Series): boolean {
    const matches = agrees(index)
    if (matches && !isCurrent(series)) {
      if (series.source !== source) index.slot.stale = true
      series.source = source
      series.round = source.round
      return true
    }
    if (!matches || !this.#bounds.dropsLabels) source.duplicates++
    return false
  }

  #set(slot: Slot, series: Series, value: number): void {
    if (series.value === value) return
    slot.stale = true
    series.value = value
    series.text = numberText(value)
  }

  /** A dropped label made two series one: counters are summed, otherwise the last value counts. */
  #merge(slot: Slot, series: Series, value: number): void {
    this.#set(slot, series, series.family.type === 'counter' ? series.value + value : value)
  }

  /** Removes series that were not read for long. */
  #sweep(round: number): void {
    this.#sweepAt = round + roundsKept
    this.#last = undefined
    for (const [family, index] of this.#indexes) {
      if (index.single && isOld(index.single)) index.single = undefined
      for (const [key, series] of index.byText) if (isOld(series)) index.byText.delete(key)
      for (const [key, inner] of index.byTwo) {
        for (const [text, series] of inner) if (isOld(series)) inner.delete(text)
        if (inner.size === 0) index.byTwo.delete(key)
      }
      if (index.single === undefined && index.byText.size + index.byTwo.size === 0)
        this.#indexes.delete(family)
    }
    for (const readings of this.#readings.values()) readings.forget()
    for (const slot of this.#slots.values()) {
      if (!slot.series.some(isOld)) continue
      for (const series of slot.series) if (isOld(series)) this.#bytes -= bytesOf(series)
      for (const series of slot.series)
        if (isOld(series) && slot.byPrefix?.get(series.prefix) === series) slot.byPrefix.delete(series.prefix)
      slot.series = slot.series.filter(series => !isOld(series))
      if (slot.series.length > 0) continue
      this.#slots.delete(slot.name)
      this.#ordered = false
    }
  }
}

/** The prefix occurs in its line, in the lines of its family, in its labels and in the key of the index. */
function bytesOf({ prefix }: Series): number {
  return seriesBytes + 4 * prefix.length
}

/** Readings of one source. They come in nearly the same order each round, so the next series need not be looked up. */
class SourceReadings implements Readings {
  readonly #page: Page
  readonly #source: Source
  /** Places of this round up to `#at`, then those of the round before. */
  #places: Place[] = []
  #at = 0

  constructor(page: Page, source: Source) {
    this.#page = page
    this.#source = source
  }

  begin(): void {
    this.end()
    this.#at = 0
  }

  /** No further readings in this round: those of the round before that did not come again are no longer shown. */
  end(): void {
    const places = this.#places
    for (let i = this.#at; i < places.length; i++) places[i]!.index.slot.stale = true
    if (this.#at < places.length) places.length = this.#at
  }

  /** Old series are removed from the page: places of others stay, as they tell when one of those vanishes. */
  forget(): void {
    const kept = this.#places.filter(({ series }) => !isOld(series))
    this.#at -= this.#places.slice(0, this.#at).filter(({ series }) => isOld(series)).length
    this.#places = kept
  }

  set(family: Family, value: number, a?: string, b?: string, c?: string): void {
    if (c !== undefined) {
      this.setAll(family, value, [a!, b!, c])
      return
    }
    let place = this.#places[this.#at]
    if (place?.family !== family || place.a !== a || place.b !== b || place.long !== undefined)
      place = this.#enter(this.#page.place(this.#source, family, a, b))
    this.#at++
    this.#page.put(this.#source, place, value)
  }

  setAll(family: Family, value: number, labels: readonly string[]): void {
    if (labels.length < 3) this.set(family, value, labels[0], labels[1])
    else this.#page.put(this.#source, this.#long(family, labels), value)
  }

  setDistribution(family: Family, distribution: Distribution, labels: readonly string[]): void {
    this.#page.putDistribution(this.#source, this.#long(family, labels), distribution)
  }

  #long(family: Family, labels: readonly string[]): Place {
    let place = this.#places[this.#at]
    if (place?.family !== family || place.long === undefined || !equal(place.long, labels))
      place = this.#enter(this.#page.longPlace(this.#source, family, labels))
    this.#at++
    return place
  }

  /** The round goes on in another way than the one before. */
  #enter(place: Place): Place {
    this.end()
    this.#places.push(place)
    place.index.slot.stale = true
    return place
  }
}

function equal(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}

function same(a: ReadonlySet<Source>, b: ReadonlySet<Source>): boolean {
  if (a.size !== b.size) return false
  for (const source of a) if (!b.has(source)) return false
  return true
}

/** Families with one name must have one type and one help: a conflicting family waits until the others are gone. */
function agrees({ family, slot }: Index): boolean {
  if (alike(family, slot.family)) return true
  if (slot.series.some(isCurrent)) return false
  slot.family = family
  slot.header = headerOf(slot.name, family)
  slot.stale = true
  return true
}

function alike(a: Family, b: Family): boolean {
  return a === b || (a.type === b.type && a.help === b.help)
}

function isOld({ round, source }: Series): boolean {
  return round < source.round - roundsKept
}

/** Series with fewer labels come first, then the first different label value decides. */
function compareSeries(a: Series, b: Series): number {
  if (a.labels.length !== b.labels.length) return a.labels.length - b.labels.length
  for (let i = 0; i < a.labels.length; i++) {
    const order = compare(a.labels[i]!, b.labels[i]!)
    if (order !== 0) return order
  }
  return 0
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
