import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../program.ts'
import { type Folded, foldedOf } from './folded.ts'

/** Why perf(1) cannot be asked, for `skip`; false where it can. Debian has it in linux-perf. */
export const withoutPerf: string | false =
  process.getuid?.() === 0 && spawnSync('perf', ['--version']).status === 0
    ? false
    : 'stacks to compare with need root and perf (linux-perf)'

export interface PerfOptions {
  readonly pid: number
  /** Samples for a second of CPU time; a prime that nobody else samples by. */
  readonly rate: number
  /** `dwarf`: from copies of the stack, by .eh_frame; `fp`: along the frame pointers. */
  readonly callGraph: 'dwarf' | 'fp'
  readonly directory: string
}

/** perf record of what a process runs in user space, as a process of its own. */
export class PerfRecording {
  readonly #file: string
  readonly #child: ChildProcess
  readonly #ended: Promise<void>
  #said = ''

  private constructor({ pid, rate, callGraph, directory }: PerfOptions) {
    this.#file = join(directory, `perf-${pid}-${rate}-${callGraph}.data`)
    const graph = callGraph === 'dwarf' ? 'dwarf,8192' : 'fp'
    const what = ['-e', 'cpu-clock:u', '-F', String(rate), '--call-graph', graph, '-p', String(pid)]
    // The cache has a hard link to each file: that changes the file's times, and the agent reads it again.
    const to = ['-q', '--no-buildid-cache', '-m', '2M', '-o', this.#file]
    this.#child = spawn('perf', ['record', ...to, ...what], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#said = (this.#said + text).slice(-4096)
    })
    this.#ended = new Promise(resolve => this.#child.once('close', () => resolve()))
  }

  /** Resolves when it has begun, which its file shows. */
  static async start(options: PerfOptions): Promise<PerfRecording> {
    const recording = new PerfRecording(options)
    await until(
      () => `perf records: ${recording.#said}`,
      20_000,
      () => (statSync(recording.#file, { throwIfNoEntry: false })?.size ?? 0) > 0,
    )
    return recording
  }

  /** Ends it and reads what it saw, root first. */
  async stop(): Promise<Folded> {
    this.#child.kill('SIGINT')
    await this.#ended
    const args = ['script', '-i', this.#file, '-F', 'ip,sym', '--no-inline']
    const { stdout, stderr, status } = spawnSync('perf', args, { maxBuffer: 1 << 30 })
    if (status !== 0) throw new Error(`perf script failed: ${stderr}\n${this.#said}`)
    return foldScript(stdout.toString())
  }
}

/** What perf script prints: a stack in a paragraph, leaf first, each frame an address and a name. */
export function foldScript(text: string): Folded {
  return foldedOf(
    text
      .split('\n\n')
      .map(paragraph => paragraph.split('\n').filter(line => line.trim() !== ''))
      .filter(lines => lines.length > 0)
      .map(lines => [lines.map(nameOf).toReversed().join(';'), 1]),
  )
}

function nameOf(line: string): string {
  return line.trim().replace(/^[0-9a-f]+\s*/, '') || '[unknown]'
}
