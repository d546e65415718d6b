import type { ShareLosses } from '../../foundation/lib/fair-share.ts'
import { TokenBucket } from '../../foundation/lib/token-bucket.ts'
import { Turn } from '../../foundation/lib/turn.ts'
import { within } from '../../foundation/lib/within.ts'
import type { FollowedLog } from './followed-log.ts'
import { FollowedLogs } from './followed-logs.ts'
import type { LogSource } from './line-reader.ts'
import { type LineBuffer, type LogFile, lineBuffer, type NextData } from './log-file.ts'
import type { LogPositions, Position } from './log-positions.ts'
import { LogTurns } from './log-turns.ts'
import type { RemoteLogs } from './remote-logs.ts'
import type { OmittedFiles } from './source-files.ts'

export interface LogFollowerOptions {
  readonly sources: readonly LogSource[]
  readonly positions: LogPositions
  readonly remoteLogs: RemoteLogs
  /** Start position in files that existed before the first scan. */
  readonly startAt: 'end' | 'beginning'
  /** Maximum line length in bytes; a longer line is passed on in pieces. */
  readonly maxLineBytes: number
  /** Fill level of the receiver of records, from 0 to 1. Above 0.8, reading pauses until it is below 0.6. */
  readonly pressure: () => number
  /** Resolves when all records passed on so far are safe. Rejects if some may be lost. */
  readonly secured: () => Promise<void>
  readonly warn: (message: string, hint: string) => void
  /** Skips holes in files; without it they are read as zeros. */
  readonly nextData?: NextData | undefined
  /** Maximum open files (1,000), followed logs (10,000), and directory entries of a scan (100,000). */
  readonly maxOpen?: number
  readonly maxFiles?: number
  readonly maxNames?: number
}

/** Limits on the reading rate. */
export interface ReadingPace {
  /** Infinity for no limit. */
  readonly bytesPerSecond: number
  /** Factor for the interval of scans. */
  readonly rarer: number
}

/** State of one log. */
export interface FollowedLogState {
  readonly path: string
  readonly source: string
  readonly offset: number
  readonly sizeBytes: number
  /** Unread bytes of all its files. */
  readonly behindBytes: number
}

/** Counts that are cheap to read. */
export interface LogFollowerCounts {
  /** Number of followed logs. */
  readonly files: number
  readonly openFiles: number
  readonly readBytes: number
  readonly lines: number
  /** Files truncated or replaced in place. */
  readonly truncations: number
  /** Rotated files compressed or removed before they were read. */
  readonly lostRotations: number
  /** Files and directories that the last scan left out, as their owner has reached its share. */
  readonly leftOut: OmittedFiles
  /** The same since the start, and logs that lost their place to another owner. */
  readonly losses: ShareLosses
  /** Whether reading is paused, as there is no room for records. */
  readonly isPaused: boolean
}

export interface LogFollowerState extends LogFollowerCounts {
  readonly behindBytes: number
  /** At most a hundred logs, those with the largest backlog first. */
  readonly byFile: readonly FollowedLogState[]
}

const pollMs = 250
const pausedMs = 50
const lookMs = 1000
const hurriedMs = 100
const fullLookMs = 10_000
const commitMs = 1000
/** Approximate bytes read again after a kill, in addition to those not yet secured. */
const commitBytes = 16 * 1024 * 1024
const commitAtLeastMs = 100
/** Maximum share of time for scans. */
const lookShare = 1 / 50
const sliceMs = 2
/** Chunks of one owner's logs per turn. */
const chunksAtOnce = 4
const pauseAbove = 0.8
const resumeBelow = 0.6
/** Burst of the rate limit, in seconds. */
const burst = 0.25
/** Maximum wait of stop(), in milliseconds. */
const stopMs = 5000
/** Interval at which existing files are confirmed in the position file, in milliseconds. */
const seenMs = 3600 * 1000
const shownFiles = 100

/**
 * Reads log files through rotation, truncation and restarts: each line at least once, and those of a log in
 * order. Unread data stays in its file. Nothing here throws.
 */
