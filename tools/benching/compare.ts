// Differences between two benchmark runs beyond noise.
import { type Figure, median, numberText } from '../../bench/lib/figures.ts'
import { figuresOf, type Results } from './results.ts'

/** A figure whose medians differ beyond noise. */
export interface Change {
  readonly name: string
  readonly unit: string
  readonly old: number
  readonly new: number
  /** Difference of the medians that may be chance, in the unit of the figure. */
  readonly noise: number
  readonly better: boolean
  /** Whether its script failed in either run. */
  readonly failed: boolean
}

export interface Comparison {
  readonly changes: readonly Change[]
  /** Number of figures in both. */
  readonly compared: number
  readonly onlyOld: readonly string[]
  readonly onlyNew: readonly string[]
  /** One line for each script that failed or is missing in a run, or that only one run skipped. */
  readonly scripts: readonly string[]
}

const fewSamples = 5

/** Median absolute deviation. */
function deviation({ samples, median: middle }: Figure): number {
  return median(samples.map(sample => Math.abs(sample - middle)))
}

/**
 * Largest difference between the medians of two measurements of the same that counts as noise. The larger of
 *
 * - 5 % of the larger median: another layout of code or memory makes as much. 10 % if either has fewer than five samples.
 * - four standard errors of the difference of the medians, each of them 1.2533 × 1.4826 × MAD / √n (normal samples; the
 *   MAD ignores single outliers). Of medians of five equal distributions 2 % differ by more. With fewer than five samples
 *   the larger range instead, because the MAD of so few means little.
 */
export function noiseOf(a: Figure, b: Figure): number {
  const larger = Math.max(Math.abs(a.median), Math.abs(b.median))
  if (Math.min(a.samples.length, b.samples.length) < fewSamples) {
    const ranges = [a, b].map(({ samples }) => Math.max(...samples) - Math.min(...samples))
    return Math.max(0.1 * larger, ...ranges)
  }
  const error = (of: Figure) => (1.2533 * 1.4826 * deviation(of)) / Math.sqrt(of.samples.length)
  return Math.max(0.05 * larger, 4 * Math.hypot(error(a), error(b)))
}

/** How a script ended in a run. If it ran twice: the failure, if there is one. */
function endOf({ scripts }: Results, name: string): string {
  const ends = scripts.filter(script => script.name === name)
  const { result, reason } = ends.find(script => script.result === 'failed') ?? ends.at(-1) ?? {}
  return reason ? `${result}: ${reason}` : (result ?? 'missing')
}

function compareScripts(old: Results, now: Results): string[] {
  const lines: string[] = []
  for (const name of new Set([...old.scripts, ...now.scripts].map(script => script.name))) {
    const ends = [endOf(old, name), endOf(now, name)] as const
    const alike = ['passed', 'skipped'].some(result => ends.every(end => end.startsWith(result)))
    if (!alike) lines.push(`${name}: OLD ${ends[0]}, NEW ${ends[1]}`)
  }
  return lines
}

/** Figures match by name and unit. */
export function compareResults(old: Results, now: Results): Comparison {
  const keyed = (results: Results) =>
    new Map([...figuresOf(results).values()].map(figure => [`${figure.name} (${figure.unit})`, figure]))
  const [before, after] = [keyed(old), keyed(now)]
  const changes: Change[] = []
  let compared = 0
  for (const [key, a] of before) {
    const b = after.get(key)
    if (b === undefined) continue
    compared++
    const noise = noiseOf(a, b)
    if (Math.abs(b.median - a.median) <= noise) continue
    const better = b.better === 'less' ? b.median < a.median : b.median > a.median
    const failed = a.failed === true || b.failed === true
    changes.push({ name: a.name, unit: a.unit, old: a.median, new: b.median, noise, better, failed })
  }
  const missing = (from: typeof before, to: typeof before) => [...from.keys()].filter(key => !to.has(key))
  const [onlyOld, onlyNew] = [missing(before, after), missing(after, before)]
  return { changes, compared, onlyOld, onlyNew, scripts: compareScripts(old, now) }
}

function percent(part: number, whole: number): string {
  return whole === 0 ? '' : `${numberText((100 * part) / Math.abs(whole))} %`
}

function rowOf({ name, unit, old, new: now, noise, better, failed }: Change): string[] {
  const change = percent(now - old, old)
  return [
    name,
    `${numberText(old)} ${unit}`,
    `${numberText(now)} ${unit}`,
    change.startsWith('-') || change === '' ? change : `+${change}`,
    `±${numberText(noise)} ${unit}`,
    `${better ? 'better' : 'worse'}${failed ? ', script failed' : ''}`,
  ]
}

/** One line about a run and its host. Later loads are caused by earlier scripts. */
function runText({ commit, changed, began, node, kernel, cpu, scripts }: Results): string {
  const load = (scripts[0]?.load[0] ?? 0).toFixed(1)
  const tree = `${commit.slice(0, 10) || 'no commit'}${changed ? ' with changes' : ''}`
  return `${tree}, ${began}, node ${node}, Linux ${kernel}, ${cpu.count} × ${cpu.model}, load before ${load}`
}

function tableText(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map(row => row[column]!.length)))
  const cell = (text: string, column: number) =>
    column === 0 || column === 5 ? text.padEnd(widths[column]!) : text.padStart(widths[column]!)
  return rows.map(row => row.map(cell).join('  ').trimEnd())
}

export function comparisonText(old: Results, now: Results): string {
  const { changes, compared, onlyOld, onlyNew, scripts } = compareResults(old, now)
  const lines = [`OLD: ${runText(old)}`, `NEW: ${runText(now)}`, '']
  const head = ['figure', 'old', 'new', 'change', 'noise', '']
  if (changes.length > 0) lines.push(...tableText([head, ...changes.map(rowOf)]), '')
  lines.push(`${changes.length} of ${compared} figures changed beyond noise`)
  if (scripts.length > 0)
    lines.push(
      'scripts that failed, were skipped or are missing in a run:',
      ...scripts.map(line => `  ${line}`),
    )
  if (onlyOld.length > 0) lines.push('only in OLD:', ...onlyOld.map(name => `  ${name}`))
  if (onlyNew.length > 0) lines.push('only in NEW:', ...onlyNew.map(name => `  ${name}`))
  return lines.join('\n')
}
