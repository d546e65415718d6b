// The result file of a benchmark run, which --compare reads.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Figure } from '../../bench/lib/figures.ts'
import type { Verdict } from './budgets.ts'
import { defaultResults } from './options.ts'
import { resultsFault } from './results-fault.ts'

export interface ResultFigure extends Figure {
  /** Its script failed: the figure may be wrong, and is not compared with limits. */
  readonly failed?: true
}

/** How a script ended, and what it measured. */
export interface ScriptResult {
  readonly name: string
  /** `skipped`: this host lacks what it measures. */
  readonly result: 'passed' | 'failed' | 'skipped'
  /** Why it failed or was skipped; '' if it passed. */
  readonly reason: string
  readonly wall_ms: number
  /** Load averages of the host over 1, 5 and 15 minutes, before it began. */
  readonly load: readonly number[]
  /** Command lines of leftover processes, which were killed. */
  readonly left: readonly string[]
  /** If the script failed: the figures before that, each marked. */
  readonly figures: readonly ResultFigure[]
}

/** One run: a JSON document, rewritten after each script. */
export interface Results {
  /** '' if git knows no commit of the tree. */
  readonly commit: string
  /** Whether files differed from the commit. */
  readonly changed: boolean
  readonly node: string
  /** As `uname -r` prints it. */
  readonly kernel: string
  readonly cpu: { readonly model: string; readonly count: number }
  /** ISO 8601. */
  readonly began: string
  readonly wall_ms: number
  readonly scripts: readonly ScriptResult[]
  /** The limits of budgets.json with their measurements. */
  readonly budgets: readonly Verdict[]
}

/** All figures of a run, by name. */
export function figuresOf({ scripts }: Pick<Results, 'scripts'>): Map<string, ResultFigure> {
  return new Map(scripts.flatMap(({ figures }) => figures.map(figure => [figure.name, figure] as const)))
}

/** Names of the scripts that failed. */
export function failedScripts({ scripts }: Pick<Results, 'scripts'>): Set<string> {
  return new Set(scripts.filter(({ result }) => result === 'failed').map(({ name }) => name))
}

/**
 * Checks whether results can be written to `path` (absolute). Throws, with the file and a hint, if they cannot. Creates
 * only the folder of the default path, and without `recursive`: below /proc mkdirSync would never return then.
 */
export function tryResults(path: string): void {
  const folder = dirname(path)
  try {
    if (path === defaultResults)
      for (const each of [dirname(folder), folder]) if (!existsSync(each)) mkdirSync(each)
    if (statSync(path, { throwIfNoEntry: false })?.isFile() === false) throw new Error('not a regular file')
    writeFileSync(`${path}.next`, '')
    rmSync(`${path}.next`)
  } catch (cause) {
    const fix = existsSync(folder) ? '' : `make its folder with mkdir -p ${folder}, or `
    throw new Error(
      `cannot write results to ${path}: ${(cause as Error).message}: ${fix}give another file to --results`,
      { cause },
    )
  }
}

export function writeResults(path: string, results: Results): void {
  writeFileSync(`${path}.next`, `${JSON.stringify(results, undefined, 1)}\n`)
  renameSync(`${path}.next`, path)
}

/** Throws, with the file and a hint, if it cannot be read or contains no results. */
export function readResults(path: string): Results {
  let cause: unknown
  try {
    const results: unknown = JSON.parse(readFileSync(path, 'utf8'))
    const fault = resultsFault(results)
    if (fault === '') return results as Results
    cause = new Error(`not a benchmark result: ${fault}`)
  } catch (error) {
    cause = error
  }
  throw new Error(
    `cannot read ${path}: ${(cause as Error).message}: give a file that tools/bench wrote, such as build/bench/results.json`,
    { cause },
  )
}
