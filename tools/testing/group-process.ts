// A process that runs the files of a group, and what became of each.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { readLines, type WorkerLine } from './events.ts'
import { guardFaults } from './guard-faults.ts'
import { type FileRecord, type FileResult, hasFailed, type TestResult } from './results.ts'
import { endSession, type Members, sessionEnds } from './sessions.ts'

export interface ProcessOptions {
  /** What a file may take before its process is ended, in ms. */
  readonly limitMs: number
  /** Arguments for the runtime. */
  readonly flags: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** Where processes of the group write what they do and may not, a line each (guard.cjs). */
  readonly faultsPath: string
  /** What is printed goes to this program's own output, too. */
  readonly verbose: boolean
  /** Ends the process. */
  readonly stop: AbortSignal
  readonly onResult: (result: FileResult) => void
}

const worker = join(import.meta.dirname, 'worker.ts')
const reporter = join(import.meta.dirname, 'events.ts')
const mostOutput = 64 * 1024
const endMs = 3000 // what is left of a group has this long to be gone
let groups = 0

export class GroupProcess {
  readonly #options: ProcessOptions
  readonly #child: ChildProcess
  readonly #members: Members
  readonly #left: string[]
  readonly #records = new Map<string, FileRecord>()
  #tests: TestResult[] = []
  /** Errors outside of all tests since the last file. */
  #late: string[] = []
  #failed = false
  #began = performance.now()
  #output = ''
  #hung = false
  #watch: NodeJS.Timeout | undefined

  constructor(files: readonly string[], options: ProcessOptions) {
    this.#options = options
    this.#left = [...files]
    const group = `${process.pid}.${groups++}`
    const reporters = ['--test-reporter', reporter, '--test-reporter-destination', 'stdout']
    this.#child = spawn(process.execPath, [...options.flags, ...reporters, worker, ...files], {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      env: { ...options.env, TEST_FAULTS: options.faultsPath, TEST_GROUP: group },
      detached: true, // a session of its own, so that all that it starts can be found
    })
    this.#members = { session: this.#child.pid!, variable: `TEST_GROUP=${group}` }
    options.stop.addEventListener('abort', () => this.end())
    this.#watchFile()
    const { stdio, stdout, stderr } = this.#child
    readLines(stdio[3] as Readable, line => this.#take(line))
    for (const stream of [stdout!, stderr!])
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-mostOutput)
        if (options.verbose) process.stderr.write(text)
      })
  }

  /** Ends the process and all that it started. */
  end(): void {
    endSession(this.#members)
  }

  /** Resolves when all has ended, with the files that were not begun. */
  async finished(): Promise<readonly string[]> {
    const closed = once(this.#child, 'close')
    const [code, signal] = await once(this.#child, 'exit')
    const how: string = signal ?? (code === 0 ? '' : `code ${code}`)
    clearTimeout(this.#watch)
    // Whoever is left may hold its output open.
    const remaining = await sessionEnds(this.#members, endMs)
    await Promise.race([closed, sleep(endMs, undefined, { ref: false })])
    const file = this.#left[0]
    if (file === undefined) return []
    const record = this.#record(file)
    const { faults } = record
    if (record.ms === undefined) {
      record.ms = Math.round(performance.now() - this.#began)
      record.tests = this.#tests
    }
    for (const name of remaining) faults.push(`leaves a process running: ${name}`)
    if (this.#hung) faults.push(`takes more than ${this.#options.limitMs / 1000} s`)
    else if (!record.ended) faults.push(`its process ended with ${how || 'code 0'} before it did`)
    else if (how !== '' && !this.#failed && !hasFailed(record)) faults.push(`its process ended with ${how}`)
    this.#finish(file)
    return this.#left
  }

  #record(file: string): FileRecord {
    let record = this.#records.get(file)
    if (record === undefined) {
      record = { tests: [], faults: [], cpuMs: 0, ended: false }
      this.#records.set(file, record)
    }
    return record
  }

  #take(line: WorkerLine): void {
    if (line.kind === 'test') this.#tests.push(line)
    if (line.kind === 'late') this.#late.push(line.text)
    if (!('file' in line)) return
    const record = this.#record(line.file)
    if (line.kind === 'begin') {
      this.#began = performance.now()
      this.#watchFile()
    } else if (line.kind === 'file') {
      record.ms = line.ms
      record.tests = this.#tests
      this.#tests = []
      if (line.reason !== '') record.faults.push(line.reason)
    } else {
      record.ended = true
      record.cpuMs += line.cpuMs
      record.faults.push(...line.faults)
    }
    // What the end of the process shows is the last file's.
    if (record.ended && record.ms !== undefined && this.#left.length > 1) this.#finish(line.file)
  }

  #watchFile(): void {
    clearTimeout(this.#watch)
    this.#watch = setTimeout(() => {
      this.#hung = true
      this.end()
    }, this.#options.limitMs)
  }

  #finish(file: string): void {
    this.#left.splice(this.#left.indexOf(file), 1)
    const record = this.#records.get(file)!
    const { tests, faults, cpuMs, ms = 0 } = record
    faults.push(...this.#late, ...guardFaults(this.#options.faultsPath, file))
    this.#late = []
    const failed = hasFailed(record)
    this.#failed ||= failed
    this.#options.onResult({ file, ms, cpu_ms: cpuMs, tests, faults, output: failed ? this.#output : '' })
    this.#output = ''
  }
}
