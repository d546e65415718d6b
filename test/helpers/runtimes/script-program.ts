import { type ChildProcess, spawn } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ElfFile } from '../../../src/foundation/lib/elf/elf-file.ts'
import { ProcessMemory } from '../../../src/kernel/process-memory.ts'
import type { RuntimeFile, RuntimeUnit } from '../../../src/signals/profiles/unwinders/runtime.ts'
import { uncounted } from '../program.ts'

/** The distribution's Python, rather than one in the path, which may be a wrapper. */
export const systemPython = '/usr/bin/python3'
export const withoutPython: string | false = existsSync(systemPython)
  ? false
  : `the distribution's Python is run, and there is none at ${systemPython}`

export interface Area {
  readonly start: number
  readonly end: number
  readonly access: string
  readonly path: string
}

/** A script that runs in a process of its own. It is waited for until it writes something. */
export class ScriptProgram {
  readonly pid: number
  /** The script as the runtime sees it. */
  readonly path: string
  readonly memory: ProcessMemory
  /** What it wrote first. */
  readonly said: string
  readonly #child: ChildProcess

  static async start(binary: string, name: string, source: string): Promise<ScriptProgram> {
    const path = join(realpathSync(mkdtempSync(join(tmpdir(), 'svc-runtime-'))), name)
    writeFileSync(path, source)
    const child = spawn(binary, [path], { stdio: ['ignore', 'pipe', 'pipe'], env: uncounted() })
    let complaint = ''
    child.stderr.on('data', (text: Buffer) => {
      complaint += text
    })
    const said = await new Promise<string>((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', () => reject(new Error(`${binary} ended: ${complaint}`)))
      child.stdout.once('data', (text: Buffer) => resolve(String(text)))
    })
    return new ScriptProgram(child, path, said)
  }

  private constructor(child: ChildProcess, path: string, said: string) {
    this.#child = child
    this.pid = child.pid!
    this.path = path
    this.said = said
    this.memory = ProcessMemory.open(this.pid)!
  }

  /** Stops it where it is. */
  async stop(): Promise<void> {
    this.#child.kill('SIGSTOP')
    while (!/^\d+ \(.*\) [Tt]/.test(readFileSync(`/proc/${this.pid}/stat`, 'latin1'))) await sleep(5)
  }

  resume(): void {
    this.#child.kill('SIGCONT')
  }

  areas(): Area[] {
    const lines = readFileSync(`/proc/${this.pid}/maps`, 'utf8').trimEnd().split('\n')
    return lines.map(line => {
      const [, start, end, access, path] = /^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)$/.exec(line)!
      return { start: parseInt(start!, 16), end: parseInt(end!, 16), access: access!, path: path! }
    })
  }

  async end(): Promise<void> {
    const child = this.#child.removeAllListeners('exit')
    if (child.exitCode === null && child.signalCode === null) {
      const ended = new Promise(resolve => child.once('exit', resolve))
      child.kill('SIGKILL')
      await ended
    }
    this.memory.close()
    rmSync(dirname(this.path), { recursive: true })
  }
}

/** What a unit makes of a file, and where the file begins in its own address space. */
export function recognised(
  unit: RuntimeUnit,
  path: string,
): { file: RuntimeFile | string | undefined; start: number } {
  const fd = openSync(path, 'r')
  try {
    const elf = ElfFile.of(fd)
    return { file: unit.recognise(elf, path), start: elf.addressOf(0) ?? 0 }
  } finally {
    closeSync(fd)
  }
}
