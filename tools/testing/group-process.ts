// A process that runs the files of a group, and the result of each.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { readLines } from './events.ts'
import { GroupResults, type GroupResultsOptions } from './group-results.ts'
import { endSession, type Members, sessionEnds } from './sessions.ts'

export interface ProcessOptions extends GroupResultsOptions {
  /** Time limit of a file in ms, after which its process is killed. */
  readonly limitMs: number
  /** Flags of the runtime. */
  readonly flags: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** Copies its output to this program's own. */
  readonly verbose: boolean
  /** Prefix of `TEST_GROUP` in the environment of all processes of this run. */
  readonly run: string
  /** Ends the process. */
  readonly stop: AbortSignal
}

const worker = join(import.meta.dirname, 'worker.ts')
const reporter = join(import.meta.dirname, 'events.ts')
/** Time for leftovers of a group to end. */
const endMs = 3000
let groups = 0

export class GroupProcess {
  readonly #options: ProcessOptions
  readonly #results: GroupResults
  readonly #child: ChildProcess
  readonly #members: Members
  #hung = false
  #watch: NodeJS.Timeout | undefined
  /** Ends the process and all its descendants. */
  readonly #end = (): void => endSession(this.#members)

  constructor(files: readonly string[], options: ProcessOptions) {
    this.#options = options
    this.#results = new GroupResults(files, options)
    const group = `${options.run}${groups++}.`
    const reporters = ['--test-reporter', reporter, '--test-reporter-destination', 'stdout']
    this.#child = spawn(process.execPath, [...options.flags, ...reporters, worker, ...files], {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      env: { ...options.env, TEST_FAULTS: options.faultsPath, TEST_GROUP: group },
      detached: true, // a session of its own, to find all of its descendants
    })
    this.#members = { session: this.#child.pid!, variable: `TEST_GROUP=${group}` }
    options.stop.addEventListener('abort', this.#end)
    this.#watchFile()
    const { stdio, stdout, stderr } = this.#child
    readLines(
      stdio[3] as Readable,
      line => {
        if (this.#results.take(line)) this.#watchFile()
      },
      text => this.#results.odd(text),
    )
    for (const stream of [stdout!, stderr!])
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#results.print(text)
        if (options.verbose) process.stderr.write(text)
      })
  }

  /** Resolves when all has ended, with the files that were not started. */
  async finished(): Promise<readonly string[]> {
    const closed = once(this.#child, 'close')
    const [code, signal] = await once(this.#child, 'exit')
    clearTimeout(this.#watch)
    // Leftover processes may keep its output open.
    const remaining = await sessionEnds(this.#members, endMs)
    await Promise.race([closed, sleep(endMs, undefined, { ref: false })])
    for (const stream of this.#child.stdio) stream?.destroy()
    this.#options.stop.removeEventListener('abort', this.#end)
    const how: string = signal ?? (code === 0 ? '' : `code ${code}`)
    this.#results.end(how, this.#hung ? this.#options.limitMs / 1000 : undefined, remaining)
    return this.#results.left
  }

  #watchFile(): void {
    clearTimeout(this.#watch)
    this.#watch = setTimeout(() => {
      this.#hung = true
      this.#end()
    }, this.#options.limitMs)
  }
}
