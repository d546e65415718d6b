import type { FileOwners } from './file-owners.ts'
import type { FollowedLog } from './followed-log.ts'
import type { LogFile } from './log-file.ts'

export interface OpenFilesOptions {
  readonly most: number
  readonly owners: FileOwners
  /** Logs that are read; one whose only file is closed is left out until it grows. */
  readonly awake: Set<FollowedLog>
  /** Whether closing a file may wait for ever, as its file system does not answer. */
  readonly isHeld: (file: LogFile) => boolean
  /** There are too many, for the first time. */
  readonly warn: () => void
}

/** Files that are open: a bounded number. Where there are more, those are closed first whose owner has most of them. */
export class OpenFiles {
  private readonly options: OpenFilesOptions
  private readonly ownerOf = new Map<LogFile, string>()
  /** In the order of their opening. */
  private readonly filesOf = new Map<string, Set<LogFile>>()
  /** To be closed once their file systems answer. */
  private readonly late = new Set<LogFile>()

  constructor(options: OpenFilesOptions) {
    this.options = options
  }

  get size(): number {
    return this.ownerOf.size
  }

  /** Takes in one that was just opened; another one is closed where too many are. */
  add(file: LogFile, owner: string): void {
    this.late.delete(file)
    if (this.ownerOf.has(file)) return
    if (this.size >= this.options.most) this.makeRoom()
    this.ownerOf.set(file, owner)
    const files = this.filesOf.get(owner) ?? new Set()
    this.filesOf.set(owner, files.add(file))
  }

  close(file: LogFile): void {
    if (file.isOpen && this.options.isHeld(file)) this.late.add(file)
    else file.close()
    const owner = this.ownerOf.get(file)
    if (owner === undefined) return
    this.ownerOf.delete(file)
    const files = this.filesOf.get(owner)!
    files.delete(file)
    if (files.size === 0) this.filesOf.delete(owner)
  }

  /** Closes what was held, and is no longer. */
  closeLate(): void {
    for (const file of this.late) {
      if (this.options.isHeld(file)) continue
      this.late.delete(file)
      file.close()
    }
  }

  private makeRoom(): void {
    const { owners, awake, warn } = this.options
    const chosen = this.leastNeeded()
    if (chosen === undefined) return
    this.close(chosen)
    const log = owners.logOf(chosen)
    // A look at the directories finds out when it grows.
    if (log?.files.length === 1 && log.trailing.length === 0 && chosen.readTo >= chosen.size)
      awake.delete(log)
    warn()
  }

  /** Those that were renamed may be removed before they are opened again. */
  private leastNeeded(): LogFile | undefined {
    let most: ReadonlySet<LogFile> | undefined
    for (const files of this.filesOf.values()) if (most === undefined || files.size > most.size) most = files
    let first: LogFile | undefined
    for (const file of most ?? []) {
      if (!file.isOpen || !file.isRotated) return file
      first ??= file
    }
    return first
  }
}
