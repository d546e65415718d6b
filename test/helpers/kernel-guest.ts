// The agent as it is shipped, in machines that run other kernels, with the programs that it is to see.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { build } from 'esbuild'
import { bundleOptions } from '../../tools/bundle-options.ts'
import { type Certificates, makeCertificates } from './certificates.ts'
import { Guest, type GuestOptions } from './guest.ts'
import type { BuffersReport } from './kernel-buffers-program.ts'
import type { KernelReport, KernelRun } from './kernel-report.ts'

const root = resolve(import.meta.dirname, '../..')

/** Sources by the file that each becomes in the machine. */
const bundles: Readonly<Record<string, string>> = {
  '/opt/svc/dist/svc.cjs': 'src/main.ts',
  '/opt/svc/dist/profiling-worker.cjs': 'src/signals/profiles/worker.ts',
  '/opt/svc/dist/try-worker.cjs': 'src/program/documents/try-worker.ts',
  '/opt/svc/dist/kernel-program.cjs': 'test/helpers/kernel-program.ts',
  '/opt/svc/dist/kernel-buffers-program.cjs': 'test/helpers/kernel-buffers-program.ts',
  '/opt/kernel/programs.cjs': 'test/helpers/kernel-programs.ts',
}

/** The files that every such machine has, made once; `close` removes them. */
export class KernelFiles {
  readonly trees: Readonly<Record<string, string>>
  readonly #directory: string
  readonly #certificates: Certificates

  private constructor(directory: string, certificates: Certificates, trees: Record<string, string>) {
    this.#directory = directory
    this.#certificates = certificates
    this.trees = trees
  }

  static async make(): Promise<KernelFiles> {
    const directory = mkdtempSync(join(tmpdir(), 'svc-kernels-'))
    const certificates = makeCertificates()
    const trees: Record<string, string> = {
      '/opt/svc/fixtures/otlp': join(root, 'test/fixtures/otlp'),
      '/opt/svc/bin/svc': join(root, 'bin/svc'),
      '/opt/svc/runtime/bin/node': join(directory, 'node'),
      '/usr/local/bin/setpriv': '/usr/bin/setpriv',
    }
    // As packages have it.
    execFileSync('strip', ['-o', join(directory, 'node'), process.execPath])
    for (const name of ['ca.pem', 'server.pem', 'server.key'])
      trees[`/opt/tls/${name}`] = certificates.file(name)
    for (const name of readdirSync(join(root, 'dist')))
      if (!/\.(cjs|map)$/.test(name)) trees[`/opt/svc/dist/${name}`] = join(root, 'dist', name)
    for (const [to, from] of Object.entries(bundles)) {
      trees[to] = join(directory, to.replaceAll('/', '-'))
      const about = JSON.stringify({ version: '0.0.0', commit: 'test', built: '2026-01-01T00:00:00Z' })
      const define = { 'import.meta.dirname': '__dirname', SVC_BUILD: about }
      await build({
        entryPoints: [join(root, from)],
        outfile: trees[to]!,
        define,
        ...bundleOptions,
        sourcemap: false,
      })
    }
    for (const name of ['ratio', 'touch', 'naps']) {
      trees[`/opt/kernel/${name}`] = join(directory, name)
      const source = join(root, `test/helpers/profiles/programs/${name}.c`)
      // Stacks of such a program are whole only where they are walked by tables.
      execFileSync('gcc', ['-O2', '-fomit-frame-pointer', '-o', join(directory, name), source])
    }
    return new KernelFiles(directory, certificates, trees)
  }

  close(): void {
    rmSync(this.#directory, { recursive: true, force: true })
    this.#certificates.remove()
  }
}

/** A machine with the file systems that a distribution mounts. */
export async function startKernel(
  files: KernelFiles,
  options: Pick<GuestOptions, 'kernelOf' | 'parameters'>,
): Promise<Guest> {
  const guest = await Guest.start({
    ...options,
    // The emulator errs in cmpxchg16b (cx16), and the kernel then dies. Without it Linux 7 gives programs no storage for
    // sockets and tasks, so that there a machine that died is started again.
    parameters: [...(options.kernelOf === 'sid' ? [] : ['clearcpuid=141']), ...(options.parameters ?? [])],
    trees: files.trees,
    processors: 1,
    memoryMb: 2048,
    limitMs: 2_400_000,
  })
  try {
    await guest.run(`mount -t tracefs tracefs /sys/kernel/tracing
      mount -t cgroup2 cgroup2 /sys/fs/cgroup
      mount -t bpf bpf /sys/fs/bpf
      mount -t securityfs securityfs /sys/kernel/security
      mount -t tmpfs tmpfs /run
      true`)
  } catch (error) {
    await guest.stop()
    throw error
  }
  return guest
}

/** Lets the agent run there. Throws where nothing could be measured. */
export async function measureKernel(guest: Guest, run: KernelRun): Promise<KernelReport> {
  const text = await guest.run(program('kernel-program', JSON.stringify(run)))
  const last = text.trimEnd().split('\n').at(-1)!
  const report = JSON.parse(last) as KernelReport
  if (report.release === undefined) throw new Error(`${report.failed}\n${text}\n${guest.console}`)
  return report
}

/** Requests captured by one kind of buffers, also by the kind that this kernel does not need. */
export async function measureBuffers(guest: Guest, port: number, buffers: string): Promise<BuffersReport> {
  return JSON.parse(
    await guest.run(program('kernel-buffers-program', String(port), buffers)),
  ) as BuffersReport
}

function program(name: string, ...args: string[]): string {
  const words = ['/opt/svc/runtime/bin/node', '--no-deprecation', `/opt/svc/dist/${name}.cjs`, ...args]
  return words.map(word => `'${word}'`).join(' ')
}
