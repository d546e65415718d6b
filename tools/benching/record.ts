// Records figures of a run in bench/measured.json, the source of the figures on pages.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Measured, type MeasuredScript, measuredFile } from '../measured-pages.ts'
import type { Results } from './results.ts'

/** Significant digits of medians: more would differ between two runs. */
const digits = 4

/** `before`, updated with the passed scripts of a run. Throws if a figure would be lost. */
export function recorded(before: Measured, results: Results): Measured {
  const { began, cpu, kernel, commit, changed, scripts } = results
  const { model, count } = cpu
  const now: Record<string, MeasuredScript> = { ...before }
  for (const { name, result, figures } of scripts) {
    if (result !== 'passed') continue
    const measured = new Set(figures.map(figure => figure.name))
    const missing = Object.keys(before[name]?.figures ?? {}).find(figure => !measured.has(figure))
    if (missing !== undefined)
      throw new Error(
        `cannot record ${name}: the run has no ${missing}: run the whole script, or delete the figure from ${measuredFile} and its pages`,
      )
    now[name] = {
      on: began.slice(0, 10),
      machine: `${count} CPUs (${model}), Linux ${kernel}`,
      note: commit === '' ? '' : `commit ${commit.slice(0, 7)}${changed ? ' with changes' : ''}`,
      figures: Object.fromEntries(
        figures.map(figure => [figure.name, Number(figure.median.toPrecision(digits))]),
      ),
    }
  }
  return Object.fromEntries(Object.entries(now).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Records a run below `root`; returns the names of its scripts. Throws if none of them passed. */
export function record(root: string, results: Results): readonly string[] {
  const names = results.scripts.filter(({ result }) => result === 'passed').map(({ name }) => name)
  if (names.length === 0) throw new Error('cannot record: no script of the run has passed')
  const path = join(root, measuredFile)
  const before: Measured = JSON.parse(readFileSync(path, 'utf8'))
  writeFileSync(path, `${JSON.stringify(recorded(before, results), undefined, 2)}\n`)
  return names
}
