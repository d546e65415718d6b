// What may be gone at any moment, as processes are, or may not be read: then it counts as nothing.

import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'

/** The text of a file; '' where it cannot be read. */
export function textOfFile(path: string): string {
  return ifThere(() => readFileSync(path, 'utf8'), '')
}

/** The names in a directory, sorted; none where it cannot be read. */
export function sortedNames(directory: string): string[] {
  return ifThere(() => readdirSync(directory), [])
}

/** What a link says; '' where it cannot be read, or is none. */
export function linkText(path: string): string {
  return ifThere(() => readlinkSync(path), '')
}

/** Where a path leads, links followed; `otherwise` where it leads nowhere or may not be looked at. */
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
