// Results of test files.
import type { Result } from './events.ts'

export interface TestResult {
  readonly name: string
  readonly ms: number
  readonly result: Result
  /** Why it was skipped or failed. */
  readonly reason: string
}

export interface FileResult {
  readonly file: string
  readonly ms: number
  /** Processor time, including children that its process waited for. */
  readonly cpu_ms: number
  readonly tests: readonly TestResult[]
  /** Why the file failed apart from its tests: it cannot be loaded, crashed, hung, or left something behind. */
  readonly faults: readonly string[]
  /** If the file failed: the end of its process's output. */
  readonly output: string
  /** Facts of svc that it reached: reached.ts. */
  readonly reached: readonly string[]
}

/** State of a running file. */
export interface FileRecord {
  tests: readonly TestResult[]
  readonly faults: string[]
  /** Undefined: its tests have not all ended. */
  ms?: number
  cpuMs: number
  reached: readonly string[]
  /** Whether nothing of it is running in the process any more. */
  ended: boolean
}

/** Whether a file failed. */
export function hasFailed({ tests, faults }: Pick<FileResult, 'tests' | 'faults'>): boolean {
  return faults.length > 0 || tests.some(test => test.result === 'failed')
}

/** Tests of all files by result; a fault of a file counts as a failed test. */
export function countResults(results: readonly FileResult[]): Readonly<Record<Result, number>> {
  const counts = { passed: 0, failed: 0, skipped: 0 }
  for (const { tests, faults } of results) {
    counts.failed += faults.length
    for (const { result } of tests) counts[result]++
  }
  return counts
}
