import { type Stats, statSync } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { matchesPath, type PathPattern, pathPatterns } from './path-pattern.ts'
import { Slices } from './slices.ts'

/** A regular file that a pattern means. */
export interface FoundFile {
  readonly path: string
  /** The pattern, as it was asked for. */
  readonly pattern: string
  readonly stats: Stats
}

export interface FinderLimits {
  /** Entries of directories that one walk looks at. */
  readonly entries: number
  readonly files: number
  /** Directories below each other. */
  readonly depth: number
}

const defaults: FinderLimits = { entries: 100_000, files: 10_000, depth: 32 }
/** A directory that changed so shortly before it was listed may change again within the same tick of the file system. */
const tickMs = 100
const sliceMs = 1

/** What one name of a pattern means in one directory. */
interface Listing {
  readonly changedMs: number
  /** 0: it was left before its end. */
  readonly listedMs: number
  readonly entries: number
  readonly files: readonly string[]
  readonly directories: readonly string[]
}

/** A directory in which the rest of a pattern is looked for. */
interface Step {
  readonly directory: string
  readonly index: number
  readonly depth: number
}

/**
 * Finds the files that patterns mean. Directories are listed again when they changed. Symbolic links to files are
 * followed, those to directories only where one name is asked for and not below `**`, so no walk goes in circles.
 */
export class FileFinder {
  private readonly limits: FinderLimits
  private readonly parsed = new Map<string, PathPattern[]>()
  private listings = new Map<string, Listing>()
  private entries = 0
  /** What the last walk left out, in words; '' for nothing. */
  over = ''
  /** Patterns that cannot be read, and why. */
  readonly faults = new Map<string, string>()
  /** CPU time of the last walk, about. */
  workedMs = 0

  constructor(limits: Partial<FinderLimits> = {}) {
    this.limits = { ...defaults, ...limits }
  }

  /** `anew`: every directory is listed, changed or not. Each file comes once, by the first path that leads to it. */
  async find(patterns: readonly string[], anew = false): Promise<FoundFile[]> {
    const slices = new Slices(sliceMs)
    const found = new Map<string, FoundFile>()
    const before = this.listings
    this.listings = new Map()
    this.entries = 0
    this.over = ''
    for (const pattern of patterns)
      for (const names of this.namesOf(pattern))
        await this.walk(pattern, names, anew ? undefined : before, slices, found)
    this.workedMs = slices.totalMs
    return [...found.values()]
  }

  /** Whether a pattern means a path, file or none. */
  means(pattern: string, path: string): boolean {
    return this.namesOf(pattern).some(names => matchesPath(names, path))
  }

  private namesOf(pattern: string): PathPattern[] {
    let names = this.parsed.get(pattern)
    if (names === undefined) {
      if (this.parsed.size >= this.limits.files) this.parsed.clear()
      try {
        names = pathPatterns(pattern)
      } catch (error) {
        names = []
        this.faults.set(pattern, (error as Error).message)
      }
      this.parsed.set(pattern, names)
    }
    return names
  }

  private async walk(
    pattern: string,
    names: PathPattern,
    before: ReadonlyMap<string, Listing> | undefined,
    slices: Slices,
    found: Map<string, FoundFile>,
  ): Promise<void> {
    const steps: Step[] = [{ directory: '', index: 0, depth: 0 }]
    const visited = new Set<string>()
    for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
      await slices.rest()
      let { directory, index } = step
      while (names[index]?.kind === 'name' && index < names.length - 1)
        directory += `/${names[index++]!.text}`
      const name = names[index]
      if (name === undefined) continue
      if (name.kind === 'name') {
        this.take(`${directory}/${name.text}`, pattern, found)
        continue
      }
      const isLast = index === names.length - 1
      const key = `${index} ${directory}`
      if (visited.has(key)) continue
      visited.add(key)
      const listing = await this.list(directory, name.text, before, slices, entry => name.matches(entry))
      for (const file of isLast ? listing.files : []) {
        await slices.rest()
        if (!this.take(`${directory}/${file}`, pattern, found)) return
      }
      if (step.depth >= this.limits.depth) this.over ||= `directories below ${directory}`
      else this.descend(steps, { ...step, directory, index }, name.kind === 'any', isLast, listing)
    }
  }

  private descend(steps: Step[], at: Step, isAny: boolean, isLast: boolean, listing: Listing): void {
    const { directory, index } = at
    const depth = at.depth + 1
    if (isAny) {
      for (const name of listing.directories) steps.push({ directory: `${directory}/${name}`, index, depth })
      if (!isLast) steps.push({ directory, index: index + 1, depth })
    } else if (!isLast) {
      const names = [...listing.directories, ...listing.files]
      for (const name of names) steps.push({ directory: `${directory}/${name}`, index: index + 1, depth })
    }
  }

  /** False where there is no room for more. */
  private take(path: string, pattern: string, found: Map<string, FoundFile>): boolean {
    const stats = statsOf(path)
    if (!stats?.isFile()) return true
    const key = fileKey(stats.dev, stats.ino)
    if (found.has(key)) return true
    if (found.size >= this.limits.files) {
      this.over ||= `files beyond ${this.limits.files}`
      return false
    }
    found.set(key, { path, pattern, stats })
    return true
  }

  private async list(
    directory: string,
    name: string,
    before: ReadonlyMap<string, Listing> | undefined,
    slices: Slices,
    matches: (name: string) => boolean,
  ): Promise<Listing> {
    const changedMs = statsOf(directory || '/')?.mtimeMs
    if (changedMs === undefined) return nothing
    const key = `${name} ${directory}`
    const known = this.listings.get(key) ?? before?.get(key)
    const listing =
      known !== undefined && known.changedMs === changedMs && known.listedMs - changedMs > tickMs
        ? known
        : await this.listAnew(directory || '/', changedMs, slices, matches)
    if (!this.listings.has(key)) this.entries += listing.entries
    this.listings.set(key, listing)
    return listing
  }

  private async listAnew(
    directory: string,
    changedMs: number,
    slices: Slices,
    matches: (name: string) => boolean,
  ): Promise<Listing> {
    const files: string[] = []
    const directories: string[] = []
    let listedMs = Date.now()
    let entries = 0
    try {
      for await (const entry of await opendir(directory, { bufferSize: 256 })) {
        if (this.entries + ++entries > this.limits.entries) {
          this.over ||= `entries beyond ${this.limits.entries}, from ${directory} on`
          listedMs = 0
          break
        }
        await slices.rest()
        if (!matches(entry.name)) continue
        if (entry.isDirectory()) directories.push(entry.name)
        else if (entry.isFile() || entry.isSymbolicLink()) files.push(entry.name)
      }
    } catch {
      // It is gone, or may not be read: then it holds nothing for us.
    }
    return { changedMs, listedMs, entries, files, directories }
  }
}

const nothing: Listing = { changedMs: 0, listedMs: 0, entries: 0, files: [], directories: [] }

/** Names a file as long as it is there. */
export function fileKey(device: number, inode: number): string {
  return `${device}:${inode}`
}

/** Undefined where the path leads nowhere, or may not be followed. */
export function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}
