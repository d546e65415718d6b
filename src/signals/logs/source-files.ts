import { FileFinder, type FoundFile, type IsHeldPath } from './file-finder.ts'
import type { FollowedLog } from './followed-log.ts'
import type { LogSource } from './line-reader.ts'
import type { LogWarnings } from './log-warnings.ts'

/** Files and directories left out by scans for lack of room, as far as known. */
export interface OmittedFiles {
  readonly files: number
  /** Directories read in part, or not at all. */
  readonly directories: number
}

const costLooks = 4

export interface SourceFilesOptions {
  readonly sources: readonly LogSource[]
  readonly maxFiles: number
  readonly maxNames: number
  readonly isHeld: IsHeldPath
  readonly warnings: LogWarnings
}

/** Finds the files of all sources. */
export class SourceFiles {
  /** All patterns of the last scan. */
  patterns: ReadonlySet<string> = new Set()
  /** All patterns of the scan before it. */
  patternsBefore: ReadonlySet<string> = new Set()
  leftOut: OmittedFiles = { files: 0, directories: 0 }
  /**
   * CPU time of a scan, in milliseconds, averaged over the last few, so that one long scan does not delay the next for
   * long.
   */
  costMs = 0
  readonly #warnings: LogWarnings
  readonly #finders = new Map<LogSource, FileFinder>()

  constructor({ sources, maxFiles: files, maxNames: entries, isHeld, warnings }: SourceFilesOptions) {
    this.#warnings = warnings
    for (const source of sources) this.#finders.set(source, new FileFinder({ files, entries }, isHeld))
  }

  /** Bytes of cached names. */
  get bytes(): number {
    let bytes = 0
    for (const finder of this.#finders.values()) bytes += finder.bytes
    return bytes
  }

  /** Drops cached names; the next scan reads them again. */
  shed(bytes: number): number {
    let freed = 0
    for (const finder of this.#finders.values()) if (freed < bytes) freed += finder.shed(bytes - freed)
    return freed
  }

  /** Files of all sources by path. `full`: lists every directory, changed or not. */
  async find(full: boolean): Promise<Map<string, [FoundFile, LogSource]>> {
    const found = new Map<string, [FoundFile, LogSource]>()
    const asked = new Set<string>()
    let files = 0
    let directories = 0
    let costMs = 0
    for (const [source, finder] of this.#finders) {
      const patterns = source.patterns()
      for (const pattern of patterns) asked.add(pattern)
      for (const file of await finder.find(patterns, full))
        if (!found.has(file.path)) found.set(file.path, [file, source])
      costMs += finder.workedMs
      files += finder.leftOut.files
      directories += finder.leftOut.directories
      if (finder.over !== '') this.#warnings.over(source.name, finder.over)
      for (const [pattern, fault] of finder.faults) this.#warnings.pattern(pattern, fault)
    }
    this.patternsBefore = this.patterns
    this.patterns = asked
    this.costMs += (costMs - this.costMs) / costLooks
    this.leftOut = { files, directories }
    return found
  }

  /** Source of a path; undefined for none. */
  sourceOf(path: string): LogSource | undefined {
    for (const source of this.#finders.keys())
      if (this.patternOf(source, path) !== undefined && !source.excluded(path)) return source
    return undefined
  }

  /** Pattern of the source that matches a path. */
  patternOf(source: LogSource, path: string): string | undefined {
    const finder = this.#finders.get(source)
    return source.patterns().find(pattern => finder?.means(pattern, path))
  }
  /** Whether a pattern still matches a log in directories that the scan left out. */
  stillMeans(log: FollowedLog): boolean {
    const pattern = this.patternOf(log.source, log.path)
    if (pattern !== undefined) log.pattern = pattern
    return pattern !== undefined
  }
}
