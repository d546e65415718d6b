// The series of a metric over time, and the lines drawn from them.

import type { SeriesLine } from '../../../src/view/api/ui/documents.ts'

export type Start = Extract<SeriesLine, { kind: 'start' }>

export interface OverTime {
  readonly start: Start
  /** Seconds since the Unix epoch, ascending. */
  readonly times: readonly number[]
  /** By series, as long as `times`. */
  readonly values: readonly (readonly (number | null)[])[]
}

/** The values including one more line. Values older than the window are removed. */
export function added(
  before: OverTime | undefined,
  line: SeriesLine,
  windowSeconds: number,
): OverTime | undefined {
  if (line.kind === 'start') {
    const { from_ms, step_ms, series } = line
    const count = series.reduce((most, { values }) => Math.max(most, values.length), 0)
    return {
      start: line,
      times: Array.from({ length: count }, (_, i) => (from_ms + i * step_ms) / 1000),
      values: series.map(({ values }) => values),
    }
  }
  if (before === undefined) return undefined
  const at = line.at_ms / 1000
  const { times, values } = before
  if (at <= (times.at(-1) ?? 0)) return before
  let drop = 0
  while (drop < times.length && times[drop]! < at - windowSeconds) drop++
  return {
    start: before.start,
    times: [...times.slice(drop), at],
    values: values.map((each, i) => [...each.slice(drop), line.values[i] ?? null]),
  }
}

export interface Label {
  readonly name: string
  readonly values: readonly string[]
}

/** Labels by which series differ, with their values. */
export function labelsOf({ series }: Start): Label[] {
  const names = [...new Set(series.flatMap(({ labels }) => Object.keys(labels)))].sort()
  return names
    .map(name => ({ name, values: [...new Set(series.map(({ labels }) => labels[name] ?? ''))].sort() }))
    .filter(({ values }) => values.length > 1)
}

/** Series drawn as one line. */
export interface Line {
  readonly label: string
  /** Indexes of series. */
  readonly members: readonly number[]
}

export interface LineSelection {
  /** One line per value of this label; '': one per series. */
  readonly split: string
  /** Only series with this label; undefined: all. */
  readonly only: { readonly label: string; readonly value: string } | undefined
}

/** The lines of a chart: the largest last values first. */
export function linesOf(known: OverTime, { split, only }: LineSelection, sums: boolean): Line[] {
  const { start } = known
  const differ = labelsOf(start).map(({ name }) => name)
  const groups = new Map<string, number[]>()
  for (const [i, { labels }] of start.series.entries()) {
    if (only !== undefined && (labels[only.label] ?? '') !== only.value) continue
    const name = split === '' ? labelText(labels, differ) || start.family.name : labels[split] || '(none)'
    const members = groups.get(name)
    // Redacted labels may be equal.
    if (members === undefined) groups.set(name, [i])
    else if (split === '') groups.set(`${name} #${i}`, [i])
    else members.push(i)
  }
  const lines = [...groups].map(([label, members]) => ({ label, members }))
  const last = new Map(lines.map(line => [line, lastOf(combined(known, line, sums))]))
  return lines.sort((a, b) => last.get(b)! - last.get(a)!)
}

/** `device=sda, mode=user`; all labels if no names are given. */
export function labelText(labels: Readonly<Record<string, string>>, names = Object.keys(labels)): string {
  return names
    .filter(name => labels[name] !== undefined)
    .map(name => `${name}=${labels[name]}`)
    .join(', ')
}

/** The values of a line: the sum of its series, or their mean; null if none is known. */
export function combined({ times, values }: OverTime, { members }: Line, sums: boolean): (number | null)[] {
  return times.map((_, at) => {
    let sum = 0
    let count = 0
    for (const member of members) {
      const value = values[member]?.[at]
      if (value == null) continue
      sum += value
      count++
    }
    return count === 0 ? null : sums ? sum : sum / count
  })
}

function lastOf(values: readonly (number | null)[]): number {
  return values.findLast(value => value !== null) ?? Number.NEGATIVE_INFINITY
}

/** Whether series can be added up: rates and amounts of memory can, temperatures cannot. */
export function canBeSummed({ rate, family }: Start): boolean {
  return rate || family.unit === 'By'
}

/** The unit of the chart. */
export function drawnUnit({ rate, family }: Start): string {
  if (!rate) return family.unit
  if (family.type === 'histogram' || family.type === 'summary') return '1/s'
  // Seconds per second are a ratio.
  return family.unit === 'By' ? 'By/s' : family.unit === 's' ? '' : '1/s'
}
