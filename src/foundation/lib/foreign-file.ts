// Files that somebody else makes, opened so that they cannot lead the agent, which may read everything, to what their
// maker may not.

import { closeSync, constants, fstatSync, openSync, readlinkSync, readSync, type Stats } from 'node:fs'
import { isTrusted } from './own-directory.ts'

const { O_DIRECTORY, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants
/** A place in the tree, without opening what is there (open(2)); the runtime does not name it. */
const O_PATH = 0o10000000
/** As the kernel counts them (path_resolution(7)). */
const maxLinks = 40
const maxSteps = 4_096
/** Of a path, and of what a link holds (PATH_MAX). */
const maxPathLength = 4_096
const anybodyReads = 0o004
const anybodyWrites = 0o002
const sticky = 0o1000

/** A regular file that is open for reading. */
export interface ForeignFile {
  readonly fd: number
  readonly stats: Stats
}

/** A file that could be opened, and is not: whose it is, or what leads to it. */
export class RefusedFile extends Error {
  readonly hint: string

  constructor(reason: string, hint: string) {
    super(reason)
    this.hint = hint
  }
}

/**
 * Opens a regular file for reading; never waits, as for the writer of a pipe. Throws the error of the system call, or a
 * `RefusedFile`:
 * - what is no regular file, which is then not opened at all;
 * - behind a symbolic link of a user other than root, the agent's own and the file's owner, or in a directory in which
 *   others could have put the link (fs.protected_symlinks, beyond directories of mode 1777);
 * - what another user could have linked or moved to its place, itself or with a directory on the way, and may not read
 *   there (fs.protected_hardlinks).
 *
 * Each part of the path is opened by the descriptor of the part before it, and judged by its own: what is exchanged
 * meanwhile is not opened. `root`: nothing above it is reached, as after chroot(2); /proc/PID/root for a container's files.
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

/** The beginning of a file that `openForeign` opens; undefined where there is none that may be read. */
export function readForeign(path: string, mostBytes: number, root = '/'): Buffer | undefined {
  let file: ForeignFile | undefined
  try {
    file = openForeign(path, root)
    // Some file systems tell no size.
    const bytes = Buffer.allocUnsafe(Math.min(mostBytes, Math.max(file.stats.size + 1, 4_096)))
    let size = 0
    for (let read = -1; read !== 0 && size < bytes.length; size += read)
      read = readSync(file.fd, bytes, size, bytes.length - size, size)
    return bytes.subarray(0, size)
  } catch {
    return undefined // whoever needs the reason opens it
  } finally {
    if (file !== undefined) closeForeign(file.fd)
  }
}

/** Closes what `openForeign` opened. File systems of servers may fail at it; the descriptor is gone all the same (close(2)). */
export function closeForeign(fd: number): void {
  try {
    closeSync(fd)
  } catch {
    // Nothing was written that could be lost.
  }
}

interface Link {
  readonly name: string
  readonly owner: number
  readonly directory: Stats
}

/** A way through the tree, with the descriptor of where it has come to. */
class Walk {
  /** Those that it followed. */
  readonly links: Link[] = []
  /** Those that it went through; the last is that of the file. */
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
        // By the way that led here: `..` of a directory that is moved meanwhile is elsewhere.
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
      // Whoever could exchange it at this moment is not trusted with links there: `refuseLink`.
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

/** Nobody but such an owner, root and the agent puts or exchanges names in it; members of its group are trusted. */
function isKept({ uid, mode }: Stats, owner: number): boolean {
  return (isTrusted(uid) || uid === owner) && ((mode & anybodyWrites) === 0 || (mode & sticky) !== 0)
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
 * Who may write to a directory may move there what lies in another such one, or link to it; and may give a directory
 * that lies in it another name, also where it may not look into that.
 */
function refuseMoved(directories: readonly Stats[], { uid, mode, nlink }: Stats, path: string): void {
  // What everybody may read is told to nobody who could not.
  if ((mode & anybodyReads) !== 0) return
  const directory = directories.at(-1)!
  const open =
    (directory.mode & anybodyWrites) !== 0 && nlink > 1
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
