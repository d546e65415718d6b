// owns: load
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { uncounted, until } from '../program.ts'

const sources = join(import.meta.dirname, 'programs')
/** Programs burn what the agent and other tests leave: at this nice value a third of what each of those gets. */
const nice = 5
const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK']))

/** Where programs of `programs/` stand as they are. */
export function sourceFile(name: string): string {
  return join(sources, name)
}

/** A folder of a test for what it compiles and records; `close` ends the programs that were started, and removes it. */
export class Bench {
  readonly directory = mkdtempSync(join(tmpdir(), 'svc-profiles-'))
  readonly #programs: MeasuredProgram[] = []

  /** Compiles `programs/<name>.c` with these flags, and returns the program's path. */
  compile(name: string, flags: readonly string[], as = name): string {
    const file = join(this.directory, as)
    execFileSync('gcc', ['-O2', ...flags, '-o', file, sourceFile(`${name}.c`), '-ldl', '-pthread'])
    return file
  }

  start(command: string, args: readonly string[] = [], cwd = this.directory): MeasuredProgram {
    const env = { ...uncounted(), NODE_OPTIONS: '' }
    const child = spawn(command, args, { cwd, stdio: 'ignore', env })
    const program = new MeasuredProgram(child)
    this.#programs.push(program)
    return program
  }

  async close(): Promise<void> {
    await Promise.all(this.#programs.map(program => program.end('SIGKILL')))
    rmSync(this.directory, { recursive: true, force: true })
  }
}

/** A program that runs until it is ended. */
export class MeasuredProgram {
  readonly pid: number
  readonly #child: ChildProcess
  readonly #ended: Promise<void>

  constructor(child: ChildProcess) {
    if (child.pid === undefined) throw new Error(`cannot start ${child.spawnfile}`)
    setPriority(child.pid, nice)
    this.pid = child.pid
    this.#child = child
    this.#ended = new Promise(resolve => child.once('close', () => resolve()))
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** User and system time that it has had, in seconds. */
  cpuSeconds(): number {
    return cpuSecondsOf(this.pid)
  }

  /** Resolves when it has had so many more seconds of CPU time. */
  async busyFor(seconds: number): Promise<void> {
    const enough = this.cpuSeconds() + seconds
    await until(
      `process ${this.pid} has worked for ${seconds} s`,
      10_000 + 20_000 * seconds,
      () => this.cpuSeconds() >= enough,
    )
  }

  /** Page faults that needed no reading (minflt). */
  minorFaults(): number {
    return Number(statOf(this.pid)[7])
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }

  /** Stops it where it is, so that its CPU time stays what it was, and returns that in seconds. */
  async halt(): Promise<number> {
    this.signal('SIGSTOP')
    const stateOf = (tid: string) =>
      / ([A-Z]) /.exec(readFileSync(`/proc/${this.pid}/task/${tid}/stat`, 'latin1').split(')').at(-1)!)![1]
    // Threads that had no CPU at the moment stop when they get one.
    await until(`all threads of ${this.pid} have stopped`, 20_000, () =>
      readdirSync(`/proc/${this.pid}/task`).every(tid => stateOf(tid) === 'T'),
    )
    return this.cpuSeconds()
  }

  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.running) this.#child.kill(signal)
    await this.#ended
  }
}

/** User and system time of a process in seconds (utime and stime). */
export function cpuSecondsOf(pid: number): number {
  const fields = statOf(pid)
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

/** proc_pid_stat(5) from the third field on. */
function statOf(pid: number): string[] {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  return text.slice(text.lastIndexOf(')') + 2).split(' ')
}
