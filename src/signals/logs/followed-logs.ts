import type { Stats } from 'node:fs'
import { RunningTasks } from '../../foundation/lib/running-tasks.ts'
import { Turn } from '../../foundation/lib/turn.ts'
import { type FoundFile, fileKey, type IsHeldPath, statsOf } from './file-finder.ts'
import { FileOwners } from './file-owners.ts'
import { FollowedLog, idleMs, restMs } from './followed-log.ts'
import type { LogSource } from './line-reader.ts'
import { type LineBuffer, LogFile } from './log-file.ts'
import { LogPlaces } from './log-places.ts'
import type { LogPositions } from './log-positions.ts'
import { LogWarnings } from './log-warnings.ts'
import { OpenFiles } from './open-files.ts'
import type { RemoteLogs } from './remote-logs.ts'
import { rotatedLeftovers } from './rotated-leftovers.ts'
import { isCompressed } from './rotation.ts'
import {
  copyBefore,
  currentPath,
  type RotationChain,
  type RotationQuery,
  remembered,
  rotationChain,
} from './rotation-chain.ts'
import { type OmittedFiles, SourceFiles } from './source-files.ts'
import { giveUpWaiting } from './waiting-files.ts'

export interface FollowedLogsOptions {
  readonly sources: readonly LogSource[]
  readonly positions: LogPositions
  readonly buffer: LineBuffer
  readonly remoteLogs: RemoteLogs
  /** Start position in files that existed before the first scan. */
  readonly startAt: 'end' | 'beginning'
  readonly warn: (message: string, hint: string) => void
  readonly maxOpen: number
  /** Maximum number of followed logs. */
  readonly maxFiles: number
  /** Maximum directory entries that are read and cached, per source. */
  readonly maxNames: number
}

/** Maximum lag of the clock of file times, in milliseconds. */
const clockMs = 100
/** Maximum waiting files of one log that are kept open. */
const maxKeptOpen = 32
/** Maximum rotations in a row that one scan follows. */
const maxRounds = 8

/** Logs found by scans, and their files. Nothing here throws or rejects. */
export class FollowedLogs {
  readonly logs = new Map<string, FollowedLog>()
  /** Logs that may have data to read. */
  readonly active = new Set<FollowedLog>()
  readonly owners = new FileOwners()
  readonly sourceFiles: SourceFiles
  readonly places: LogPlaces
  /** Files truncated or replaced in place; rotated files compressed or removed before they were read. */
  readonly counts = { truncations: 0, lostRotations: 0 }
  /** Files and directories that the last scan left out for lack of room. */
  leftOut: OmittedFiles = { files: 0, directories: 0 }
  readonly #options: FollowedLogsOptions
  readonly #positions: LogPositions
  readonly #buffer: LineBuffer
  readonly #isHeld: IsHeldPath = (path, isBeside) => this.#options.remoteLogs.isHeld(path, isBeside)
  readonly #opened: OpenFiles
  /** Files that no source accepts at a path, and whether they appeared while others were followed. */
  #refused = new Map<string, boolean>()
  /** Files created later, and unknown, were created while svc was not running. Milliseconds since the Unix epoch. */
  readonly #sinceMs: number
  /** Start of the current or last scan. */
  #lookingMs = 0
  /** Files that got no place in it. */
  #unplaced = 0
  #hasTakenUp = false
  readonly #searches = new RunningTasks()
  /** Turn of all searches for the files of logs. */
  readonly #turn = new Turn(1)
  readonly #warnings: LogWarnings

