import { readdirSync, type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import { errorText, type Logger, limitRepeats } from '../../foundation/lib/logger.ts'
import { makeOwnDirectory } from '../../foundation/lib/own-directory.ts'
import { every, type Ticks } from '../../foundation/lib/shared-ticks.ts'
import { type Signal, signals } from '../../foundation/model/signal.ts'
import type { Dropped } from '../batch-queue.ts'
import { type DiskFault, faultOf } from './disk-fault.ts'
import { layoutVersion, signalDirectory } from './disk-layout.ts'
import { type DirectoryLock, LockedByAnother, lockDirectory, type TakeLock } from './disk-lock.ts'
import { DiskQueue } from './disk-queue.ts'
import type { DiskSpace } from './disk-space.ts'
import type { Files, RecordLog } from './log.ts'
import { realFiles } from './real-files.ts'
import { openSegmentLog } from './segment-log.ts'

const Ki = 1024
const Mi = 1024 * Ki
/** Interval of retries, in milliseconds. */
const tickMs = 2000
const repeatMs = 60_000

export interface DiskStoreOptions {
  readonly directory: string
  /** Limit for the files of all signals together, in bytes. */
  readonly maxBytes: number
  /** Maximum time until written data is synced, in milliseconds; 0: with every batch. */
  readonly fsyncMs: number
  readonly lock: TakeLock
  readonly log: Logger
  readonly files?: Files
  /** Maximum wait for the disk at shutdown, in milliseconds; default 1000. */
  readonly closeMs?: number | undefined
  /** Bytes to keep free on a file system of this size; default `reserveOf`. */
  readonly reserve?: (totalBytes: number) => number
}

/** State of the disk queue. */
export interface DiskState {
  /** `degraded`: batches of at least one signal are kept in memory, or cannot be read, until the disk works again. */
  readonly state: 'ok' | 'degraded'
  /** Fault and hint; '' for none. */
  readonly reason: string
  /** Time of the last state change, in milliseconds since the Unix epoch. */
  readonly sinceMs: number
  /** Size of all files. */
  readonly bytes: number
  readonly maxBytes: number
}

export interface QueueOptions {
  readonly signal: Signal
  /** Limit for bodies in memory, those in flight included, in bytes. */
  readonly memoryBytes: number
  /** Called with dropped items; before `queue` returns only for damage found immediately. */
  readonly dropped: Dropped
  /** Called when `take` may return a batch again. */
  readonly ready: () => void
}

/**
 * Bytes to keep free, so that svc never fills a disk: 64 MiB or 5 %, but a quarter of a small file system,
 * which would otherwise have no room for the queue, and 8 GiB of a large one.
 */
export function reserveOf(totalBytes: number): number {
  return Math.min(Math.max(64 * Mi, totalBytes * 0.05), totalBytes / 4, 8192 * Mi)
}

/**
 * Opens the queues in a directory, which it creates if necessary, and takes its lock. Throws an error with a reason if
 * it cannot be created, written or locked. Its content never causes an exception.
 */
export function openDiskStore(options: DiskStoreOptions): DiskStore {
  const { directory } = options
  let lock: DirectoryLock | undefined
  try {
    makeDirectory(directory)
    lock = lockDirectory(directory, options.lock)
    return new DiskStore(options, lock)
  } catch (error) {
    lock?.release()
    const code = error instanceof Error && 'code' in error
    const hint = code ? `; ${faultOf(error, directory).hint}` : ''
    throw new Error(`cannot open the queue in ${directory}: ${errorText(error)}${hint}`, { cause: error })
  }
}

/** Log of one signal, and its queue once opened. */
interface Shelf {
  readonly directory: string
  log: RecordLog
  /** State of the directory when the log was opened. */
  stats: Stats
  queue?: DiskQueue
}

/** Disk queues of all signals, with a shared limit, lock and disk monitoring. */
export class DiskStore {
  readonly #options: DiskStoreOptions
  readonly #files: Files
  readonly #lock: DirectoryLock
  readonly #shelves: Readonly<Record<Signal, Shelf>>
  readonly #repeat: ReturnType<typeof limitRepeats>
  readonly #ticks: Ticks
  #maxBytes: number
  #fsyncMs: number
  /** Current fault; undefined for none. */
  #fault: DiskFault | undefined
  /** Another process that has the lock, after the lock file was removed: both would write to the same files. */
  #rival: LockedByAnother | undefined
  #sinceMs = Date.now()
  #closed: Promise<void> | undefined

  constructor(options: DiskStoreOptions, lock: DirectoryLock) {
    this.#options = options
    this.#files = oneSyncAtATime(options.files ?? realFiles)
    this.#lock = lock
    this.#maxBytes = options.maxBytes
    this.#fsyncMs = options.fsyncMs
    this.#repeat = limitRepeats(options.log, repeatMs)
    this.#shelves = this.#openShelves()
    this.#sayOtherVersions()
    process.on('SIGXFSZ', ignore)
    this.#ticks = every(tickMs, () => this.#tick())
  }

  get state(): DiskState {
    return {
      state: this.#fault ? 'degraded' : 'ok',
      reason: this.#fault ? `${this.#fault.words}; ${this.#fault.hint}` : '',
      sinceMs: this.#sinceMs,
      bytes: this.#bytes,
      maxBytes: this.#maxBytes,
    }
  }

  /** Free bytes of the file system (statfs(2)); 0 if unknown. */
  get freeBytes(): number {
    try {
      return this.#files.space(this.#options.directory).free
    } catch {
      return 0 // the directory may be gone; the state shows it
    }
  }

  /** Opens the queue of a signal, with data of earlier processes. Once per signal. */
  queue({ signal, memoryBytes, dropped, ready }: QueueOptions): DiskQueue {
    const shelf = this.#shelves[signal]
    if (shelf.queue) throw new Error(`cannot open the queue of ${signal}: already open`)
    const { directory, log } = shelf
    const space = this.#spaceOf(signal)
    shelf.queue = new DiskQueue({ signal, directory, log, memoryBytes, dropped, ready, space })
    return shelf.queue
  }

  /** Sets the limits. Data over them is dropped immediately, the oldest first. */
  limit({ maxBytes, fsyncMs }: { readonly maxBytes: number; readonly fsyncMs: number }): void {
    this.#maxBytes = maxBytes
    this.#fsyncMs = fsyncMs
    try {
      this.#evict(0)
    } catch (error) {
      this.#say('cannot make room in the disk queue', error)
    }
  }

  /** Closes all queues, and releases the lock. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    this.#ticks.stop()
    process.off('SIGXFSZ', ignore)
    await Promise.all(signals.map(signal => this.#closeShelf(this.#shelves[signal])))
    this.#lock.release()
  }

  async #closeShelf({ queue, log }: Shelf): Promise<void> {
    if (queue) await queue.close()
    else await log.close()
  }

  #openShelves(): Readonly<Record<Signal, Shelf>> {
    const opened: Shelf[] = []
    const open = (signal: Signal): Shelf => {
      const directory = signalDirectory(this.#options.directory, signal)
      try {
        makeDirectory(directory)
        const shelf = { directory, log: this.#openLog(signal), stats: statSync(directory) }
        opened.push(shelf)
        return shelf
      } catch (error) {
        const { hint } = faultOf(error, directory)
        throw new Error(`cannot use the ${signal} directory: ${errorText(error)}; ${hint}`, {
          cause: error,
        })
      }
    }
    try {
      return {
        traces: open('traces'),
        metrics: open('metrics'),
        logs: open('logs'),
        profiles: open('profiles'),
      }
    } catch (error) {
      for (const { log } of opened) void log.close()
      throw error
    }
  }

  #openLog(signal: Signal): RecordLog {
    const directory = signalDirectory(this.#options.directory, signal)
    return openSegmentLog({
      directory,
      files: withoutMaking(directory, this.#files),
      fsyncMs: () => this.#fsyncMs,
      kind: signals.indexOf(signal),
      // Room is made by whole segments, so a small queue has small ones.
      segmentBytes: Math.min(Math.max(this.#maxBytes / 32, 64 * Ki), 8 * Mi),
      maxDeadBytes: Math.min(this.#maxBytes / 16, 16 * Mi),
      closeMs: this.#options.closeMs,
      fault: (what, error) => this.#say(`disk queue file error: ${what}`, error),
      synced: () => this.#shelves?.[signal].queue?.synced(),
    })
  }

  get #bytes(): number {
    let bytes = 0
    for (const signal of signals) bytes += bytesOf(this.#shelves[signal])
    return bytes
  }

  /**
   * Drops the oldest segments of the signal with the most data until there is room for `bytes`. False if they cannot be
   * dropped.
   */
  #evict(bytes: number): boolean {
    while (this.#bytes + bytes > this.#maxBytes) {
      const before = this.#bytes
      const shelves = signals.map(signal => this.#shelves[signal])
      // Fully delivered files first: they cost nothing.
      shelves.sort((a, b) => Number(a.log.records > 0) - Number(b.log.records > 0) || bytesOf(b) - bytesOf(a))
      const evicted = shelves.some(shelf =>
        shelf.queue ? shelf.queue.evict('queue_full') : shelf.log.dropOldest() !== undefined,
      )
      // Only dead letters and cursors are left, which have their own limits.
      if (!evicted || this.#bytes >= before) return shelves.every(({ log }) => log.records === 0)
    }
    return true
  }

  #spaceOf(signal: Signal): DiskSpace {
    const store = this
    const { directory } = this.#shelves[signal]
    return {
      get maxBytes() {
        return store.#maxBytes
      },
      get shareBytes() {
        return store.#shareOf(signal)
      },
      makeRoom: bytes => this.#makeRoom(bytes),
      probe: () => this.#probe(join(directory, 'probe')),
      directoryGone: () => this.#gone(this.#shelves[signal]),
      openLog: () => this.#replaceLog(signal),
      changed: () => this.#changed(),
    }
  }

  /**
   * Share of a signal: the signal with the most data makes room, so up to the largest other one this signal loses
   * nothing.
   */
  #shareOf(signal: Signal): number {
    let others = 0
    let most = 1
    for (const other of signals) {
      if (other === signal) continue
      const bytes = bytesOf(this.#shelves[other])
      others += bytes
      most = Math.max(most, bytes)
    }
    return Math.max(this.#maxBytes - others, most)
  }

  #makeRoom(bytes: number): DiskFault | undefined {
    const { directory, reserve = reserveOf } = this.#options
    if (!this.#evict(bytes))
      return {
        reason: 'disk_error',
        words: `the queue in ${directory} is full, and its oldest files cannot be removed`,
        hint: 'allow the svc user to remove them; the log names them',
      }
    const { free, total } = this.#files.space(directory)
    const kept = reserve(total)
    if (free - bytes >= kept) return undefined
    return {
      reason: 'disk_full',
      words: `the file system of ${directory} has ${mebibytes(free)} MiB free; svc keeps ${mebibytes(kept)} MiB free for other programs`,
      hint: `free ${mebibytes(kept - free + bytes)} MiB there, or set pipeline.export.queue.directory to another file system`,
    }
  }

  #probe(path: string): void {
    const fd = this.#files.open(path, 'append')
    try {
      this.#files.write(fd, [Buffer.alloc(4 * Ki)])
    } finally {
      this.#files.close(fd)
      this.#files.remove(path)
    }
  }

  #gone({ directory, stats }: Shelf): string | undefined {
    if (this.#rival) return `the LOCK of ${this.#options.directory} was removed: ${this.#rival.message}`
    try {
      const there = statSync(directory, { throwIfNoEntry: false })
      const isOurs = there?.ino === stats.ino && there.dev === stats.dev
      return isOurs ? undefined : `${directory} was removed`
    } catch {
      return undefined // access may be denied only temporarily
    }
  }

  #replaceLog(signal: Signal): RecordLog {
    const shelf = this.#shelves[signal]
    makeDirectory(this.#options.directory)
    this.#lock.renew()
    makeDirectory(shelf.directory)
    const log = this.#openLog(signal)
    if (log.lastSeq > 0) {
      void log.close()
      throw new Error(`${shelf.directory} now contains another queue; restart svc to use it`)
    }
    shelf.log = log
    shelf.stats = statSync(shelf.directory)
    return log
  }

  #tick(): void {
    try {
      this.#lock.renew()
      this.#rival = undefined
    } catch (error) {
      this.#rival = error instanceof LockedByAnother ? error : undefined
      // Without the directory there is no lock to take; the queues detect it.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        this.#say('disk queue lock was removed and cannot be taken again', error)
    }
    for (const signal of signals) this.#shelves[signal].queue?.tick()
  }

  /** Logs the state of the disk, once per change. */
  #changed(): void {
    const failing = signals.filter(signal => this.#shelves[signal].queue?.fault)
    const fault = failing[0] && this.#shelves[failing[0]].queue?.fault
    const before = this.#fault
    this.#fault = fault
    if (!fault === !before) return
    const { directory } = this.#options
    const afterSeconds = Math.round((Date.now() - this.#sinceMs) / 1000)
    this.#sinceMs = Date.now()
    if (fault) {
      const fields = { signal: failing[0], directory, error: fault.words, hint: fault.hint }
      const sentence = 'disk queue degraded; new data is queued in memory until the disk works again'
      this.#repeat('warn', 'degraded', sentence, fields)
    } else this.#repeat('info', 'ok', 'disk queue works again', { directory, after_seconds: afterSeconds })
  }

  #say(sentence: string, error: unknown): void {
    this.#repeat('warn', sentence, sentence, { directory: this.#options.directory, error: errorText(error) })
  }

  #sayOtherVersions(): void {
    const { directory, log } = this.#options
    const others = readdirSync(directory).filter(name => /^v\d+$/.test(name) && name !== layoutVersion)
    if (others.length === 0) return
    const fields = { directory, other: others.join(' '), own: layoutVersion }
    log.warn('queue of another svc version found; only that version sends it', fields)
  }
}

function bytesOf({ queue, log }: Shelf): number {
  return queue ? queue.bytes : log.bytes
}

function makeDirectory(path: string): void {
  makeOwnDirectory(path)
}

/**
 * The thread pool, of two threads in the bundle, also resolves names and compresses: a hanging disk must not block
 * all of it.
 */
function oneSyncAtATime(files: Files): Files {
  let last: Promise<unknown> = Promise.resolve()
  return {
    ...files,
    sync(fd) {
      const ended = last.then(() => files.sync(fd))
      last = ended.catch(() => undefined) // `ended` reports the error to its caller
      return ended
    },
  }
}

/** Files for a log that must not create its directory: the queue must notice the removal. */
function withoutMaking(directory: string, files: Files): Files {
  return {
    ...files,
    makeDirectory(path) {
      statSync(directory)
      files.makeDirectory(path)
    },
  }
}

function mebibytes(bytes: number): number {
  return Math.max(0, Math.ceil(bytes / Mi))
}

/** Handler for SIGXFSZ (RLIMIT_FSIZE), which would end the process; with it the write fails with EFBIG. */
function ignore(): void {}
