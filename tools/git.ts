// What git says of the tree.
import { execFileSync, spawnSync } from 'node:child_process'
import { lstatSync } from 'node:fs'
import { join } from 'node:path'

/** What a command of git prints, without the last line's end; '' where it fails, as in a tree without commits. */
export function git(...args: readonly string[]): string {
  const { status, stdout } = spawnSync('git', args, { encoding: 'utf8', maxBuffer: 2 ** 28 })
  return status === 0 ? stdout.trimEnd() : ''
}

/** The commit that is checked out, '' where there is none, and whether files differ from it. */
export function checkedOut(): { readonly commit: string; readonly changed: boolean } {
  return {
    commit: git('rev-parse', '--verify', '--quiet', 'HEAD'),
    changed: git('status', '--porcelain') !== '',
  }
}

/** What a command of git prints in a folder. Throws where it fails. */
export function gitText(root: string, ...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28 })
}

/** Paths that a command of git prints with -z. Throws where it fails. */
export function gitPaths(root: string, ...args: readonly string[]): string[] {
  return gitText(root, ...args)
    .split('\0')
    .filter(path => path !== '')
}

/** Files below `root` that git does not know and does not ignore. */
export function unknownFiles(root: string): string[] {
  return gitPaths(root, 'ls-files', '-oz', '--exclude-standard')
}

/** Files and links below `root` that are there, and that git knows or would add: all, or those of the patterns. */
export function treeFiles(root: string, ...patterns: readonly string[]): string[] {
  const listed = gitPaths(root, 'ls-files', '-coz', '--exclude-standard', '--', ...patterns)
  return listed.filter(
    file => lstatSync(join(root, file), { throwIfNoEntry: false })?.isDirectory() === false,
  )
}
