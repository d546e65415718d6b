import type { ShareLosses } from '../lib/fair-share.ts'
import { TokenBucket } from '../lib/token-bucket.ts'
import { Turn } from '../lib/turn.ts'
import { within } from '../lib/within.ts'
import type { FarLogs } from './far-logs.ts'
import { FollowedLogs } from './followed-logs.ts'
import type { LogSource } from './line-reader.ts'
import { type LineBuffer, type LogFile, lineBuffer, type NextData } from './log-file.ts'
import type { LogPositions, Position } from './log-positions.ts'
import { LogTurns } from './log-turns.ts'
import type { LeftOut } from './source-files.ts'

export interface LogFollowerOptions {
  readonly sources: readonly LogSource[]
  readonly positions: LogPositions
  readonly far: FarLogs
  /** Where to begin in files that were there before anybody looked. */
  readonly startAt: 'end' | 'beginning'
  /** Longest line in bytes; a longer one is handed on in pieces. */
  readonly maxLineBytes: number
  /** How full is what takes the records, from 0 to 1. Above 0.8 nothing is read until it is below 0.6. */
  readonly pressure: () => number
  /** Resolves when no record that was handed on so far can be lost any more. Rejects: some may be. */
  readonly secured: () => Promise<void>
  readonly warn: (message: string, hint: string) => void
  /** Skips holes of files; without it they are read as zeros. */
  readonly nextData?: NextData | undefined
  /** Files that are open at once (1,000), logs that are followed (10,000), and names that a look goes through (100,000). */
  readonly maxOpen?: number
  readonly maxFiles?: number
  readonly maxNames?: number
}

/** How much is done. */
export interface ReadingPace {
  /** Infinity: as much as comes. */
  readonly bytesPerSecond: number
  /** Files are looked for so many times as rarely. */
  readonly rarer: number
}

/** How one log stands. */
export interface FollowedLogState {
  readonly path: string
  readonly source: string
  readonly offset: number
  readonly sizeBytes: number
  /** Not read yet, of all its files. */
  readonly behindBytes: number
}

export interface LogFollowerState {
  /** Logs that are followed. */
  readonly files: number
  readonly openFiles: number
  readonly behindBytes: number
  readonly readBytes: number
  readonly lines: number
  /** Files that were emptied, or replaced in place. */
  readonly truncations: number
  /** Rotated files that were packed or removed before they were read. */
  readonly lostRotations: number
  /** What the last look left out, as others have their part of the places, or of the names that it goes through. */
  readonly leftOut: LeftOut
  /** The same since the start, and logs that gave up their place for another owner's. */
  readonly losses: ShareLosses
  /** Nothing is read, for want of room for the records. */
  readonly isPaused: boolean
  /** A hundred, those first that are behind most. */
  readonly byFile: readonly FollowedLogState[]
}

const pollMs = 250
const pausedMs = 50
const lookMs = 1000
const hurriedMs = 100
const lookAnewMs = 10_000
const commitMs = 1000
/** So much is handed on again after a kill, about; with the time that it takes until it is secured. */
const commitBytes = 16 * 1024 * 1024
const commitAtLeastMs = 100
/** Looks take this part of the time at most. */
const lookShare = 1 / 50
const sliceMs = 2
/** Chunks of one owner's logs before it is another one's turn. */
const chunksAtOnce = 4
const pauseAbove = 0.8
const resumeBelow = 0.6
/** Seconds of reading that a bound lets come at once. */
const burst = 0.25
/** What stop() waits for. */
const stopMs = 5000
/** What is still there is said to be so often. */
const seenMs = 3600 * 1000
const shownFiles = 100

/**
 * Follows log files through rotation, truncation and restarts: each line at least once, and those of a log in their
 * order. What is not read stays in its file. Nothing here throws.
 */
