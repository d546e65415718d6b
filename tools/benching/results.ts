// The file that a run of benchmarks leaves, and that --compare reads.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Figure } from '../../bench/lib/figures.ts'
import type { Verdict } from './budgets.ts'

/** What came of a script. */
export interface ScriptResult {
  readonly name: string
  /** `skipped`: this host lacks what it measures. */
  readonly result: 'passed' | 'failed' | 'skipped'
  /** Why it failed or was skipped; '' where it passed. */
  readonly reason: string
  readonly wall_ms: number
  /** Load averages of the host over 1, 5 and 15 minutes, before it began. */
  readonly load: readonly number[]
  /** Command lines of the processes that it left, which were ended. */
  readonly left: readonly string[]
  /** Of a script that failed: those that it had reported by then. */
  readonly figures: readonly Figure[]
}

/** One run: one JSON document, written anew behind each script. */
export interface Results {
  /** '' where the tree is none of git's. */
  readonly commit: string
  /** Whether files differed from the commit. */
  readonly changed: boolean
  readonly node: string
  /** As uname -r says it. */
  readonly kernel: string
  readonly cpu: { readonly model: string; readonly count: number }
  /** ISO 8601. */
  readonly began: string
  readonly wall_ms: number
  readonly scripts: readonly ScriptResult[]
  /** The limits of budgets.json beside what was measured. */
  readonly budgets: readonly Verdict[]
}

/** All figures of a run, by name. */
export function figuresOf({ scripts }: Pick<Results, 'scripts'>): Map<string, Figure> {
  return new Map(scripts.flatMap(({ figures }) => figures.map(figure => [figure.name, figure] as const)))
}

export function writeResults(path: string, results: Results): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(`${path}.next`, `${JSON.stringify(results, undefined, 1)}\n`)
  renameSync(`${path}.next`, path)
}

/** Throws, with the file and what to do, where it cannot be read or holds no results. */
export function readResults(path: string): Results {
  let cause: unknown
  try {
    const results = JSON.parse(readFileSync(path, 'utf8')) as Partial<Results> | null
    if (Array.isArray(results?.scripts)) return results as Results
    cause = new Error('it holds no results of benchmarks')
  } catch (error) {
    cause = error
  }
  throw new Error(
    `cannot read ${path}: ${(cause as Error).message}: give a file that tools/bench wrote, such as build/bench/results.json`,
    { cause },
  )
}
