// The results of the files of a group, from the reports of their process.
import type { WorkerLine } from './events.ts'
import { guardFaults } from './guard-faults.ts'
import { lostFacts } from './reached-table.ts'
import { type FileRecord, type FileResult, hasFailed, type TestResult } from './results.ts'

export interface GroupResultsOptions {
  /** File in which processes of the group record violations of `owns`, one per line (guard.cjs). */
  readonly faultsPath: string
  /** Only some tests are run: a file may have none of them. */
  readonly isPart: boolean
  readonly onResult: (result: FileResult) => void
}

const mostOutput = 64 * 1024

export class GroupResults {
  /** Files with incomplete results. */
  readonly left: string[]
  readonly #options: GroupResultsOptions
  readonly #files: ReadonlySet<string>
  readonly #records = new Map<string, FileRecord>()
  #tests: TestResult[] = []
  /** Events outside of all tests since the last file. */
  #late: string[] = []
  #failed = false
  #began = performance.now()
  #output = ''

  constructor(files: readonly string[], options: GroupResultsOptions) {
    this.#options = options
    this.#files = new Set(files)
    this.left = [...files]
  }

  /** Processes a line of the process. True: a file begins. */
  take(line: WorkerLine): boolean {
    if (line.kind === 'test') {
      const { name, ms, result, reason } = line
      this.#tests.push({ name, ms, result, reason })
    }
    if (line.kind === 'late') this.#late.push(line.text)
    if (!('file' in line)) return false
    if (!this.#files.has(line.file)) {
      this.#late.push(`a test was added when its file had ended: ${line.file}`)
      return false
    }
    const record = this.#record(line.file)
    if (line.kind === 'begin') this.#began = performance.now()
    else if (line.kind === 'file') {
      record.ms = line.ms
      record.tests = this.#tests
      this.#tests = []
      if (line.reason !== '') record.faults.push(line.reason)
    } else {
      record.ended = true
      record.cpuMs += line.cpuMs
      record.reached = [...record.reached, ...line.reached]
      record.faults.push(...line.faults)
    }
    // Faults at the end of the process are the last file's.
    if (record.ended && record.ms !== undefined && this.left.length > 1) this.#finish(line.file)
    return line.kind === 'begin'
  }

  /** Text on the channel that is not a line of the worker. */
  odd(text: string): void {
    this.#late.push(`writes to descriptor 3: ${text.slice(0, 200)}`)
  }

  print(text: string): void {
    this.#output = (this.#output + text).slice(-mostOutput)
  }

  /**
   * The process has ended: `how` is the exit code or signal, unless it is code 0. `remaining`: processes left running.
   */
  end(how: string, hungSeconds: number | undefined, remaining: readonly string[]): void {
    const file = this.left[0]
    if (file === undefined) return
    const record = this.#record(file)
    const { faults } = record
    if (record.ms === undefined) {
      record.ms = Math.round(performance.now() - this.#began)
      record.tests = this.#tests
    }
    for (const name of remaining) faults.push(`leaves a process running: ${name}`)
    if (hungSeconds !== undefined) faults.push(`takes more than ${hungSeconds} s`)
    else if (!record.ended) faults.push(`its process ended with ${how || 'code 0'} before it did`)
    else if (how !== '' && !this.#failed && !hasFailed(record)) faults.push(`its process ended with ${how}`)
    this.#finish(file)
  }

  #record(file: string): FileRecord {
    let record = this.#records.get(file)
    if (record === undefined) {
      record = { tests: [], faults: [], cpuMs: 0, reached: [], ended: false }
      this.#records.set(file, record)
    }
    return record
  }

  #finish(file: string): void {
    this.left.splice(this.left.indexOf(file), 1)
    const record = this.#records.get(file)!
    const { tests, faults, cpuMs, reached, ms = 0 } = record
    faults.push(...this.#late, ...guardFaults(this.#options.faultsPath, file))
    this.#late = []
    if (tests.length === 0 && faults.length === 0 && !this.#options.isPart) faults.push('has no tests')
    if (!this.#options.isPart && process.env.UPDATE_REACHED !== '1')
      faults.push(...lostFacts({ file, tests, faults, reached }))
    const failed = hasFailed(record)
    this.#failed ||= failed
    const output = failed ? this.#output : ''
    this.#options.onResult({ file, ms, cpu_ms: cpuMs, tests, faults, output, reached })
    this.#output = ''
  }
}
