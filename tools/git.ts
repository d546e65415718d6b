// Queries git about the tree.
import { execFileSync, spawnSync } from 'node:child_process'
import { lstatSync } from 'node:fs'
import { join } from 'node:path'

/** The output of a git command, without the last newline; '' on failure, as in a tree without commits. */
export function git(...args: readonly string[]): string {
  const { status, stdout } = spawnSync('git', args, { encoding: 'utf8', maxBuffer: 2 ** 28 })
  return status === 0 ? stdout.trimEnd() : ''
}

/** The current commit, '' if there is none, and whether files differ from it. */
export function checkedOut(): { readonly commit: string; readonly changed: boolean } {
  return {
    commit: git('rev-parse', '--verify', '--quiet', 'HEAD'),
    changed: git('status', '--porcelain') !== '',
  }
}

/** The output of a git command in a folder. Throws on failure. */
export function gitText(root: string, ...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28 })
}

/** Paths printed by a git command with -z. Throws on failure. */
export function gitPaths(root: string, ...args: readonly string[]): string[] {
  return gitText(root, ...args)
    .split('\0')
    .filter(path => path !== '')
}

/** Untracked files below `root`, without ignored ones. */
export function unknownFiles(root: string): string[] {
  return gitPaths(root, 'ls-files', '-oz', '--exclude-standard')
}

/** Existing files and links below `root` that git tracks or would add: all, or those of the patterns. */
export function treeFiles(root: string, ...patterns: readonly string[]): string[] {
  const listed = gitPaths(root, 'ls-files', '-coz', '--exclude-standard', '--', ...patterns)
  return listed.filter(
    file => lstatSync(join(root, file), { throwIfNoEntry: false })?.isDirectory() === false,
  )
}
