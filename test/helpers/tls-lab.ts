import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { BpfObject } from '../../src/kernel/bpf-object.ts'
import { readBtf } from '../../src/kernel/btf.ts'
import type { Native } from '../../src/kernel/native.ts'
import { compileBpf } from './compile-bpf.ts'
import { nativeOrThrow } from './native.ts'

const fixtures = join(import.meta.dirname, '..', 'fixtures', 'tls')
const cookies = 16

/** Libraries that look like OpenSSL, programs that load them, and programs of the kernel that count their calls. */
export class TlsLab {
  readonly directory = mkdtempSync(join(tmpdir(), 'svc-tls-'))
  /** A /proc of the loaders alone. */
  readonly procDir = join(this.directory, 'proc')
  /** A host without libraries. */
  readonly rootDir = join(this.directory, 'root')
  readonly native: Native = nativeOrThrow()
  readonly object: BpfObject
  readonly #globals: DataView
  readonly #offsets: ReadonlyMap<string, number>
  readonly #loaders: Loader[] = []

  constructor() {
    mkdirSync(this.procDir)
    mkdirSync(this.rootDir)
    const bytes = compileBpf('uprobe')
    this.object = BpfObject.load(this.native, bytes, {
      name: 'uprobe',
      prepare: object => {
        for (const program of ['svc_tls_enter', 'svc_tls_return']) this.native.uprobePrepare(object, program)
      },
    })
    const bss = readBtf(bytes).sections.find(({ name }) => name === '.bss')!
    this.#globals = new DataView(this.native.mapView(this.object.map('.bss')))
    this.#offsets = new Map(bss.fields.map(({ name, offset }) => [name, offset]))
  }

  /** Builds one with the given macros, and returns its path. */
  library(name: string, ...macros: string[]): string {
    const path = join(this.directory, name)
    const flags = ['-shared', '-fPIC', '-O1', ...macros.map(macro => `-D${macro}`)]
    execFileSync('gcc', [...flags, '-o', path, join(fixtures, 'fake-tls.c')])
    return path
  }

  /** Starts a program that loads libraries. It is listed in `procDir`. */
  async loader(): Promise<Loader> {
    const program = join(this.directory, 'loader')
    execFileSync('gcc', ['-O1', '-o', program, join(fixtures, 'loader.c'), '-ldl'])
    const loader = new Loader(program, this.procDir)
    this.#loaders.push(loader)
    await loader.started
    return loader
  }

  /** Counts the calls of this process from now on. */
  watch(pid: number): void {
    this.#globals.setUint32(this.#offsets.get('target_pid')!, pid, true)
    for (const name of ['entered', 'returned'])
      for (let i = 0; i < cookies; i++) this.#globals.setBigUint64(this.#offsets.get(name)! + 8 * i, 0n)
  }

  /** Calls, and returns from them, by cookie. */
  calls(name: 'entered' | 'returned', cookie: number): number {
    return Number(this.#globals.getBigUint64(this.#offsets.get(name)! + 8 * cookie, true))
  }

  async close(): Promise<void> {
    for (const loader of this.#loaders) await loader.close()
    this.object.close()
    rmSync(this.directory, { recursive: true })
  }
}

export class Loader {
  readonly pid: number
  readonly started: Promise<unknown>
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  readonly #lines: AsyncIterator<string>
  readonly #listed: string
  readonly #ended: Promise<void>
  #closed = false

  constructor(program: string, procDir: string) {
    this.#child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] })
    this.pid = this.#child.pid!
    this.#ended = new Promise(resolve => this.#child.once('close', () => resolve()))
    this.#lines = createInterface(this.#child.stdout)[Symbol.asyncIterator]()
    this.#listed = join(procDir, String(this.pid))
    symlinkSync(`/proc/${this.pid}`, this.#listed)
    this.started = this.#lines.next()
  }

  async ask(line: string): Promise<void> {
    this.#child.stdin.write(`${line}\n`)
    const { value } = await this.#lines.next()
    if (value !== 'ok') throw new Error(`the loader was asked to "${line}": ${value}`)
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#child.stdin.end()
    await this.#ended
    unlinkSync(this.#listed)
  }
}
