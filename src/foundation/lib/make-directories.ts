import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Creates a directory, and its parents, with this mode; existing ones stay unchanged. Throws the error of the system
 * call. Node's `recursive` never returns if a parent exists but `mkdir` below it still fails with ENOENT, as in /proc
 * and below a dangling symbolic link.
 */
export function makeDirectories(path: string, mode: number): void {
  if (make(path, mode)) return
  const parent = dirname(path)
  if (parent !== path) makeDirectories(parent, mode)
  // Again, for the error if it still does not exist.
  if (!make(path, mode)) mkdirSync(path, { mode })
}

/** False if the parent is missing. */
function make(path: string, mode: number): boolean {
  try {
    mkdirSync(path, { mode })
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return false
    // A read-only file system reports that before it reports that the directory exists.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return true
    throw error
  }
}
