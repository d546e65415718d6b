// All artefacts of one program directory.

import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type Effort, writeDebianPackage } from './debian-package.ts'
import { archiveName } from './release.ts'
import { isProgram, settle, stageTree, type Tree, type TreeOptions } from './stage.ts'
import { paths, programDirectory, type SystemFiles, systemFiles, writeSystemFiles } from './system-files.ts'
import { writeTarball } from './tarball.ts'

/** A staged root: all files that a package installs. */
export interface StagedPackage {
  readonly root: string
  /** Its files and links by their path on the host, sorted. */
  readonly paths: readonly string[]
  readonly tree: Tree
  readonly files: SystemFiles
}

/** Creates a root with all files of a package in `directory`, including the program directory. */
export async function stagePackage(options: TreeOptions): Promise<StagedPackage> {
  const { directory: root } = options
  const tree = await stageTree({ ...options, directory: join(root, programDirectory) })
  const files = systemFiles(tree)
  writeSystemFiles(root, files)
  const top = `${programDirectory.slice(1)}/`
  settle(root, tree.epoch, path => path.startsWith(top) && isProgram(path.slice(top.length)))
  return { root, paths: filesBelow(root), tree, files }
}

/** Writes the packages of a staged root except the .rpm into `directory`, and returns their paths. */
export function writePackages(staged: StagedPackage, directory: string, effort: Effort): string[] {
  const { tree, files } = staged
  mkdirSync(directory, { recursive: true })
  const bill = join(directory, `${archiveName(tree.version, tree.architecture)}.cdx.json`)
  writeFileSync(bill, files.get(paths.bill)!)
  const written = [bill, writeTarball({ tree, files, directory, effort })]
  written.push(writeDebianPackage({ ...staged, directory, effort }))
  // Only for dpkg.
  rmSync(join(staged.root, 'DEBIAN'), { recursive: true })
  return written
}

/** Writes SHA256SUMS of all artefacts in a directory, for sha256sum --check. */
export function writeChecksums(directory: string, artefacts: readonly string[]): string {
  const lines = artefacts.map(
    file => `${createHash('sha256').update(readFileSync(file)).digest('hex')}  ${basename(file)}\n`,
  )
  const file = join(directory, 'SHA256SUMS')
  writeFileSync(file, lines.sort((a, b) => (a.slice(66) < b.slice(66) ? -1 : 1)).join(''))
  return file
}

function filesBelow(root: string): string[] {
  const all = readdirSync(root, { recursive: true, encoding: 'utf8' })
  return all
    .filter(path => !lstatSync(join(root, path)).isDirectory())
    .map(path => `/${path}`)
    .sort()
}
