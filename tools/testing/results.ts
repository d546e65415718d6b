// What came of test files.
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
  /** Processor time, with that of the children that its process waited for. */
  readonly cpu_ms: number
  readonly tests: readonly TestResult[]
  /** Why the file failed beside its tests: it cannot be loaded, crashed, hung, or left something behind. */
  readonly faults: readonly string[]
  /** Of a file that failed: the end of what its process printed. */
  readonly output: string
  /** What of svc it reached: reached.ts. */
  readonly reached: readonly string[]
}

/** What is known of a file that is under way. */
export interface FileRecord {
  tests: readonly TestResult[]
  readonly faults: string[]
  /** Undefined: its tests have not all ended. */
  ms?: number
  cpuMs: number
  reached: readonly string[]
  /** Whether nothing of it goes on in the process. */
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
