import type { Stats } from 'node:fs'
import type { LogSource } from './line-reader.ts'
import type { LineBuffer, LogFile } from './log-file.ts'

/** A file that is no longer at its path is left when nothing was added for so long; likewise a line without an end. */
const quietMs = 5000
/** The rest of a line is waited for so long at most once its writer went on to the next file. */
const partMs = 5000
/** So long nothing was added to a file that is closed until something is. */
const idleMs = 30_000
/** Files that are read to their end and may still grow. */
const maxTrailing = 32

/** What a step brought: more may follow at once; there is nothing; the file has to be found, or is another one now. */
export type Step = 'more' | 'idle' | 'missing' | 'changed'

/** One log: the files that a path led to one after the other, read in this order. */
export class FollowedLog {
  readonly path: string
  readonly source: LogSource
  /** By which it was found. */
  pattern: string
  /** Whom its turns and its place count to. */
  readonly owner: string
  /** The first one is being read, the last one is at the path. */
  readonly files: LogFile[] = []
  /** Read to the end and rotated away; who writes them may not know yet. */
  readonly trailing: LogFile[] = []
  /** Its files are being looked for. */
  isArranging = false
  /** Nothing is read until what comes first was found. */
  isHeld = false
  /** Something was read since its path was last looked at. */
  hasGrown = false
  /** Looks in a row in which no pattern meant it. */
  unasked = 0
  /** Read to its end when a file after it was seen to have content, and since when. */
  private left: { readonly file: LogFile; readonly sinceMs: number } | undefined

  constructor({ path, source, pattern, owner }: Pick<FollowedLog, 'path' | 'source' | 'pattern' | 'owner'>) {
    this.path = path
    this.source = source
    this.pattern = pattern
    this.owner = owner
  }

  get current(): LogFile | undefined {
    return this.files.at(-1)
  }

  /** Nothing is to be read of its only file, and was not for a while. */
  isIdle(file: LogFile): boolean {
    const isBusy = this.files.length > 1 || this.trailing.length > 0 || file.readTo < file.size
    if (!file.isOpen || isBusy || performance.now() - file.grownMs < idleMs) return false
    return (file.reader?.heldFrom ?? -1) < 0
  }

  /** A file of its own that was rotated is at its path again. */
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

  /** Reads a chunk at most. `open` opens a file and gives it its reader. `finished`: the file is closed for good. */
  step(buffer: LineBuffer, open: (file: LogFile) => boolean, finished: (file: LogFile) => void): Step {
    const file = this.files[0]
    if (file === undefined || this.isHeld) return this.stepTrailing(buffer, finished)
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
    const moved = this.moveOn(file, buffer, finished)
    const late = this.stepTrailing(buffer, finished)
    return moved ? 'more' : late
  }

  /** Hands on what waits in readers. */
  flush(all: boolean): void {
    for (const { reader } of this.trailing) if (reader && (all || reader.heldFrom >= 0)) reader.flush(all)
    for (const { reader } of this.files) if (reader && (all || reader.heldFrom >= 0)) reader.flush(all)
  }

  /** The file was read to its end: goes on to the next one, where its writer did. */
  private moveOn(file: LogFile, buffer: LineBuffer, finished: (file: LogFile) => void): boolean {
    const now = performance.now()
    const isQuiet = now - file.grownMs >= quietMs
    if (this.files.length === 1) {
      if (!file.isRotated || !isQuiet) return false
      this.files.shift()
      end(file, buffer, finished)
      return false
    }
    if (this.left?.file !== file) {
      // What its writer wrote before is there by now, so it is read to its end once more.
      const hasMovedOn = this.files.some((next, i) => i > 0 && hasContent(next))
      this.left = hasMovedOn ? { file, sinceMs: now } : undefined
      return hasMovedOn
    }
    // Who adds a byte now and then does not hold up what comes after.
    if (file.hasPart && !isQuiet && now - this.left.sinceMs < partMs) return false
    file.readPart(buffer)
    file.reader?.flush(true)
    this.files.shift()
    this.trailing.push(file)
    this.left = undefined
    return true
  }

  private stepTrailing(buffer: LineBuffer, finished: (file: LogFile) => void): Step {
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
  // By this it is known when its number is given to another file.
  file.look()
  file.close()
  finished(file)
}

function hasContent(file: LogFile): boolean {
  if (file.size === 0) file.look()
  return file.size > 0
}
