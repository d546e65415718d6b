import type { FileOwners } from './file-owners.ts'
import type { FollowedLog } from './followed-log.ts'
import type { LogFile } from './log-file.ts'

export interface OpenFilesOptions {
  readonly most: number
  readonly owners: FileOwners
  /** Logs that are read; one whose only file is closed is left out until it grows. */
  readonly awake: Set<FollowedLog>
  /** There are too many, for the first time. */
  readonly warn: () => void
}

/** Files that are open, a bounded number. */
export class OpenFiles {
  private readonly options: OpenFilesOptions
  /** In the order of their opening. */
  private readonly files = new Set<LogFile>()

  constructor(options: OpenFilesOptions) {
    this.options = options
  }

  get size(): number {
    return this.files.size
  }

  add(file: LogFile): void {
    this.files.add(file)
  }

  close(file: LogFile): void {
    file.close()
    this.files.delete(file)
  }

  /** Closes a file where too many are open. */
  makeRoom(): void {
    const { most, owners, awake, warn } = this.options
    if (this.files.size < most) return
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
    let first: LogFile | undefined
    for (const file of this.files) {
      if (!file.isOpen || !file.isRotated) return file
      first ??= file
    }
    return first
  }
}
