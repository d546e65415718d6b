import type { Stats } from 'node:fs'
import type { LogSource } from './line-reader.ts'
import type { LineBuffer, LogFile } from './log-file.ts'

/** Time without new data, in milliseconds, before a rotated file is finished; likewise for a line without an end. */
const quietMs = 5000
/** Maximum wait for the rest of a line once its writer uses the next file, in milliseconds. */
const partMs = 5000
/** Time without new data, in milliseconds, before a file is read only after a scan finds that it grew; */
export const restMs = 2000
/** and before it is closed as well. */
export const idleMs = 30_000
/** Maximum files that are read to their end and may still grow. */
const maxTrailing = 32

/** Result of a step: more data may follow; no data; the file must be found; or it is a different file now. */
export type Step = 'more' | 'idle' | 'missing' | 'changed'

/** One log: the files that a path has led to, read in this order. */
export class FollowedLog {
  readonly path: string
  readonly source: LogSource
  /** Pattern that matched it. */
  pattern: string
  /** Owner, for turns and places. */
  readonly owner: string
  /** The first file is being read, the last one is at the path. */
  readonly files: LogFile[] = []
  /** Rotated files read to their end; their writer may still use them. */
  readonly trailing: LogFile[] = []
  /** Whether its files are being searched. */
  isArranging = false
  /** Whether reading waits until earlier files are found. */
  isHeld = false
  /** Whether data was read since the last check of its path. */
  hasGrown = false
  /** Scans in a row in which no pattern matched it. */
  unmatchedScans = 0
  /** File read to its end while a later file had content, and since when. */
  #left: { readonly file: LogFile; readonly sinceMs: number } | undefined

  constructor({ path, source, pattern, owner }: Pick<FollowedLog, 'path' | 'source' | 'pattern' | 'owner'>) {
    this.path = path
    this.source = source
    this.pattern = pattern
    this.owner = owner
  }

  get current(): LogFile | undefined {
    return this.files.at(-1)
  }

  /** Time since its only, open file had new data, in milliseconds; 0 if there is more to do. */
  idleForMs(file: LogFile): number {
    const isBusy = this.files.length > 1 || this.trailing.length > 0 || file.readTo < file.size
    if (!file.isOpen || isBusy || file.isSuspect || (file.reader?.heldFrom ?? -1) >= 0) return 0
    return performance.now() - file.grownMs
  }

  /** Moves a rotated file back, as it is at its path again. */
  takeBack(stats: Stats): void {
    const at = this.files.findIndex(file => file.isAt(stats))
    const [file] = at < 0 ? [] : this.files.splice(at, 1)
    if (file === undefined) return
    file.isRotated = false
    file.name = this.path
    this.files.push(file)
  }

  *all(): IterableIterator<LogFile> {
    yield* this.files
    yield* this.trailing
  }

  /**
   * Reads at most a chunk. `open` opens a file and sets its reader. `finished` is called when a file is closed for
   * good.
   */
  step(buffer: LineBuffer, open: (file: LogFile) => boolean, finished: (file: LogFile) => void): Step {
    const file = this.files[0]
    if (file === undefined || this.isHeld) return this.#stepTrailing(buffer, finished)
    if (!open(file)) return 'missing'
    const outcome = file.read(buffer)
    if (outcome === 'read') {
      this.hasGrown = true
      return 'more'
    }
    if (outcome === 'changed') return 'changed'
    if (outcome === 'failed') {
      file.close()
      return 'idle'
    }
    const moved = this.#moveOn(file, buffer, finished)
    const late = this.#stepTrailing(buffer, finished)
    return moved ? 'more' : late
  }

  /** Passes on text that waits in readers. */
  flush(all: boolean): void {
    for (const { reader } of this.trailing) if (reader && (all || reader.heldFrom >= 0)) reader.flush(all)
    for (const { reader } of this.files) if (reader && (all || reader.heldFrom >= 0)) reader.flush(all)
  }

  /** At the end of a file: continues with the next one if its writer has. */
  #moveOn(file: LogFile, buffer: LineBuffer, finished: (file: LogFile) => void): boolean {
    const now = performance.now()
    const isQuiet = now - file.grownMs >= quietMs
    if (this.files.length === 1) {
      if (!file.isRotated || !isQuiet) return false
      this.files.shift()
      end(file, buffer, finished)
      return false
    }
    if (this.#left?.file !== file) {
      // Data written before the switch is in the file by now, so it is read to its end once more.
      const hasMovedOn = this.files.some((next, i) => i > 0 && hasContent(next))
      this.#left = hasMovedOn ? { file, sinceMs: now } : undefined
      return hasMovedOn
    }
    // A writer that adds a byte now and then must not delay later files.
    if (file.hasPart && !isQuiet && now - this.#left.sinceMs < partMs) return false
    file.readPart(buffer)
    file.reader?.flush(true)
    this.files.shift()
    this.trailing.push(file)
    this.#left = undefined
    return true
  }

  #stepTrailing(buffer: LineBuffer, finished: (file: LogFile) => void): Step {
    let step: Step = 'idle'
    for (let i = 0; i < this.trailing.length; i++) {
      const file = this.trailing[i]!
      const outcome = file.isOpen ? file.read(buffer) : 'failed'
      if (outcome === 'read') {
        step = 'more'
        continue
      }
      const isQuiet = performance.now() - file.grownMs >= quietMs
      if (outcome === 'end' && !isQuiet && this.trailing.length <= maxTrailing) continue
      this.trailing.splice(i--, 1)
      end(file, buffer, finished)
    }
    return step
  }
}

function end(file: LogFile, buffer: LineBuffer, finished: (file: LogFile) => void): void {
  if (file.isOpen) file.readPart(buffer)
  file.reader?.flush(true)
  // Needed to recognise a reuse of its inode number.
  file.look()
  file.close()
  finished(file)
}

function hasContent(file: LogFile): boolean {
  if (file.size === 0) file.look()
  return file.size > 0
}
