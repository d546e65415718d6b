import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  type Stats,
} from 'node:fs'
import { isAbsolute } from 'node:path'
import { makeDirectories } from './make-directories.ts'

const writableByGroup = 0o020
const writableByOthers = 0o002
const sticky = 0o1000
/** The kernel's limit (path_resolution(7)). */
const maxLinks = 40

export interface OwnDirectoryOptions {
  /** Mode of created directories. Default: 0700. */
  readonly mode?: number
  /** Other users may have files in it, as in /tmp. */
  readonly isShared?: boolean
}

/**
 * Creates a directory for the agent's files, and its parents; existing ones stay unchanged. Throws the error of the
 * system call, or an explanation if another user could read, plant or replace files in it: by its owner and mode, and
 * those of all directories and links on the way to it.
 */
export function makeOwnDirectory(
  path: string,
  { mode = 0o700, isShared = false }: OwnDirectoryOptions = {},
): void {
  // Check the existing path before creating anything.
  checkOwnDirectory(path, true)
  makeDirectories(path, mode)
  checkOwnDirectory(path, isShared)
}

/** The same check without creating it: a missing directory is safe. */
export function checkOwnDirectory(path: string, isShared = false): void {
  let left = namesIn(isAbsolute(path) ? path : `${process.cwd()}/${path}`)
  let behind: string[] = []
  let above = lstatSync('/')
  let links = 0
  while (left.length > 0) {
    const name = left.shift()!
    if (name === '..') {
      left = [...behind.slice(0, -1), ...left]
      behind = []
      above = lstatSync('/')
      continue
    }
    const whole = `/${[...behind, name].join('/')}`
    const stats = lstatSync(whole, { throwIfNoEntry: false })
    if (stats === undefined) return
    if (stats.isSymbolicLink()) {
      if (!isTrusted(stats.uid))
        throw new Error(
          `user ${stats.uid} made the link ${whole} and could point it elsewhere; chown -h ${self()} ${whole}`,
        )
      if (++links > maxLinks) throw Object.assign(new Error('too many links'), { code: 'ELOOP' })
      const target = readlinkSync(whole)
      left = [...namesIn(target), ...left]
      if (!target.startsWith('/')) continue
      behind = []
      above = lstatSync('/')
      continue
    }
    if (stats.isDirectory()) refuse(whole, stats, above, left.length === 0 && !isShared)
    behind.push(name)
    above = stats
  }
}

/** The beginning of a file owned by root or svc's user in a checked directory; undefined if there is none. */
export function readOwnFile(path: string, mostBytes: number): string | undefined {
  let fd: number
  try {
    checkOwnDirectory(path, true)
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  } catch {
    return undefined
  }
  try {
    const stats = fstatSync(fd)
    if (!stats.isFile() || !isTrusted(stats.uid)) return undefined
    const bytes = Buffer.alloc(mostBytes)
    return bytes.toString('utf8', 0, readSync(fd, bytes, 0, mostBytes, 0))
  } catch {
    return undefined
  } finally {
    closeSync(fd)
  }
}

/** `isOwn`: it contains the agent's own files; otherwise it is on the way to them. */
function refuse(path: string, { uid, gid, mode, dev }: Stats, above: Stats, isOwn: boolean): void {
  if (!isTrusted(uid))
    throw new Error(
      `${path} belongs to user ${uid}, who could change what svc keeps there; chown ${self()} ${path}`,
    )
  // A container's volume is often writable by everyone in it; a user who may mount on a host may write anywhere.
  if (dev !== above.dev) return
  if ((mode & writableByOthers) !== 0 && (isOwn || (mode & sticky) === 0))
    throw new Error(`any user may write to ${path}; chmod o-w ${path}`)
  if (isOwn && (mode & writableByGroup) !== 0 && gid !== 0 && gid !== process.getegid?.())
    throw new Error(`group ${gid} may write to ${path}; chmod g-w ${path}`)
}

/** True for users that are trusted like svc: root, and svc's own user. */
export function isTrusted(user: number): boolean {
  return user === 0 || user === process.geteuid?.()
}

function self(): string {
  return String(process.geteuid?.() ?? 0)
}

function namesIn(path: string): string[] {
  return path.split('/').filter(name => name !== '' && name !== '.')
}
