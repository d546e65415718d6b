// What git says of the tree.
import { spawnSync } from 'node:child_process'

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

/** Files that git does not know and does not ignore. */
export function unknownFiles(): string[] {
  return git('ls-files', '-oz', '--exclude-standard')
    .split('\0')
    .filter(file => file !== '')
}
