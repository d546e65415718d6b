import { lstatSync, realpathSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { FairShare } from '../../foundation/lib/fair-share.ts'
import { Turn } from '../../foundation/lib/turn.ts'
import { DirectoryListings, type Listing } from './directory-listings.ts'
import { logOwner, sharing } from './log-owner.ts'
import { matchesPath, type PathPattern, pathPatterns } from './path-pattern.ts'

/** A regular file that matches a pattern. */
export interface FoundFile {
  readonly path: string
  /** The pattern as written. */
  readonly pattern: string
  readonly stats: Stats
  /** Owner: see `logOwner`. All files below a directory of a user belong to that user. */
  readonly owner: string
}

export interface FinderLimits {
  /** Maximum directory entries. */
  readonly entries: number
  readonly files: number
  /** Maximum directory depth. */
  readonly depth: number
}

const defaults: FinderLimits = { entries: 100_000, files: 10_000, depth: 32 }
const sliceMs = 1

/**
 * Whether a path must not be accessed now, as it may block for ever. `isBeside`: it is not a link, and its directory is
 * not held: only a mount on the path itself can be.
 */
export type IsHeldPath = (path: string, isBeside?: boolean) => boolean

/** A directory in which the rest of a pattern is matched. */
interface Step {
  readonly directory: string
  readonly index: number
  readonly depth: number
  /** User, other than root, who owns a directory above it; '' for none. */
  readonly user: string
}

/** A pattern to match. */
interface Walk {
  readonly pattern: string
  readonly names: PathPattern
  readonly full: boolean
  readonly turn: Turn
}

/**
 * Finds the files that match patterns. Directories are listed again after a change. Symbolic links to files are
 * followed, those to directories only for an exact name and not below `**`, so that no walk loops. The work and results
 * of a walk are limited and shared by the owners of the files: files of the owner with the most are left out first.
 */
export class FileFinder {
  readonly #limits: FinderLimits
  readonly #isHeld: IsHeldPath
  readonly #parsed = new Map<string, PathPattern[]>()
  readonly #listings: DirectoryListings
  readonly #share: FairShare
  readonly #found = new Map<string, FoundFile>()
  /** Detour of files with several paths: see `detour`. */
  readonly #detours = new Map<string, number>()
  /** Keys of found files by owner; may include some that have changed owner. */
  readonly #keysOf = new Map<string, string[]>()
  /** Files, and incomplete or unread directories, left out by the last walk, as far as known. */
  leftOut = { files: 0, directories: 0 }
  /** Description of what was left out; '' for nothing. */
  over = ''
  /** Invalid patterns, with reasons. */
  readonly faults = new Map<string, string>()
  /** Approximate CPU time of the last walk, in milliseconds. */
  workedMs = 0

  constructor(limits: Partial<FinderLimits> = {}, isHeld: IsHeldPath = () => false) {
    this.#limits = { ...defaults, ...limits }
    this.#isHeld = isHeld
    this.#listings = new DirectoryListings(this.#limits.entries, isHeld)
    this.#share = new FairShare(this.#limits.files)
  }

  /** Approximate memory of cached names, in bytes. */
  get bytes(): number {
    return this.#listings.bytes
  }

  /** Drops cached names; the next walk reads them again. */
  shed(bytes: number): number {
    return this.#listings.shed(bytes)
  }

  /**
   * Finds all matches. `full`: lists every directory, changed or not. Each file is returned once, by its most direct
   * path.
   */
  async find(patterns: readonly string[], full = false): Promise<FoundFile[]> {
    const turn = new Turn(sliceMs)
    this.leftOut = { files: 0, directories: 0 }
    this.over = ''
    this.#listings.begin()
    for (const pattern of patterns)
      for (const names of this.#namesOf(pattern)) await this.#walk({ pattern, names, full, turn })
    this.#listings.end()
    const found = [...this.#found.values()]
    this.#found.clear()
    this.#detours.clear()
    this.#keysOf.clear()
    this.#share.clear()
    this.workedMs = turn.workedMs
    return found
  }

  /** Whether a pattern matches a path, whether it exists or not. */
  means(pattern: string, path: string): boolean {
    return this.#namesOf(pattern).some(names => matchesPath(names, path))
  }

  #namesOf(pattern: string): PathPattern[] {
    let names = this.#parsed.get(pattern)
    if (names === undefined) {
      if (this.#parsed.size >= this.#limits.files) this.#parsed.clear()
      try {
        names = pathPatterns(pattern)
      } catch (error) {
        names = []
        this.faults.set(pattern, (error as Error).message)
      }
      this.#parsed.set(pattern, names)
    }
    return names
  }

  async #walk(walk: Walk): Promise<void> {
    const { names, turn } = walk
    // For each directory on the way, the rest to visit.
    const ways: Iterator<Step>[] = [[{ directory: '', index: 0, depth: 0, user: '' }].values()]
    const visited = new Set<string>()
    for (let way = ways.at(-1); way !== undefined; way = ways.at(-1)) {
      await turn.rest()
      const next = way.next()
      if (next.done) {
        ways.pop()
        continue
      }
      let { directory, index } = next.value
      while (names[index]?.kind === 'name' && index < names.length - 1)
        directory += `/${names[index++]!.text}`
      const name = names[index]
      if (name === undefined) continue
      if (name.kind === 'name') {
        const path = `${directory}/${name.text}`
        if (!this.#isHeld(path)) this.#take(path, next.value.user, walk.pattern)
        continue
      }
      const key = `${index} ${directory}`
      if (visited.has(key)) continue
      visited.add(key)
      const below = await this.#enter({ ...next.value, directory, index }, walk)
      if (below !== undefined) ways.push(below)
    }
  }

  /** Takes the files of a directory, and returns the directories to visit next. */
  async #enter(step: Step, walk: Walk): Promise<Iterator<Step> | undefined> {
    const { directory, index, depth } = step
    const { names, turn, full } = walk
    const name = names[index]!
    const stats = this.#isHeld(directory || '/') ? undefined : statsOf(directory || '/')
    if (stats === undefined) return undefined
    const user = step.user || (stats.uid === 0 ? '' : logOwner(directory, stats.uid))
    const owner = user || directory || '/'
    const listing = await this.#listings.list(
      { directory, owner, changedMs: stats.mtimeMs, name },
      full,
      turn,
    )
    if (listing.isCut) {
      this.leftOut.directories++
      this.over ||= `directory entries over the limit of ${this.#limits.entries}, for example in ${directory}`
    }
    const isLast = index === names.length - 1
    const files = isLast ? listing.files : []
    for (let at = 0; at < files.length; at++) {
      await turn.rest()
      const file = files[at]!
      const path = `${directory}/${file}`
      if (this.#isHeld(directory || '/')) break
      if (this.#isHeld(path, !listing.links.has(file))) continue
      if (this.#take(path, user, walk.pattern) || user === '') continue
      // All the others belong to this user as well.
      this.leftOut.files += files.length - at - 1
      break
    }
    if (isLast && name.kind !== 'any') return undefined
    if (depth >= this.#limits.depth) {
      this.leftOut.directories += listing.directories.length
      if (listing.directories.length > 0) this.over ||= `directories below ${directory}`
      return undefined
    }
    return below({ ...step, user, depth: depth + 1 }, name.kind === 'any', isLast, listing)
  }

  /** False if its owner has reached its share. */
  #take(path: string, user: string, pattern: string): boolean {
    const stats = statsOf(path)
    if (!stats?.isFile()) return true
    const key = fileKey(stats.dev, stats.ino)
    const owner = user || logOwner(path, stats.uid)
    const known = this.#found.get(key)
    if (known !== undefined) {
      if (this.#isStraighter(path, known, key)) this.#replace(known, { path, pattern, stats, owner }, key)
      return true
    }
    if (!this.#makeRoom(owner)) return false
    this.#share.add(sharing(owner), 1)
    this.#add({ path, pattern, stats, owner }, key)
    return true
  }

  #add(file: FoundFile, key: string): void {
    this.#found.set(key, file)
    const keys = this.#keysOf.get(file.owner)
    if (keys === undefined) this.#keysOf.set(file.owner, [key])
    else keys.push(key)
  }

  /** Any user may make a link to another user's file: it must not replace the file's own path. */
  #isStraighter(path: string, known: FoundFile, key: string): boolean {
    let least = this.#detours.get(key)
    if (least === 0) return false
    const own = detour(path, known.stats.uid)
    if (own === mostDetour) return false
    least ??= detour(known.path, known.stats.uid)
    this.#detours.set(key, Math.min(own, least))
    return own < least
  }

  #replace(known: FoundFile, file: FoundFile, key: string): void {
    if (known.owner === file.owner) {
      this.#found.set(key, file)
      return
    }
    this.#share.remove(sharing(known.owner), 1)
    this.#share.add(sharing(file.owner), 1)
    this.#add(file, key)
  }

  #makeRoom(owner: string): boolean {
    if (this.#share.hasRoom(1)) return true
    this.leftOut.files++
    this.over ||= `files over the limit of ${this.#limits.files}`
    const giver = this.#share.giver(sharing(owner), 1)
    if (giver === undefined || giver.group === owner) return false
    this.#share.remove(giver, 1)
    const keys = this.#keysOf.get(giver.group)!
    let key = keys.pop()
    while (key !== undefined && this.#found.get(key)?.owner !== giver.group) key = keys.pop()
    if (key === undefined) return true
    this.#found.delete(key)
    this.#detours.delete(key)
    return true
  }
}

function* below(from: Step, isAny: boolean, isLast: boolean, listing: Listing): IterableIterator<Step> {
  const { directory, index } = from
  if (isAny && !isLast) yield { ...from, index: index + 1 }
  const into = isAny ? index : index + 1
  for (const name of listing.directories) yield { ...from, directory: `${directory}/${name}`, index: into }
  // A link may lead to a directory.
  if (!isAny)
    for (const name of listing.files) yield { ...from, directory: `${directory}/${name}`, index: into }
}

/** Detour of a path that is a link itself. */
const mostDetour = 3

/** How indirect a path to a file is: through a link on the way, or in a directory of another user. */
function detour(path: string, user: number): number {
  try {
    if (lstatSync(path).isSymbolicLink()) return mostDetour
    if (realpathSync.native(path) !== path) return 2
    const { uid } = statSync(dirname(path))
    return uid === 0 || uid === user ? 0 : 1
  } catch {
    return mostDetour // removed in between
  }
}

/** Identity of a file while it exists. */
export function fileKey(device: number, inode: number): string {
  return `${device}:${inode}`
}

/** Undefined if the path does not exist or is not accessible. */
export function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}
