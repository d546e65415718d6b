import type { Stats } from 'node:fs'
import { fileKey } from './file-finder.ts'
import type { FollowedLog } from './followed-log.ts'
import type { LogFile } from './log-file.ts'

/** Files that were read for good and wait to be said so on disk. */
const maxFinished = 10_000

interface Owner {
  readonly log: FollowedLog
  readonly file: LogFile
}

/** What tells whether a file that has the number of another one is that one. */
type Identity = Pick<Stats, 'dev' | 'ino' | 'size' | 'mtimeMs'>

/** Which file belongs to which log, also for a while after it was read for good. */
export class FileOwners {
  /** Read for good, and not yet said so on disk. */
  readonly finished = new Set<LogFile>()
  private readonly owners = new Map<string, Owner>()

  /** Files that are read, or wait for it. */
  get reading(): number {
    return this.owners.size - this.finished.size
  }

  add(log: FollowedLog, file: LogFile): void {
    this.owners.set(keyOf(file), { log, file })
  }

  logOf(file: LogFile): FollowedLog | undefined {
    return this.owners.get(keyOf(file))?.log
  }

  /** Whether what is remembered of this number is remembered of this file. */
  has(file: LogFile): boolean {
    return this.owners.get(keyOf(file))?.file === file
  }

  /** Whether a file of this number is read, or was of late. */
  holds(device: number, inode: number): boolean {
    return this.owners.has(fileKey(device, inode))
  }

  /** The log that follows what is there. A file that was read for good gives its number to the next one. */
  find({ dev, ino, size, mtimeMs }: Identity): FollowedLog | undefined {
    const key = fileKey(dev, ino)
    const owner = this.owners.get(key)
    if (owner === undefined || !this.finished.has(owner.file)) return owner?.log
    if (owner.file.size === size && owner.file.modifiedMs === mtimeMs) return owner.log
    this.finished.delete(owner.file)
    this.owners.delete(key)
    return undefined
  }

  /** As `find`, for a file that was opened. */
  findFile({ device, inode, size, modifiedMs }: LogFile): FollowedLog | undefined {
    return this.find({ dev: device, ino: inode, size, mtimeMs: modifiedMs })
  }

  /** A file was read for good. */
  finish(file: LogFile): void {
    this.finished.add(file)
    if (this.finished.size > maxFinished) this.forget([this.finished.values().next().value!])
  }

  /** These were, and it is said so on disk. */
  forget(files: readonly LogFile[]): void {
    for (const file of files)
      if (this.finished.delete(file) && this.has(file)) this.owners.delete(keyOf(file))
  }
}

function keyOf({ device, inode }: LogFile): string {
  return fileKey(device, inode)
}
