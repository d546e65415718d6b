import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** NVIDIA's management library, made of nvml.c beside this: a driver that says what a test wants. */
export class StandInNvml {
  readonly directory = mkdtempSync(join(tmpdir(), 'svc-nvml-'))
  readonly library = join(this.directory, 'libnvidia-ml.so.1')
  /** Where this file is, the driver hangs, if its state says `hang`. */
  readonly hangs = join(this.directory, 'hangs')

  /** `old`: as of 2014. */
  constructor(state: readonly string[], old = false) {
    const source = join(import.meta.dirname, 'nvml.c')
    const flags = ['-std=gnu11', '-shared', '-fPIC', '-O1', '-Wall', '-Werror', ...(old ? ['-DOLD'] : [])]
    execFileSync('gcc', [...flags, '-Wno-unused-function', '-o', this.library, source])
    writeFileSync(`${this.library}.log`, '')
    this.says(state)
  }

  /** What it says from the next question on: the lines that `read_line` of nvml.c knows. */
  says(state: readonly string[]): void {
    const path = `${this.library}.state`
    // The driver, in a thread of its own, must never read half of it.
    writeFileSync(`${path}.new`, [...state, `hang ${this.hangs}`, ''].join('\n'))
    renameSync(`${path}.new`, path)
  }

  /** The next question gets no answer until `goOn`. */
  hang(): void {
    appendFileSync(this.hangs, '')
  }

  goOn(): void {
    rmSync(this.hangs, { force: true })
  }

  /** What it was told to do: `init`, `count`, `shutdown`; `hangs`: it does so. */
  get log(): string[] {
    return readFileSync(`${this.library}.log`, 'utf8').split('\n').slice(0, -1)
  }

  remove(): void {
    rmSync(this.directory, { recursive: true })
  }
}
