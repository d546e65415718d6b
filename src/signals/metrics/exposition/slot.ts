// All series with one name, and their lines on the page.

import { escapedHelp } from '../../../foundation/lib/label-text.ts'
import type { Distribution, Family } from '../../../foundation/model/collector.ts'
import { numberText } from './number-text.ts'

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
export interface Slot {
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
  /** Header and lines of the last page; '' without lines. */
  text: string
  lines: number
  /** The lines may differ from those of the last page. */
  stale: boolean
}

/** Writes the lines of a slot, with the last readings of `sources`. */
export function render(slot: Slot, sources: ReadonlySet<Source>): void {
  const parts = [slot.header]
  let last: Source | undefined
  let isShown = false
  slot.lines = 0
  for (const series of slot.series) {
    if (series.source !== last) {
      last = series.source
      isShown = sources.has(last)
    }
    if (!isShown || !isCurrent(series)) continue
    slot.lines++
    if (series.distribution === undefined) parts.push(series.prefix, series.text, '\n')
    else parts.push(distributionText(slot, series))
  }
  // Flat, as a text that stays should be.
  slot.text = slot.lines === 0 ? '' : parts.join('')
  slot.stale = false
}

export function headerOf(name: string, { help, type }: Family): string {
  return `# HELP ${name} ${escapedHelp(help)}\n# TYPE ${name} ${type}\n`
}

export function isCurrent(series: Series): boolean {
  return series.round === series.source.round
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
