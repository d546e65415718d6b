// Builds the .deb with dpkg-deb from a staged root (deb-control(5)).

import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { output } from './command.ts'
import { newestSymbols } from './elf.ts'
import { debianScripts } from './maintainer-scripts.ts'
import { manifest, names, packageVersion } from './release.ts'
import { linkedFiles, settle, type Tree } from './stage.ts'
import { configuration } from './system-files.ts'

/** Compression level of archives; tests use `fast`. */
export type Effort = 'best' | 'fast'

interface DebianOptions {
  /** The root with all files of the package, from `stagePackage`. */
  readonly root: string
  /** Paths of its files and links, sorted. */
  readonly paths: readonly string[]
  readonly tree: Tree
  /** Output directory. */
  readonly directory: string
  readonly effort: Effort
}

/** Writes the package and returns its path. The root temporarily has a folder DEBIAN. */
export function writeDebianPackage({ root, paths, tree, directory, effort }: DebianOptions): string {
  const control = join(root, 'DEBIAN')
  mkdirSync(control)
  const put = (name: string, text: string) => writeFileSync(join(control, name), text)
  put('control', controlFile(root, paths, tree))
  put('conffiles', `${configuration}\n`)
  put(
    'md5sums',
    paths
      .filter(path => isOwn(root, path))
      .map(path => sumLine(root, path))
      .join(''),
  )
  for (const [name, text] of Object.entries(debianScripts)) put(name, text)
  settle(control, tree.epoch, name => name in debianScripts)
  // The package includes the mode of the root itself.
  chmodSync(root, 0o755)
  const { debian } = names[tree.architecture]
  const file = join(directory, `svc_${packageVersion(tree.version)}_${debian}.deb`)
  const press = effort === 'best' ? ['-Zxz', '-z6'] : ['-Znone']
  output('dpkg-deb', ['--root-owner-group', ...press, '--build', root, file], {
    env: { SOURCE_DATE_EPOCH: String(tree.epoch) },
  })
  return file
}

function controlFile(root: string, paths: readonly string[], tree: Tree): string {
  const { description } = manifest()
  const programs = linkedFiles(tree)
  const size = paths.reduce(
    (sum, path) => sum + (isFile(root, path) ? Math.ceil(statSync(join(root, path)).size / 1024) : 1),
    0,
  )
  const fields = {
    Package: 'svc',
    Version: packageVersion(tree.version),
    Architecture: names[tree.architecture].debian,
    Maintainer: 'svc contributors <svc@localhost>',
    'Installed-Size': String(size),
    Depends: `libc6 (>= ${newestSymbols(programs, 'GLIBC')}), libgcc-s1, libstdc++6, init-system-helpers, passwd`,
    Section: 'admin',
    Priority: 'optional',
    Description: `${description.replace(/\.$/, '')}\n The data goes to an OTLP receiver and to a live page. The package contains its own runtime.`,
  }
  return Object.entries(fields)
    .map(([name, value]) => `${name}: ${value}\n`)
    .join('')
}

function isFile(root: string, path: string): boolean {
  return statSync(join(root, path), { throwIfNoEntry: false })?.isFile() === true
}

/** dpkg keeps checksums of files except configuration, which it tracks separately. */
function isOwn(root: string, path: string): boolean {
  return path !== configuration && !path.startsWith('/usr/bin/') && isFile(root, path)
}

function sumLine(root: string, path: string): string {
  const sum = createHash('md5')
    .update(readFileSync(join(root, path)))
    .digest('hex')
  return `${sum}  ${path.slice(1)}\n`
}
