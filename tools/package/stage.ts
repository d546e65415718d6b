// The program directory: everything that svc needs to run, relocatable.

import { chmodSync, cpSync, lstatSync, lutimesSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type NpmPackage, writeBundles } from './bundles.ts'
import { output } from './command.ts'
import { inheritedLibraryPath } from './elf.ts'
import { bundledLibraries, type Library } from './libraries.ts'
import { type Architecture, manifest, names, root } from './release.ts'

export interface TreeOptions {
  /** Output directory; must be missing or empty. */
  readonly directory: string
  readonly architecture: Architecture
  /** Built for that processor: svc.node, svc-probe, svc-decode and the BPF objects. */
  readonly dist: string
  /** The npm package of the runtime for that processor. If absent, the one in node_modules. */
  readonly runtime?: string
  /** Root of Debian's unpacked libraries for that processor. If absent, this host's are used. */
  readonly libraries?: string
  /** strip(1) for that processor. If absent, the one of this host, or of its cross tools. */
  readonly strip?: string
  /** Time of all files, in seconds since 1970. */
  readonly epoch: number
  /** If absent, that of package.json. */
  readonly version?: string
}

/** A program directory, with its third-party parts. */
export interface Tree {
  readonly directory: string
  readonly architecture: Architecture
  readonly version: string
  readonly epoch: number
  readonly npm: readonly NpmPackage[]
  readonly libraries: readonly Library[]
  readonly node: { readonly version: string; readonly licence: string }
}

/** Whether a file of the program directory is executable. */
export function isProgram(path: string): boolean {
  return /^(bin\/svc|runtime\/bin\/node|dist\/svc-(probe|decode))$/.test(path)
}

/** Files of a program directory that need libraries of the host. */
export function linkedFiles({ directory, libraries }: Tree): string[] {
  const names = ['runtime/bin/node', 'dist/svc.node', ...libraries.map(({ name }) => `dist/${name}`)]
  return names.map(name => join(directory, name))
}

/** Creates the program directory. Throws if a part is missing, or the addon would not find its libraries. */
export async function stageTree(options: TreeOptions): Promise<Tree> {
  const { directory, architecture, dist, epoch, libraries: from } = options
  const runtime = options.runtime ?? join(root, `node_modules/node-linux-${architecture}`)
  const version = options.version ?? manifest().version
  const at = (...path: string[]) => join(directory, ...path)
  for (const each of ['bin', 'runtime/bin', 'dist']) mkdirSync(at(each), { recursive: true })
  cpSync(join(root, 'bin/svc'), at('bin/svc'))
  output(options.strip ?? stripFor(architecture), [
    '--strip-unneeded',
    '-o',
    at('runtime/bin/node'),
    join(runtime, 'bin/node'),
  ])
  for (const name of ['svc.node', 'svc-probe', 'svc-decode']) cpSync(join(dist, name), at('dist', name))
  for (const object of bpfObjects(dist)) cpSync(join(dist, object), at('dist', object))
  cpSync(join(root, 'dist/ui'), at('dist/ui'), { recursive: true })
  const npm = await writeBundles(at('dist'), version, epoch)
  const libraries = bundledLibraries(join(dist, 'svc.node'), { from, architecture })
  for (const { name, file } of libraries) cpSync(file, at('dist', name))
  if (inheritedLibraryPath(at('dist/svc.node')) !== '$ORIGIN')
    throw new Error(
      `${dist}/svc.node would not find the libraries beside it: link it with -Wl,--disable-new-dtags,-rpath,'$ORIGIN'`,
    )
  settle(directory, epoch, isProgram)
  const node = {
    version: (JSON.parse(readFileSync(join(runtime, 'package.json'), 'utf8')) as { version: string }).version,
    licence: readFileSync(join(runtime, 'LICENSE'), 'utf8').trim(),
  }
  return { directory, architecture, version, epoch, npm, libraries, node }
}

function bpfObjects(dist: string): string[] {
  const all = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.bpf.o'))
  if (all.length === 0) throw new Error(`there are no BPF objects in ${dist}: run "bash tools/setup"`)
  return all.sort()
}

function stripFor(architecture: Architecture): string {
  return architecture === process.arch ? 'strip' : `${names[architecture].triplet}-strip`
}

/** Sets the same modes and times on everything below a directory, independent of umask and clock. */
export function settle(
  directory: string,
  epoch: number,
  isExecuted: (path: string) => boolean = () => false,
): void {
  const visit = (path: string) => {
    const file = join(directory, path)
    const found = lstatSync(file)
    if (found.isDirectory())
      for (const name of readdirSync(file)) visit(path === '' ? name : `${path}/${name}`)
    if (!found.isSymbolicLink()) chmodSync(file, found.isDirectory() || isExecuted(path) ? 0o755 : 0o644)
    lutimesSync(file, epoch, epoch)
  }
  visit('')
}
