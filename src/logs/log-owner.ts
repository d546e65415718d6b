import { dirname } from 'node:path'
import type { Owner } from '../lib/fair-share.ts'

/**
 * Whose a log is, so that many files are one neighbour's: their user, and for files of root the directory, which is a
 * container's (its own, or that of its pod's) where a runtime writes what containers print.
 */
export function logOwner(path: string, user: number): string {
  return user === 0 ? dirname(path) : `user ${user}`
}

/** As those count who share a room: each for itself. */
export function sharing(owner: string): Owner {
  return { group: owner, user: '' }
}