export class LogFollower {
  readonly #options: LogFollowerOptions
  readonly #positions: LogPositions
  readonly #buffer: LineBuffer
  readonly #found: FollowedLogs
  readonly #turns = new LogTurns()
  #running: Promise<void> | undefined
  #looking: Promise<void> | undefined
  #committing: Promise<void> | undefined
  #lookedMs = 0
  #lookedFullyMs = 0
  #committedMs = 0
  #committedBytes = 0
  #flushedMs = 0
  #roundMs = 0
  #isPaused = false
  /** Undefined without a rate limit. */
  #bucket: TokenBucket | undefined
  #rarer = 1
  readonly #turn = new Turn(sliceMs)
  #isHurried = false
  #isStopping = false
  #wake: () => void = () => undefined

  constructor(options: LogFollowerOptions) {
    this.#options = options
    this.#positions = options.positions
    this.#buffer = lineBuffer(options.maxLineBytes, options.nextData)
    this.#found = new FollowedLogs({
      ...options,
      buffer: this.#buffer,
      maxOpen: options.maxOpen ?? 1000,
      maxFiles: options.maxFiles ?? 10_000,
      maxNames: options.maxNames ?? 100_000,
    })
  }

  /** Resolves when all existing files are known, and their start positions are on disk. */
  async start(): Promise<void> {
    this.#startLook()
    await this.#looking
    await this.#positions.save()
    this.#committedMs = performance.now()
    if (!this.#isStopping) this.#running = this.#run()
  }

  /** Passes on the text in readers, waits for a limited time until it is secured, and saves the positions. */
  async stop(): Promise<void> {
    if (this.#isStopping) return
    this.#isStopping = true
    this.#wake()
    await this.#running
    await this.#looking
    // A file system that stopped responding may block a search.
    await within(stopMs, this.#found.idle())
    for (const log of this.#found.logs.values()) log.flush(true)
    await within(
      stopMs,
      Promise.resolve(this.#committing).then(() => this.#commit()),
    )
    this.#found.close()
    this.#options.remoteLogs.close()
  }

  /** Scans now, as there is a new file; at most ten times per second. */
  hurry(): void {
    this.#isHurried = true
    this.#wake()
  }

  /** Sets the reading rate; unread data waits in its file. */
  limit({ bytesPerSecond, rarer }: ReadingPace): void {
    this.#rarer = rarer
    this.#bucket = Number.isFinite(bytesPerSecond)
      ? new TokenBucket(bytesPerSecond, burst, this.#bucket?.level)
      : undefined
    this.#wake()
  }

  /** Approximate time since the start spent on reading and processing lines, in milliseconds. */
  get busyMs(): number {
    return this.#turn.workedMs + this.#found.searchedMs
  }

  get counts(): LogFollowerCounts {
    return {
      files: this.#found.logs.size,
      openFiles: this.#found.openFiles,
      readBytes: this.#buffer.readBytes,
      lines: this.#buffer.lines,
      ...this.#found.counts,
      leftOut: this.#found.leftOut,
      losses: this.#found.places.losses,
      isPaused: this.#isPaused,
    }
  }

  /** Looks at all logs. */
  get state(): LogFollowerState {
    const byFile: FollowedLogState[] = []
    let behindBytes = 0
    for (const log of this.#found.logs.values()) {
      let behind = 0
      for (const file of log.files) behind += file.behindBytes
      behindBytes += behind
      const { offset = 0, size: sizeBytes = 0 } = log.current ?? {}
      byFile.push({ path: log.path, source: log.source.name, offset, sizeBytes, behindBytes: behind })
    }
    byFile.sort((one, other) => other.behindBytes - one.behindBytes)
    return { ...this.counts, behindBytes, byFile: byFile.slice(0, shownFiles) }
  }

  /** Whether the position of a file is still needed, apart from a restart. */
  follows({ device, inode }: Position): boolean {
    return this.#found.owners.isKnown(device, inode)
  }

  /** Bytes of cached file names. */
  get nameBytes(): number {
    return this.#found.sourceFiles.bytes
  }

  /** Drops cached names; the next scan reads them again. */
  shedNames(bytes: number): number {
    return this.#found.sourceFiles.shed(bytes)
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) {
      await this.#options.remoteLogs.ask()
      this.#lookInTime()
      this.#commitInTime()
      this.#turn.begin()
      const isMore = await this.#readAll()
      this.#flushInTime()
      this.#turn.end()
      if (isMore) await this.#turn.next()
      else await this.#sleep(this.#isPaused || this.#isSpent || this.#isHurried ? pausedMs : pollMs)
    }
  }

  #sleep(milliseconds: number): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(resolve, milliseconds)
      timer.unref()
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
      if (this.#isStopping) this.#wake()
    })
  }

  /**
   * One turn of every owner of logs. True if there is more data. A log without data is not asked again within the
   * interval: others may have a lot of it.
   */
  async #readAll(): Promise<boolean> {
    const { active: awake } = this.#found
    const turns = this.#turns
    const now = performance.now()
    if (turns.isDone || now - this.#roundMs >= pollMs) {
      this.#roundMs = now
      turns.begin(awake)
    }
    for (const logs of turns.owners()) if (!(await this.#readSome(logs, awake))) return false
    turns.end()
    return !turns.isDone
  }

  /** Reads some chunks of an owner's logs. False if it has to end. */
  async #readSome(logs: FollowedLog[], awake: Set<FollowedLog>): Promise<boolean> {
    const buffer = this.#buffer
    for (let left = chunksAtOnce; left > 0 && logs.length > 0; ) {
      if (this.#isStopping || this.#mustPause() || this.#isSpent) return false
      const log = logs[0]!
      const before = buffer.readBytes
      const hasRead = awake.has(log) && this.#found.step(log)
      this.#bucket?.charge(buffer.readBytes - before)
      if (hasRead) this.#turns.read(log, awake)
      else logs.shift()
      if (hasRead && --left === 0) logs.push(logs.shift()!)
      await this.#turn.rest()
    }
    return true
  }

  #mustPause(): boolean {
    const pressure = this.#options.pressure()
    this.#isPaused = this.#isPaused ? pressure >= resumeBelow : pressure > pauseAbove
    return this.#isPaused
  }

  /** Whether the rate limit is reached. */
  get #isSpent(): boolean {
    if (this.#bucket === undefined) return false
    this.#bucket.fill(performance.now())
    return this.#bucket.level.tokens <= 0
  }

  #lookInTime(): void {
    const now = performance.now()
    const { costMs } = this.#found.sourceFiles
    const wait = Math.max(this.#isHurried ? hurriedMs : lookMs * this.#rarer, costMs / lookShare)
    if (this.#looking === undefined && now - this.#lookedMs >= wait) this.#startLook()
  }

  #startLook(): void {
    this.#isHurried = false
    this.#looking = this.#look().finally(() => {
      this.#looking = undefined
    })
  }

  async #look(): Promise<void> {
    const isFull = performance.now() - this.#lookedFullyMs >= fullLookMs
    if (isFull) this.#lookedFullyMs = performance.now()
    await this.#found.look(isFull)
    this.#lookedMs = performance.now()
  }

  #flushInTime(): void {
    const now = performance.now()
    if (now - this.#flushedMs < pollMs) return
    this.#flushedMs = now
    for (const log of this.#found.active) log.flush(false)
  }

  #commitInTime(): void {
    const now = performance.now()
    if (this.#committing !== undefined) return
    const isMuch = this.#buffer.readBytes - this.#committedBytes > commitBytes
    if (now - this.#committedMs < (isMuch ? commitAtLeastMs : commitMs)) return
    this.#committedMs = now
    this.#committedBytes = this.#buffer.readBytes
    this.#committing = this.#commit().finally(() => {
      this.#committing = undefined
    })
  }

  /** Saves the positions of all files, once their records are secured. */
  async #commit(): Promise<void> {
    const finished = [...this.#found.owners.finished]
    const turn = new Turn(sliceMs)
    const positions = await this.#unkept(turn)
    if (positions.length > 0) {
      try {
        await this.#options.secured()
      } catch {
        // They are read again after a restart, or secured with the next ones.
        for (const [file] of positions) file.kept = undefined
        return
      }
      turn.begin()
      for (const [file, position] of positions) {
        if (this.#found.owners.has(file)) this.#positions.set(position)
        await turn.rest()
      }
    }
    this.#found.owners.forget(finished)
    await this.#positions.save()
  }

  /** Positions that have changed since they were saved. */
  async #unkept(turn: Turn): Promise<[LogFile, Position][]> {
    const positions: [LogFile, Position][] = []
    const now = Date.now()
    for (const [file, path] of this.#found.files()) {
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
