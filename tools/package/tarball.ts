// The archive to unpack anywhere: the program directory at its top, with the files that packages install.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { output } from './command.ts'
import type { Effort } from './debian-package.ts'
import { archiveName } from './release.ts'
import { isProgram, settle, type Tree } from './stage.ts'
import type { SystemFiles } from './system-files.ts'

interface TarballOptions {
  readonly tree: Tree
  readonly files: SystemFiles
  /** Output directory. */
  readonly directory: string
  readonly effort: Effort
}

/** Writes the archive and returns its path. Uses a temporary folder beside it. */
export function writeTarball({ tree, files, directory, effort }: TarballOptions): string {
  const name = archiveName(tree.version, tree.architecture)
  const top = join(directory, name)
  try {
    output('cp', ['-a', tree.directory, top])
    for (const [path, content] of files) {
      const file = join(top, placeOf(path))
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, content)
    }
    settle(top, tree.epoch, isProgram)
    const file = join(directory, `${name}.tar`)
    pack(top, file)
    output('gzip', ['--no-name', effort === 'best' ? '-9' : '-1', '--force', file])
    return `${file}.gz`
  } finally {
    rmSync(top, { recursive: true, force: true })
  }
}

/** The same bytes for the same files: sorted, owned by root, without metadata of this file system. */
function pack(top: string, file: string): void {
  const plain = ['--format=ustar', '--sort=name', '--owner=root:0', '--group=root:0']
  output('tar', [...plain, '--create', '--file', file, '--directory', dirname(top), basename(top)])
}

/** Maps `/etc/svc/config.yaml` to `etc/svc/config.yaml`, and `/usr/share/man` to `share/man`. */
function placeOf(path: string): string {
  return path.replace(/^\/(usr\/(lib\/)?)?/, '')
}
