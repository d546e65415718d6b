// How a benchmark reports what it measured. Each figure is printed for people. Where tools/bench runs the script, it gets
// the figures, too.
import { appendFileSync } from 'node:fs'

/** Names the file that takes figures: a line of JSON for each. Without it they are only printed. */
export const figuresVariable = 'BENCH_FIGURES'

/** One thing that was measured. */
export interface Figure {
  /** `SCRIPT.PART.WHAT_UNIT`. Results of different days are compared by it, so it does not change. */
  readonly name: string
  /** As UCUM (https://ucum.org) writes it: `ms`, `us`, `MiB`, `%`, `{span}/s`. */
  readonly unit: string
  readonly better: 'less' | 'more'
  /** Every single measurement, in the order of time. */
  readonly samples: readonly number[]
  readonly median: number
}

/** What a line of the file is: a figure, or why the script can measure nothing on this host. */
export type FiguresLine = Figure | { readonly skipped: string }

export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** A number with at most so many significant digits: `45,210`, `0.01234`. */
export function numberText(value: number, digits = 4): string {
  return value.toLocaleString('en', { maximumSignificantDigits: digits })
}

function write(line: FiguresLine): void {
  const file = process.env[figuresVariable]
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(line)}\n`)
}

/**
 * Prints and hands over a figure, and returns its median. Give all measurements, so that the noise can be judged. `note`
 * is printed behind it. Throws where the name is malformed, or a measurement is no finite number: then what it measures
 * did not run.
 */
export function report(
  name: string,
  samples: number | readonly number[],
  unit: string,
  better: Figure['better'],
  note = '',
): number {
  const all = (typeof samples === 'number' ? [samples] : samples).map(value => Number(value.toPrecision(6)))
  if (!/^[a-z0-9_-]+(\.[a-z0-9_-]+)+$/.test(name))
    throw new Error(`cannot report "${name}": a name has small letters, digits, _ and - between its points`)
  if (all.length === 0 || !all.every(Number.isFinite))
    throw new Error(`cannot report ${name}: its measurements are [${all.join(', ')}]`)
  const middle = median(all)
  write({ name, unit, better, samples: all, median: middle })
  const words = [`${name.padEnd(52)} ${numberText(middle).padStart(9)} ${unit.padEnd(11)}`]
  if (all.length > 1)
    words.push(`${numberText(Math.min(...all))} to ${numberText(Math.max(...all))}, ${all.length} samples`)
  if (note !== '') words.push(`(${note})`)
  console.log(words.join('  ').trimEnd())
  return middle
}

/** Reports that the script can measure nothing on this host, and why. */
export function skip(reason: string): void {
  write({ skipped: reason })
  console.log(`skipped: ${reason}`)
}
