// Readings of all collectors, kept between scrapes, so that the page is written from existing strings.

import { escapedHelp, labelText } from '../../../foundation/lib/label-text.ts'
import type { Distribution, Family, Readings } from '../../../foundation/model/collector.ts'
import type { Bounds } from './bounds.ts'
import { numberText } from './number-text.ts'

/** Rounds without a reading after which a series is forgotten. */
const roundsKept = 20
/** Memory of a series without its strings, in bytes. */
const seriesBytes = 300

/** One series. Its text is made once, that of its value when the value changes. */
export interface Series {
  readonly family: Family
  /** In the order of `family.labels`, without dropped labels. */
  readonly labels: readonly string[]
  /** Source of the last reading. */
  source: Source
  value: number
  distribution: Distribution | undefined
  /** Text before the number. */
  readonly prefix: string
  text: string
  /** Round of the source in which it was last read. */
  round: number
}

/** Origin of readings: a collector. */
export interface Source {
  readonly name: string
  /** Incremented with each reading; 0 before the first. */
  round: number
  /** Duplicate readings of a series since the start. */
  duplicates: number
}

/** All series with one name. */
interface Slot {
  /** Full name, with the namespace. */
  readonly name: string
  /** Family with the type and help to show: that of the first shown series. */
  family: Family
  header: string
  series: Series[]
  sorted: boolean
  /** Series by prefix, if several family objects, or dropped labels, may lead to the same series. */
  byPrefix: Map<string, Series> | undefined
  readonly shown: boolean
}

/** Series of one family object by label values. */
interface Index {
  readonly family: Family
  readonly slot: Slot
  single: Series | undefined
  readonly byText: Map<string, Series>
  readonly byTwo: Map<string, Map<string, Series>>
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
    return new SourceReadings(this, source)
  }

  put(source: Source, family: Family, value: number, a?: string, b?: string, c?: string): void {
    const index = this.#index(family)
    let series: Series | undefined
    if (a === undefined) series = index.single
    else if (b === undefined) series = index.byText.get(a)
    else if (c === undefined) series = index.byTwo.get(a)?.get(b)
    else {
      this.putAll(source, family, value, [a, b, c])
      return
    }
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
    if (this.#take(source, index, series)) this.#set(series, value)
    else if (this.#bounds.dropsLabels) this.#merge(series, value)
  }

  putAll(source: Source, family: Family, value: number, labels: readonly string[]): void {
    if (labels.length < 3) {
      this.put(source, family, value, labels[0], labels[1])
      return
    }
    const index = this.#index(family)
    const series = this.#long(source, family, index, labels)
    if (this.#take(source, index, series)) this.#set(series, value)
    else if (this.#bounds.dropsLabels) this.#merge(series, value)
  }

  putDistribution(
    source: Source,
    family: Family,
    distribution: Distribution,
    labels: readonly string[],
  ): void {
    const index = this.#index(family)
    const series = this.#long(source, family, index, labels)
    if (this.#take(source, index, series)) series.distribution = distribution
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
    let text = ''
    let families = 0
    let count = 0
    let dropped = 0
    let last: Source | undefined
    let isShown = false
    for (const slot of this.#shown()) {
      let lines = ''
      let here = 0
      for (const series of slot.series) {
        if (series.source !== last) {
          last = series.source
          isShown = sources.has(last)
        }
        if (!isShown || !isCurrent(series)) continue
        here++
        lines +=
          series.distribution === undefined
            ? `${series.prefix}${series.text}\n`
            : distributionText(slot, series)
      }
      if (here === 0) continue
      if (this.#bounds.mostFamilies > 0 && families >= this.#bounds.mostFamilies) {
        dropped++
        continue
      }
      families++
      count += here
      text += slot.header + lines
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
    return made
  }

  /** Whether this is the first reading of the series in this round. */
  #take(source: Source, index: Index, series: Series): boolean {
    const matches = agrees(index)
    if (matches && !isCurrent(series)) {
      series.source = source
      series.round = source.round
      return true
    }
    if (!matches || !this.#bounds.dropsLabels) source.duplicates++
    return false
  }

  #set(series: Series, value: number): void {
    if (series.value === value) return
    series.value = value
    series.text = numberText(value)
  }

  /** A dropped label made two series one: counters are summed, otherwise the last value counts. */
  #merge(series: Series, value: number): void {
    this.#set(series, series.family.type === 'counter' ? series.value + value : value)
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

/** The prefix occurs in its line, in its labels and in the key of the index. */
function bytesOf({ prefix }: Series): number {
  return seriesBytes + 3 * prefix.length
}

/** Readings of one source in one round. */
class SourceReadings implements Readings {
  readonly #page: Page
  readonly #source: Source

  constructor(page: Page, source: Source) {
    this.#page = page
    this.#source = source
  }

  set(family: Family, value: number, a?: string, b?: string, c?: string): void {
    this.#page.put(this.#source, family, value, a, b, c)
  }

  setAll(family: Family, value: number, labels: readonly string[]): void {
    this.#page.putAll(this.#source, family, value, labels)
  }

  setDistribution(family: Family, distribution: Distribution, labels: readonly string[]): void {
    this.#page.putDistribution(this.#source, family, distribution, labels)
  }
}

/** Families with one name must have one type and one help: a conflicting family waits until the others are gone. */
function agrees({ family, slot }: Index): boolean {
  if (alike(family, slot.family)) return true
  if (slot.series.some(isCurrent)) return false
  slot.family = family
  slot.header = headerOf(slot.name, family)
  return true
}

function headerOf(name: string, { help, type }: Family): string {
  return `# HELP ${name} ${escapedHelp(help)}\n# TYPE ${name} ${type}\n`
}

function alike(a: Family, b: Family): boolean {
  return a === b || (a.type === b.type && a.help === b.help)
}

function isOld({ round, source }: Series): boolean {
  return round < source.round - roundsKept
}

function isCurrent(series: Series): boolean {
  return series.round === series.source.round
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

function distributionText(slot: Slot, series: Series): string {
  const { parts, sum, count } = series.distribution!
  const label = slot.family.type === 'histogram' ? 'le' : 'quantile'
  const suffix = slot.family.type === 'histogram' ? '_bucket' : ''
  const labels = series.prefix.slice(slot.name.length, -1)
  const open = labels === '' ? '{' : `${labels.slice(0, -1)},`
  let text = ''
  for (const [bound, value] of parts)
    text += `${slot.name}${suffix}${open}${label}="${numberText(bound)}"} ${numberText(value)}\n`
  if (label === 'le') text += `${slot.name}_bucket${open}le="+Inf"} ${numberText(count)}\n`
  return `${text}${slot.name}_sum${labels} ${numberText(sum)}\n${slot.name}_count${labels} ${numberText(count)}\n`
}
