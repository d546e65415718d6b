import { dirname } from 'node:path'
import type { Owner } from '../../foundation/lib/fair-share.ts'

/**
 * Owner of a log, for fair sharing: the user of the file, and for files of root the directory, which is that of a
 * container or pod in the log directories of runtimes.
 */
export function logOwner(path: string, user: number): string {
  return user === 0 ? dirname(path) : `user ${user}`
}

/** Owner for a fair share, as a group of its own. */
export function sharing(owner: string): Owner {
  return { group: owner, user: '' }
}