export class LogFollower {
  private readonly options: LogFollowerOptions
  private readonly positions: LogPositions
  private readonly buffer: LineBuffer
  private readonly found: FollowedLogs
  private readonly turns = new LogTurns()
  private running: Promise<void> | undefined
  private looking: Promise<void> | undefined
  private committing: Promise<void> | undefined
  private lookedMs = 0
  private lookedAnewMs = 0
  private committedMs = 0
  private committedBytes = 0
  private flushedMs = 0
  private isPaused = false
  /** Undefined: as much is read as comes. */
  private bucket: TokenBucket | undefined
  private rarer = 1
  private readonly turn = new Turn(sliceMs)
  private isHurried = false
  private isStopping = false
  private wake: () => void = () => undefined

  constructor(options: LogFollowerOptions) {
    this.options = options
    this.positions = options.positions
    this.buffer = lineBuffer(options.maxLineBytes, options.nextData)
    this.found = new FollowedLogs({
      ...options,
      buffer: this.buffer,
      maxOpen: options.maxOpen ?? 1000,
      maxFiles: options.maxFiles ?? 10_000,
      maxNames: options.maxNames ?? 100_000,
    })
  }

  /** Resolves when all files that are there are known, and where each is begun is on disk. */
  async start(): Promise<void> {
    this.startLook()
    await this.looking
    await this.positions.save()
    this.committedMs = performance.now()
    if (!this.isStopping) this.running = this.run()
  }

  /** Hands on what readers hold, waits for a bounded time until it is secured, and writes how far it came. */
  async stop(): Promise<void> {
    if (this.isStopping) return
    this.isStopping = true
    this.wake()
    await this.running
    await this.looking
    // A file system that has not answered since may keep a search waiting.
    await within(stopMs, this.found.idle())
    for (const log of this.found.logs.values()) log.flush(true)
    await within(
      stopMs,
      Promise.resolve(this.committing).then(() => this.commit()),
    )
    this.found.close()
    this.options.far.close()
  }

  /** Somebody knows of a new file: looks for it at once, at most ten times in a second. */
  hurry(): void {
    this.isHurried = true
    this.wake()
  }

  /** From now on: what is left waits in its file. */
  limit({ bytesPerSecond, rarer }: ReadingPace): void {
    this.rarer = rarer
    this.bucket = Number.isFinite(bytesPerSecond)
      ? new TokenBucket(bytesPerSecond, burst, this.bucket?.level)
      : undefined
    this.wake()
  }

  /** Milliseconds since the start that reading took, with what is done of the lines, about. */
  get busyMs(): number {
    return this.turn.workedMs + this.found.searchedMs
  }

  get state(): LogFollowerState {
    const byFile: FollowedLogState[] = []
    let behindBytes = 0
    for (const log of this.found.logs.values()) {
      let behind = 0
      for (const file of log.files) behind += file.behindBytes
      behindBytes += behind
      const { offset = 0, size: sizeBytes = 0 } = log.current ?? {}
      byFile.push({ path: log.path, source: log.source.name, offset, sizeBytes, behindBytes: behind })
    }
    byFile.sort((one, other) => other.behindBytes - one.behindBytes)
    return {
      files: this.found.logs.size,
      openFiles: this.found.openFiles,
      behindBytes,
      readBytes: this.buffer.readBytes,
      lines: this.buffer.lines,
      ...this.found.counts,
      leftOut: this.found.leftOut,
      losses: this.found.places.losses,
      isPaused: this.isPaused,
      byFile: byFile.slice(0, shownFiles),
    }
  }

  /** Whether how far a file was read is still needed, without a restart. */
  follows({ device, inode }: Position): boolean {
    return this.found.owners.holds(device, inode)
  }

  /** Bytes of names of files that are remembered. */
  get nameBytes(): number {
    return this.found.sourceFiles.bytes
  }

  /** Forgets names, which the next look reads again. */
  shedNames(bytes: number): number {
    return this.found.sourceFiles.shed(bytes)
  }

  private async run(): Promise<void> {
    while (!this.isStopping) {
      await this.options.far.ask()
      this.lookInTime()
      this.commitInTime()
      this.turn.begin()
      const isMore = await this.readAll()
      this.flushInTime()
      this.turn.end()
      if (isMore) await this.turn.next()
      else await this.sleep(this.isPaused || this.isSpent || this.isHurried ? pausedMs : pollMs)
    }
  }

