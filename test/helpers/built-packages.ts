// The packages of this tree, pressed as little as can be and made once for each state of it.

import { createHash } from 'node:crypto'
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { treeFiles } from '../../tools/git.ts'
import { root, sourceEpoch } from '../../tools/package/release.ts'
import type { Tree } from '../../tools/package/stage.ts'
import { programDirectory } from '../../tools/package/system-files.ts'
import { type StagedPackage, stagePackage, writeChecksums, writePackages } from '../../tools/package/write.ts'

const build = join(root, 'build')

/** What packages are made of, beside what lies in dist. */
const sources = [
  'src',
  'bin',
  'bpf/LICENSE',
  'LICENSE',
  'package.json',
  'package-lock.json',
  'tools',
  'deploy/systemd',
]

/** Artefacts, by where they lie. */
export interface BuiltPackages {
  readonly directory: string
  /** What a package puts on a host, as one tree. */
  readonly root: string
  readonly deb: string
  readonly tarball: string
  readonly bill: string
  /** What they were made of, for other artefacts of the same tree. */
  readonly staged: StagedPackage
}

/** Makes them where they are not there yet. `version` is that of package.json unless it is given. */
export async function builtPackages(version?: string): Promise<BuiltPackages> {
  const kept = join(build, `packages-${version ?? 'own'}-${checksum()}`)
  if (!isThere(kept)) {
    mkdirSync(build, { recursive: true })
    // Those of earlier states, and what a test that was ended left.
    for (const name of readdirSync(build))
      if (name.startsWith(`packages-${version ?? 'own'}-`)) rmSync(join(build, name), { recursive: true })
    const own = mkdtempSync(join(build, `packages-${version ?? 'own'}-`))
    try {
      const staged = await stagePackage({
        directory: join(own, 'root'),
        architecture: process.arch === 'arm64' ? 'arm64' : 'x64',
        dist: join(root, 'dist'),
        epoch: sourceEpoch(),
        ...(version !== undefined && { version }),
      })
      const artefacts = writePackages(staged, own, 'fast')
      writeChecksums(own, artefacts)
      writeFileSync(join(own, 'tree.json'), JSON.stringify(staged.tree))
      renameSync(own, kept)
    } finally {
      rmSync(own, { recursive: true, force: true })
    }
  }
  const names = readdirSync(kept)
  const named = (ending: string) => join(kept, names.find(name => name.endsWith(ending))!)
  return {
    directory: kept,
    root: join(kept, 'root'),
    deb: named('.deb'),
    tarball: named('.tar.gz'),
    bill: named('.cdx.json'),
    staged: stagedIn(kept),
  }
}

/** As it was staged, where it lies now. */
function stagedIn(kept: string): StagedPackage {
  const root = join(kept, 'root')
  const paths = pathsBelow(root).map(path => `/${path}`)
  const tree = JSON.parse(readFileSync(join(kept, 'tree.json'), 'utf8')) as Tree
  const own = paths.filter(path => !path.startsWith(`${programDirectory}/`) && path !== '/usr/bin/svc')
  const files = new Map(own.map(path => [path, readFileSync(join(root, path))]))
  return { root, paths, files, tree: { ...tree, directory: join(root, programDirectory) } }
}

/** Paths of the files and links of a tree, sorted, without the slash in front. */
export function pathsBelow(directory: string): string[] {
  const all = readdirSync(directory, { recursive: true, encoding: 'utf8' })
  return all.filter(path => !lstatSync(join(directory, path)).isDirectory()).sort()
}

function isThere(directory: string): boolean {
  return lstatSync(directory, { throwIfNoEntry: false }) !== undefined
}

function checksum(): string {
  const tracked = treeFiles(root, ...sources)
  const built = pathsBelow(join(root, 'dist')).map(path => join('dist', path))
  const hash = createHash('sha256').update(String(sourceEpoch()))
  for (const file of [...tracked, ...built].sort())
    if (lstatSync(join(root, file)).isFile() && !basename(file).includes('.test.'))
      hash.update(`${file}\0`).update(readFileSync(join(root, file)))
  return hash.digest('hex').slice(0, 12)
}
