import type { Stats } from 'node:fs'
import { fileKey } from './file-finder.ts'
import type { FollowedLog } from './followed-log.ts'
import type { LogFile } from './log-file.ts'

/** Maximum finished files that are not yet saved to disk. */
const maxFinished = 10_000

interface Owner {
  readonly log: FollowedLog
  readonly file: LogFile
}

/** Properties that show whether a file with a known inode number is the same file. */
type Identity = Pick<Stats, 'dev' | 'ino' | 'size' | 'mtimeMs'>

/** Log of each file, also for a while after it is finished. */
export class FileOwners {
  /** Finished files that are not yet saved to disk. */
  readonly finished = new Set<LogFile>()
  readonly #owners = new Map<string, Owner>()

  /** Number of files being read or waiting. */
  get reading(): number {
    return this.#owners.size - this.finished.size
  }

  add(log: FollowedLog, file: LogFile): void {
    this.#owners.set(keyOf(file), { log, file })
  }

  logOf(file: LogFile): FollowedLog | undefined {
    return this.#owners.get(keyOf(file))?.log
  }

  /** Whether the entry of this inode number is for this file. */
  has(file: LogFile): boolean {
    return this.#owners.get(keyOf(file))?.file === file
  }

  /** Whether a file with this number is read now or was recently. */
  isKnown(device: number, inode: number): boolean {
    return this.#owners.has(fileKey(device, inode))
  }

  /** Log that reads this file. The number of a finished file may be reused. */
  find({ dev, ino, size, mtimeMs }: Identity): FollowedLog | undefined {
    const key = fileKey(dev, ino)
    const owner = this.#owners.get(key)
    if (owner === undefined || !this.finished.has(owner.file)) return owner?.log
    if (owner.file.size === size && owner.file.modifiedMs === mtimeMs) return owner.log
    this.finished.delete(owner.file)
    this.#owners.delete(key)
    return undefined
  }

  /** As `find`, for an open file. */
  findFile({ device, inode, size, modifiedMs }: LogFile): FollowedLog | undefined {
    return this.find({ dev: device, ino: inode, size, mtimeMs: modifiedMs })
  }

  /** Marks a file as finished. */
  finish(file: LogFile): void {
    this.finished.add(file)
    if (this.finished.size > maxFinished) this.forget([this.finished.values().next().value!])
  }

  /** Forgets finished files that are saved to disk. */
  forget(files: readonly LogFile[]): void {
    for (const file of files)
      if (this.finished.delete(file) && this.has(file)) this.#owners.delete(keyOf(file))
  }
}

function keyOf({ device, inode }: LogFile): string {
  return fileKey(device, inode)
}
