import type { FileOwners } from './file-owners.ts'
import type { FollowedLog } from './followed-log.ts'
import type { LogFile } from './log-file.ts'

export interface OpenFilesOptions {
  readonly most: number
  readonly owners: FileOwners
  /** Logs being read; one whose only file is closed is removed until it grows. */
  readonly active: Set<FollowedLog>
  /** Whether closing a file may block for ever, as its file system does not respond. */
  readonly isHeld: (file: LogFile) => boolean
  /** Called the first time that there are too many. */
  readonly warn: () => void
}

/** Open files, of a limited number. Over the limit, files of the owner with the most are closed first. */
export class OpenFiles {
  readonly #options: OpenFilesOptions
  readonly #ownerOf = new Map<LogFile, string>()
  /** Files by owner, in the order of opening. */
  readonly #filesOf = new Map<string, Set<LogFile>>()
  /** Files to close once their file systems respond. */
  readonly #late = new Set<LogFile>()

  constructor(options: OpenFilesOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#ownerOf.size
  }

  /** Adds an opened file, and closes another one over the limit. */
  add(file: LogFile, owner: string): void {
    this.#late.delete(file)
    if (this.#ownerOf.has(file)) return
    if (this.size >= this.#options.most) this.#makeRoom()
    this.#ownerOf.set(file, owner)
    const files = this.#filesOf.get(owner) ?? new Set()
    this.#filesOf.set(owner, files.add(file))
  }

  close(file: LogFile): void {
    if (file.isOpen && this.#options.isHeld(file)) this.#late.add(file)
    else file.close()
    const owner = this.#ownerOf.get(file)
    if (owner === undefined) return
    this.#ownerOf.delete(file)
    const files = this.#filesOf.get(owner)!
    files.delete(file)
    if (files.size === 0) this.#filesOf.delete(owner)
  }

  /** Closes files whose file systems respond again. */
  closeLate(): void {
    for (const file of this.#late) {
      if (this.#options.isHeld(file)) continue
      this.#late.delete(file)
      file.close()
    }
  }

  #makeRoom(): void {
    const { owners, active: awake, warn } = this.#options
    const chosen = this.#leastNeeded()
    if (chosen === undefined) return
    this.close(chosen)
    const log = owners.logOf(chosen)
    // A scan finds out when it grows.
    if (log?.files.length === 1 && log.trailing.length === 0 && chosen.readTo >= chosen.size)
      awake.delete(log)
    warn()
  }

  /** Least needed file; renamed files may be removed before they are opened again. */
  #leastNeeded(): LogFile | undefined {
    let most: ReadonlySet<LogFile> | undefined
    for (const files of this.#filesOf.values()) if (most === undefined || files.size > most.size) most = files
    let first: LogFile | undefined
    for (const file of most ?? []) {
      if (!file.isOpen || !file.isRotated) return file
      first ??= file
    }
    return first
  }
}
