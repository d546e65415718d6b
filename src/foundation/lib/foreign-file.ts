// Opens files that other users control, so that they cannot lead the agent, which may read everything, to files that
// their owner may not read.

import { closeSync, constants, fstatSync, openSync, readlinkSync, readSync, type Stats } from 'node:fs'
import { isTrusted } from './own-directory.ts'

const { O_DIRECTORY, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants
/** References a path without opening it (open(2)); the runtime has no constant for it. */
const O_PATH = 0o10000000
/** The kernel's limits (path_resolution(7)). */
const maxLinks = 40
const maxSteps = 4_096
/** Of a path, and of a link's target (PATH_MAX). */
const maxPathLength = 4_096
const othersRead = 0o004
const othersWrite = 0o002
const sticky = 0o1000

/** A regular file that is open for reading. */
export interface ForeignFile {
  readonly fd: number
  readonly stats: Stats
}

/** A file that could be opened but is refused: because of its owner, or of the path to it. */
export class RefusedFile extends Error {
  readonly hint: string

  constructor(reason: string, hint: string) {
    super(reason)
    this.hint = hint
  }
}

/**
 * Opens a regular file for reading; never waits, for example for the writer of a pipe. Throws the error of the system
 * call, or a `RefusedFile`:
 * - for anything but a regular file, which is then not opened at all;
 * - behind a symbolic link of a user other than root, the agent's own and the file's owner, or in a directory in which
 *   others could have put the link (fs.protected_symlinks, extended beyond directories of mode 1777);
 * - for a file that another user, who may not read it there, could have linked or moved to its place, itself or with a
 *   directory on the way (fs.protected_hardlinks).
 *
 * Each part of the path is opened relative to the descriptor of the previous part, and checked by its own: a part that
 * is exchanged during the walk is not opened. `root`: nothing above it is reached, as after chroot(2); /proc/PID/root
 * for a container's files.
 */
export function openForeign(path: string, root = '/'): ForeignFile {
  const walk = new Walk(root)
  try {
    const { place, stats } = walk.to(path)
    if (!stats.isFile()) throw new RefusedFile(`${path} is not a regular file`, `remove ${path}`)
    for (const link of walk.links) refuseLink(link, stats, path)
    refuseMoved(walk.directories, stats, path)
    return { fd: openSync(named(place), O_RDONLY | O_NONBLOCK | O_NOCTTY), stats }
  } finally {
    walk.close()
  }
}

/** The beginning of a file opened with `openForeign`; undefined if it cannot be read. */
export function readForeign(path: string, mostBytes: number, root = '/'): Buffer | undefined {
  let file: ForeignFile | undefined
  try {
    file = openForeign(path, root)
    // Some file systems report no size.
    const bytes = Buffer.allocUnsafe(Math.min(mostBytes, Math.max(file.stats.size + 1, 4_096)))
    let size = 0
    for (let read = -1; read !== 0 && size < bytes.length; size += read)
      read = readSync(file.fd, bytes, size, bytes.length - size, size)
    return bytes.subarray(0, size)
  } catch {
    return undefined // callers that need the reason use `openForeign`
  } finally {
    if (file !== undefined) closeForeign(file.fd)
  }
}

/**
 * Closes a descriptor from `openForeign`. Network file systems may report an error; the descriptor is released anyway
 * (close(2)).
 */
export function closeForeign(fd: number): void {
  try {
    closeSync(fd)
  } catch {
    // Nothing was written, so nothing is lost.
  }
}

interface Link {
  readonly name: string
  readonly owner: number
  readonly directory: Stats
}

/** A walk through the tree, with the descriptor of its current place. */
class Walk {
  /** Links that were followed. */
  readonly links: Link[] = []
  /** Directories that were passed; the last one contains the file. */
  readonly directories: Stats[] = []
  readonly #root: string
  #place = -1
  #stats: Stats | undefined

  constructor(root: string) {
    this.#root = root
  }

  to(path: string): { readonly place: number; readonly stats: Stats } {
    if (!path.startsWith('/')) throw new RefusedFile(`${path} does not begin with /`, 'use an absolute path')
    let left = namesIn(path)
    let behind: string[] = []
    this.#goToRoot()
    for (let steps = 0; left.length > 0; steps++) {
      if (steps > maxSteps) throw coded('ELOOP', `too many links in ${path}`)
      const name = left.shift()!
      if (name === '..') {
        // Lexically: `..` of a directory that is moved during the walk leads elsewhere.
        left = [...behind.slice(0, -1), ...left]
        behind = []
        this.#goToRoot()
        continue
      }
      const above = this.#stats!
      const place = openSync(`${named(this.#place)}/${name}`, O_PATH | O_NOFOLLOW)
      const stats = fstatSync(place)
      if (!stats.isSymbolicLink()) {
        this.#move(place, stats)
        behind.push(name)
        continue
      }
      closeSync(place)
      if (this.links.length >= maxLinks) throw coded('ELOOP', `too many links in ${path}`)
      // A user who could replace it right now is not trusted with links here: see `refuseLink`.
      const target = readlinkSync(`${named(this.#place)}/${name}`)
      this.links.push({ name, owner: stats.uid, directory: above })
      left = [...namesIn(target), ...left]
      if (!target.startsWith('/')) continue
      behind = []
      this.#goToRoot()
    }
    return { place: this.#place, stats: this.#stats! }
  }

  close(): void {
    if (this.#place >= 0) closeSync(this.#place)
    this.#place = -1
  }

  #goToRoot(): void {
    const root = openSync(this.#root, O_PATH | O_DIRECTORY)
    this.#move(root, fstatSync(root))
  }

  #move(place: number, stats: Stats): void {
    this.close()
    this.#place = place
    this.#stats = stats
    if (stats.isDirectory()) this.directories.push(stats)
  }
}

function namesIn(path: string): string[] {
  if (path.length > maxPathLength) throw coded('ENAMETOOLONG', 'the path is too long')
  return path.split('/').filter(name => name !== '' && name !== '.')
}

function named(place: number): string {
  return `/proc/self/fd/${place}`
}

function coded(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}

/** True if only this owner, root and the agent can add or replace names in it; members of its group are trusted. */
function isKept({ uid, mode }: Stats, owner: number): boolean {
  return (isTrusted(uid) || uid === owner) && ((mode & othersWrite) === 0 || (mode & sticky) !== 0)
}

function refuseLink({ name, owner, directory }: Link, file: Stats, path: string): void {
  if (!isTrusted(owner) && owner !== file.uid)
    throw new RefusedFile(
      `${path} is not read: the link ${name} in it belongs to user ${owner}, but leads to a file of user ${file.uid}`,
      `use the path of the file itself, or chown -h root the link if it is correct`,
    )
  if (!isKept(directory, owner))
    throw new RefusedFile(
      `${path} is not read: user ${owner} owns the link ${name} in it, and other users may write to its directory`,
      `use the path of the file itself, or chown the directory to user ${owner} and chmod o-w it`,
    )
}

/**
 * A user with write access to a directory may move entries there from another such directory, or link to them; and may
 * rename a directory in it, even one that the user cannot look into.
 */
function refuseMoved(directories: readonly Stats[], { uid, mode, nlink }: Stats, path: string): void {
  // A file that every user may read reveals nothing.
  if ((mode & othersRead) !== 0) return
  const directory = directories.at(-1)!
  const open =
    (directory.mode & othersWrite) !== 0 && nlink > 1
      ? directory
      : directories.find(each => !isKept(each, uid))
  if (open === undefined) return
  const isOwners = isTrusted(open.uid) || open.uid === uid
  throw new RefusedFile(
    `${path} is not read: it is private to user ${uid}, and ${
      isOwners ? 'any user' : `user ${open.uid}`
    } could have moved it, or a directory above it, there`,
    `chown the directories that lead to it to user ${uid} or root and chmod o-w them, or chmod o+r the file`,
  )
}