  constructor(options: FollowedLogsOptions) {
    this.#options = options
    this.#positions = options.positions
    this.#buffer = options.buffer
    this.#warnings = new LogWarnings(options.warn)
    this.#sinceMs = this.#positions.lookedMs || Date.now()
    const { maxOpen: most, maxFiles, maxNames, sources } = options
    this.places = new LogPlaces(maxFiles)
    const isHeld = this.#isHeld
    const warnings = this.#warnings
    this.sourceFiles = new SourceFiles({ sources, maxFiles, maxNames, isHeld, warnings })
    this.#opened = new OpenFiles({
      most,
      owners: this.owners,
      active: this.active,
      isHeld: ({ name }) => this.#options.remoteLogs.mayHang && this.#isHeld(name),
      warn: () => this.#warnings.manyOpen(most),
    })
  }

  /** Approximate time since the start spent on searches for rotated files, in milliseconds. */
  get searchedMs(): number {
    return this.#turn.workedMs
  }

  get openFiles(): number {
    return this.#opened.size
  }

  /** Scans for matches of the patterns. `full`: in every directory, changed or not. */
  async look(full: boolean): Promise<void> {
    try {
      const startedMs = Date.now() - clockMs
      this.#lookingMs = startedMs
      const { remoteLogs } = this.#options
      remoteLogs.begin()
      await remoteLogs.ask()
      this.#opened.closeLate()
      const found = await this.sourceFiles.find(full)
      this.#unplaced = 0
      await this.#compareAll(found)
      await this.#attachAll(found, full)
      await this.#takeUp()
      for (const point of remoteLogs.held) this.#warnings.held(point)
      const { files, directories } = this.sourceFiles.leftOut
      this.leftOut = { files: files + this.#unplaced, directories }
      const leftOut = files + this.#unplaced + directories
      this.places.leftOut(leftOut)
      // Files left out now are read from their start once they are found, also after a restart.
      if (leftOut === 0 || this.#positions.lookedMs === 0) this.#positions.lookedMs = startedMs
    } catch (error) {
      this.#warnings.failed('logs', error)
    }
  }

  /** Reads a chunk of a log. True if data was read. */
  step(log: FollowedLog): boolean {
    const file = log.files[0]
    // An open file can only hang with its file system.
    const mayBeHeld = !file?.isOpen || this.#options.remoteLogs.mayHang
    if (mayBeHeld && this.#isHeld(log.path)) return false
    const step = log.step(
      this.#buffer,
      wanted => this.#open(log, wanted),
      done => this.#finish(done),
    )
    if (step === 'more') return true
    if (file?.isOpen === false) this.#opened.close(file)
    if (step === 'changed') this.#emptied(log, file!)
    else if (step === 'missing') void this.#guard(log, () => this.#search(log, file!))
    else if (log.hasGrown) {
      log.hasGrown = false
      const now = Date.now()
      this.#compare(log, statsOf(log.path), now)
    }
    if (log.files.length === 0 && log.trailing.length === 0 && !log.isArranging) this.#drop(log)
    return false
  }

  /** All files and the paths under which they are followed, recently finished files included. */
  *files(): IterableIterator<[LogFile, string]> {
    for (const log of this.logs.values()) for (const file of log.all()) yield [file, log.path]
    for (const file of this.owners.finished) yield [file, this.owners.logOf(file)?.path ?? file.name]
  }

  /** Resolves when no search for files is in progress. */
  idle(): Promise<void> {
    return this.#searches.idle()
  }

  close(): void {
    for (const log of this.logs.values()) for (const file of log.all()) this.#opened.close(file)
  }

  /** Followed logs come before new ones: a new file at their path belongs to them, whatever other path leads to it. */
  async #compareAll(found: ReadonlyMap<string, [FoundFile, LogSource]>): Promise<void> {
    const turn = new Turn(1)
    const meant = new Set<string>()
    for (const [{ stats }] of found.values()) meant.add(fileKey(stats.dev, stats.ino))
    for (const log of this.logs.values()) {
      await turn.rest()
      if (!found.has(log.path) && this.#isHeld(log.path)) continue
      const now = Date.now()
      const entry = found.get(log.path)
      const stats = entry?.[0].stats ?? statsOf(log.path)
      if (entry !== undefined) log.pattern = entry[0].pattern
      // Another path may lead to the same file, and a new file may have appeared since. A file left out by a scan still
      // matches.
      const isMeant =
        entry !== undefined ||
        stats === undefined ||
        this.sourceFiles.patterns.has(log.pattern) ||
        meant.has(fileKey(stats.dev, stats.ino))
      log.unmatchedScans = isMeant ? 0 : log.unmatchedScans + 1
      if ((log.unmatchedScans > 1 && !this.sourceFiles.stillMeans(log)) || log.source.excluded(log.path))
        this.#drop(log)
      else this.#compare(log, stats, entry === undefined ? now : this.#lookingMs)
    }
  }

  async #attachAll(found: ReadonlyMap<string, [FoundFile, LogSource]>, full: boolean): Promise<void> {
    const turn = new Turn(1)
    const before = this.sourceFiles.patternsBefore
    const refused = full ? new Map<string, boolean>() : this.#refused
    for (const [path, [file, source]] of found) {
      await turn.rest()
      const { dev, ino, birthtimeMs } = file.stats
      // Another path to it may be accepted.
      const key = `${fileKey(dev, ino)} ${path}`
      if (this.logs.has(path) || isCompressed(path) || this.owners.find(file.stats) || source.excluded(path))
        continue
      if (!full && refused.has(key)) continue
      if (!this.places.hasPlace(file.owner)) {
        this.#noPlace()
        continue
      }
      // Some file systems have no creation times.
      const isNew = before.has(file.pattern) && !this.#options.remoteLogs.cameBack(path)
      const appeared = this.#refused.get(key) ?? (isNew || birthtimeMs > this.#sinceMs)
      if (!(await this.#attach(file, source, appeared)) && refused.size < this.#options.maxFiles)
        refused.set(key, appeared)
    }
    this.#refused = refused
  }

  /** At the first scan: files left from logs that were rotated away before. */
  async #takeUp(): Promise<void> {
    if (this.#hasTakenUp) return
    this.#hasTakenUp = true
    const { sourceFiles } = this
    const positions = this.#positions
    const isHeld = this.#isHeld
    for (const { file, source, name } of await rotatedLeftovers({ positions, sourceFiles, isHeld }))
      if (!this.logs.has(file.path) && this.owners.find(file.stats) === undefined)
        await this.#attach(file, source, false, name)
  }

  #noPlace(): void {
    this.#unplaced++
    this.#warnings.manyFiles(this.#options.maxFiles)
  }

  /** Starts to follow a file, which has another name if it was rotated. False if its source rejects it. */
  async #attach(
    { path, pattern, owner, stats }: FoundFile,
    source: LogSource,
    isNew: boolean,
    name = path,
  ): Promise<boolean> {
    const current = new LogFile(name, stats)
    current.isRotated = name !== path
    current.currentMs = current.isRotated ? Math.floor(stats.mtimeMs) : this.#lookingMs
    if (!current.open(this.#buffer)) {
      if (current.refusal !== undefined) {
        this.#warnings.refused(current.refusal)
        return false
      }
      // Otherwise it was rotated since, and the next scan finds the new one.
      const now = statsOf(name)
      if (now !== undefined && current.isAt(now)) this.#warnings.unreadable(name)
      return true
    }
    current.reader = source.reader({ path, device: stats.dev, inode: stats.ino, owner })
    if (current.reader === undefined) {
      current.close()
      return false
    }
    const log = new FollowedLog({ path, source, pattern, owner })
    // Only now: files that are not followed must not take a place.
    if (!this.places.take(log, giver => this.#drop(giver))) {
      current.close()
      this.#noPlace()
      return true
    }
    this.logs.set(path, log)
    this.active.add(log)
    const known = this.#positions.ofPath(path)
    const here = remembered(this.#positions, current, known)
    if (here !== undefined) current.goTo(here.offset)
    else if (known.length === 0 && this.#options.startAt === 'end' && !isNew) current.goTo(current.size)
    else if (known.some(({ inode }) => inode === current.inode)) this.counts.truncations++
    if (known.some(position => position !== here))
      await this.#guard(log, async () => this.#succeed(log, current, here !== undefined))
    else this.#append(log, current)
    return true
  }

  /** Finds all files of a log since the last check of its path. */
  async #arrange(log: FollowedLog): Promise<void> {
    for (let round = 0; round < maxRounds && !this.#isHeld(log.path); round++) {
      const now = Date.now()
      const stats = statsOf(log.path)
      const last = log.current
      if (last !== undefined && stats !== undefined && last.isAt(stats)) return
      if (last !== undefined) last.isRotated = true
      this.active.add(log) // it may have grown before, and is finished once it is read
      if (!stats?.isFile()) return
      const owner = this.owners.find(stats)
      // The path leads to a file that is followed under another path, or to one of its own that is back.
      if (owner !== undefined) return owner === log ? log.takeBack(stats) : undefined
      const current = new LogFile(log.path, stats)
      current.currentMs = now
      if (!current.open(this.#buffer)) {
        if (current.refusal === undefined) continue // rotated again in between
        return this.#warnings.refused(current.refusal)
      }
      last?.look()
      const here = remembered(this.#positions, current, this.#positions.ofPath(log.path))
      if (here !== undefined) current.goTo(here.offset)
      await this.#succeed(log, current, here !== undefined)
    }
  }

  /** Adds a new current file after all files that must be read before it. */
  async #succeed(log: FollowedLog, current: LogFile, isKnown: boolean): Promise<void> {
    let result: RotationChain
    try {
      result = await rotationChain(this.#question(log, current, log.current, isKnown))
    } catch (error) {
      current.close()
      throw error
    }
    // It is no longer followed.
    if (this.logs.get(log.path) !== log) {
      for (const file of [...result.before, current]) file.close()
      return
    }
    for (const file of result.before) {
      if (this.owners.findFile(file) !== undefined) file.close()
      else this.#append(log, file)
    }
    for (const { device, inode } of result.gone) this.#positions.forget(device, inode)
    this.#append(log, current)
    if (result.lost > 0) this.#lost(log, result.lost, result.compressed)
  }

  #append(log: FollowedLog, file: LogFile): void {
    log.files.push(file)
    this.#register(log, file, file.offset)
    this.active.add(log)
    // While reading is paused, rotated files wait; a user who removes them wants the space back.
    if (log.files.length > maxKeptOpen) this.#opened.close(log.files.at(-2)!)
    if (this.owners.reading <= 2 * this.#options.maxFiles) return
    for (const [of, given] of giveUpWaiting(this.logs.values())) {
      this.#finish(given)
      this.#lost(of, 1, '')
    }
  }

  /** Assigns the file to this log. `offset`: all data before it is secured. */
  #register(log: FollowedLog, file: LogFile, offset: number): void {
    this.owners.add(log, file)
    if (file.isOpen) this.#opened.add(file, log.owner)
    this.#positions.forget(file.device, file.inode)
    this.#positions.set(file.positionAt(log.path, offset), log.owner)
  }

  #question(log: FollowedLog, current: LogFile, last: LogFile | undefined, isKnown: boolean): RotationQuery {
    return {
      path: log.path,
      current,
      last,
      known: this.#positions.ofPath(log.path).filter(one => !isKnown || one.inode !== current.inode),
      isKnown,
      positions: this.#positions,
      buffer: this.#buffer,
      turn: this.#turn,
      isFollowed: stats => this.owners.find(stats) !== undefined,
      isLog: path => path !== log.path && this.logs.has(path),
      isHeld: this.#isHeld,
      // A scan waits only for a log that it starts to follow.
      mayLookAgain: () => log.files.length > 0 || this.places.mayPause(log.owner),
    }
  }

  /** False if the file has moved, or is no longer followed. */
  #open(log: FollowedLog, file: LogFile): boolean {
    if (!file.isOpen) {
      if (!file.open(this.#buffer)) return false
      this.#opened.add(file, log.owner)
    }
    const { path, owner, source } = log
    file.reader ??= source.reader({ path, device: file.device, inode: file.inode, owner })
    if (file.reader !== undefined) return true
    this.#drop(log)
    return false
  }

  /** Finishes a file. */
  #finish(file: LogFile): void {
    this.#opened.close(file)
    this.owners.finish(file)
  }

  /** Stops following a log. The positions in its files are kept. */
  #drop(log: FollowedLog): void {
    log.flush(true)
    for (const file of log.all()) this.#finish(file)
    log.files.length = 0
    log.trailing.length = 0
    this.active.delete(log)
    this.places.free(log)
    if (this.logs.get(log.path) === log) this.logs.delete(log.path)
  }

  /** Compares the file at the path of a log with the known one. */
  #compare(log: FollowedLog, seen: Stats | undefined, seenMs: number): void {
    const { current } = log
    const now = Date.now()
    if (current === undefined || log.isArranging) return
    const isOld = seen === undefined || !current.isAt(seen) || seen.size < current.readTo
    // The state may be old, and the file was read since.
    const stats = isOld ? statsOf(log.path) : seen
    if (!stats?.isFile()) {
      current.isRotated = true
      this.active.add(log)
    } else if (!current.isAt(stats)) void this.#guard(log, () => this.#arrange(log))
    else {
      current.isRotated = false
      current.name = log.path
      current.currentMs = isOld ? now : seenMs
      const isEmptied = stats.size < current.readTo
      current.isSuspect ||= stats.mtimeMs !== current.modifiedMs
      if (isEmptied || stats.size > current.readTo || current.isSuspect) this.active.add(log)
      if (isEmptied) this.#emptied(log, current)
      current.seen(stats)
      this.#rest(log, current)
    }
  }

  #rest(log: FollowedLog, file: LogFile): void {
    const idleForMs = log.idleForMs(file)
    if (idleForMs >= restMs) this.active.delete(log)
    if (idleForMs < idleMs) return
    this.#opened.close(file)
    file.reader = undefined
  }

  /** Runs searches for files of a log, one at a time. */
  #guard(log: FollowedLog, work: () => Promise<void>): Promise<void> {
    if (log.isArranging) return Promise.resolve()
    log.isArranging = true
    this.#turn.begin()
    return this.#searches
      .run(work)
      .catch(error => this.#warnings.failed(log.path, error))
      .finally(() => {
        log.isArranging = false
        log.isHeld = false
      })
  }

  /** The file is empty, or replaced in place: continues at its start, after data that a copy of it may have. */
  #emptied(log: FollowedLog, file: LogFile): void {
    this.counts.truncations++
    file.reader?.flush(true)
    const { fingerprint, offset, modifiedMs } = file
    file.restart()
    if (log.isArranging) return
    log.isHeld = true
    void this.#guard(log, async () => {
      const position = this.#positions.at(file.device, file.inode)
      const question = this.#question(log, file, undefined, true)
      const copy = await copyBefore(question, fingerprint, offset, modifiedMs)
      const at = log.files.indexOf(file)
      if (copy === undefined || at < 0 || this.owners.findFile(copy) !== undefined) {
        copy?.close()
        return
      }
      log.files.splice(at, 0, copy)
      this.#register(log, copy, position?.offset ?? 0)
      this.#positions.forget(file.device, file.inode)
      this.#register(log, file, 0)
    })
  }

  /** Searches for a closed file that has moved. */
  async #search(log: FollowedLog, file: LogFile): Promise<void> {
    if (this.logs.get(log.path) !== log) return
    const name = await currentPath(log.path, file, { turn: this.#turn, isHeld: this.#isHeld })
    if (name !== undefined) {
      // It exists but cannot be opened: the next scan tries again.
      if (name === file.name) this.active.delete(log)
      file.name = name
      file.isRotated = name !== log.path
      return
    }
    if (file.behindBytes > 0) this.#lost(log, 1, '')
    const at = log.files.indexOf(file)
    if (at < 0) return
    file.reader?.flush(true)
    log.files.splice(at, 1)
    this.#finish(file)
    if (log.files.length === 0) await this.#arrange(log)
  }

  #lost(log: FollowedLog, files: number, packed: string): void {
    this.counts.lostRotations += files
    this.#warnings.lost(log.path, packed)
  }
}
