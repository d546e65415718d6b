// Reads files that may vanish at any moment, like those of processes, or be unreadable: both yield an empty result.

import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'

/** The text of a file; '' if unreadable. */
export function textOfFile(path: string): string {
  return ifThere(() => readFileSync(path, 'utf8'), '')
}

/** The names in a directory, sorted; empty if unreadable. */
export function sortedNames(directory: string): string[] {
  return ifThere(() => readdirSync(directory), [])
}

/** The target of a link; '' if unreadable, or not a link. */
export function linkText(path: string): string {
  return ifThere(() => readlinkSync(path), '')
}

/** The path with links resolved; `otherwise` if it does not resolve or access is denied. */
export function realPath(path: string, otherwise = ''): string {
  return ifThere(() => realpathSync(path), otherwise)
}

function ifThere<T>(read: () => T, otherwise: T): T {
  try {
    return read()
  } catch {
    return otherwise
  }
}