  private sleep(milliseconds: number): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(resolve, milliseconds)
      timer.unref()
      this.wake = () => {
        clearTimeout(timer)
        resolve()
      }
      if (this.isStopping) this.wake()
    })
  }

  /** One turn of every owner of logs. True where there is more. */
  private async readAll(): Promise<boolean> {
    const { buffer, turn } = this
    const { awake } = this.found
    let isMore = false
    for (const logs of this.turns.owners(awake)) {
      let left = chunksAtOnce
      for (const log of logs) {
        while (left > 0 && awake.has(log)) {
          if (this.isStopping || this.mustPause() || this.isSpent) return false
          const before = buffer.readBytes
          const hasRead = this.found.step(log)
          this.bucket?.charge(buffer.readBytes - before)
          if (hasRead) this.turns.read(log, awake)
          await turn.rest()
          if (!hasRead) break
          left--
        }
        if (left === 0) break
      }
      isMore ||= left === 0
    }
    return isMore
  }

  private mustPause(): boolean {
    const pressure = this.options.pressure()
    this.isPaused = this.isPaused ? pressure >= resumeBelow : pressure > pauseAbove
    return this.isPaused
  }

  /** As much was read as may be for the moment. */
  private get isSpent(): boolean {
    if (this.bucket === undefined) return false
    this.bucket.fill(performance.now())
    return this.bucket.level.tokens <= 0
  }

  private lookInTime(): void {
    const now = performance.now()
    const { costMs } = this.found.sourceFiles
    const wait = Math.max(this.isHurried ? hurriedMs : lookMs * this.rarer, costMs / lookShare)
    if (this.looking === undefined && now - this.lookedMs >= wait) this.startLook()
  }

  private startLook(): void {
    this.isHurried = false
    this.looking = this.look().finally(() => {
      this.looking = undefined
    })
  }

  private async look(): Promise<void> {
    const isAnew = performance.now() - this.lookedAnewMs >= lookAnewMs
    if (isAnew) this.lookedAnewMs = performance.now()
    await this.found.look(isAnew)
    this.lookedMs = performance.now()
  }

  private flushInTime(): void {
    const now = performance.now()
    if (now - this.flushedMs < pollMs) return
    this.flushedMs = now
    for (const log of this.found.awake) log.flush(false)
  }

  private commitInTime(): void {
    const now = performance.now()
    if (this.committing !== undefined) return
    const isMuch = this.buffer.readBytes - this.committedBytes > commitBytes
    if (now - this.committedMs < (isMuch ? commitAtLeastMs : commitMs)) return
    this.committedMs = now
    this.committedBytes = this.buffer.readBytes
    this.committing = this.commit().finally(() => {
      this.committing = undefined
    })
  }

  /** Writes how far all files were read, once the records of it are secured. */
  private async commit(): Promise<void> {
    const finished = [...this.found.owners.finished]
    const turn = new Turn(sliceMs)
    const positions = await this.unkept(turn)
    if (positions.length > 0) {
      try {
        await this.options.secured()
      } catch {
        // They are handed on again after a restart, or are secured with the next ones.
        for (const [file] of positions) file.kept = undefined
        return
      }
      turn.begin()
      for (const [file, position] of positions) {
        if (this.found.owners.has(file)) this.positions.set(position)
        await turn.rest()
      }
    }
    this.found.owners.forget(finished)
    await this.positions.save()
  }

  /** What is not remembered yet as it is now. */
  private async unkept(turn: Turn): Promise<[LogFile, Position][]> {
    const positions: [LogFile, Position][] = []
    const now = Date.now()
    for (const [file, path] of this.found.files()) {
      const { position, kept } = file
      const isKept =
        kept !== undefined &&
        kept.offset === position &&
        kept.fingerprintLength === file.fingerprintLength &&
        now - kept.atMs < seenMs
      if (!isKept) positions.push([file, file.positionAt(path, position)])
      await turn.rest()
    }
    return positions
  }
}
