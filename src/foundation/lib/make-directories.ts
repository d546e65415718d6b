import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Makes a directory, and those above it, with these rights; what is there stays as it is. Throws the error of the system
 * call. Node's own way (`recursive`) never returns where a parent is there and `mkdir` below it says ENOENT all the
 * same, as in /proc and below a symbolic link to nowhere.
 */
export function makeDirectories(path: string, mode: number): void {
  if (make(path, mode)) return
  const parent = dirname(path)
  if (parent !== path) makeDirectories(parent, mode)
  // Once more for the error, where it is still not there.
  if (!make(path, mode)) mkdirSync(path, { mode })
}

/** False where the parent is missing. */
function make(path: string, mode: number): boolean {
  try {
    mkdirSync(path, { mode })
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return false
    // A read-only file system says so before it says that the directory is there.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return true
    throw error
  }
}
