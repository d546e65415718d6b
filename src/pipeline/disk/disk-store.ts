import { readdirSync, type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import { errorText, type Logger, limitRepeats } from '../../lib/logger.ts'
import { makeOwnDirectory } from '../../lib/own-directory.ts'
import { type Signal, signals } from '../../model/signal.ts'
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
/** Between two attempts at what did not work. */
const tickMs = 2000
const repeatMs = 60_000

export interface DiskStoreOptions {
  readonly directory: string
  /** Bound for the files of all signals together. */
  readonly maxBytes: number
  /** Longest time until written bytes are forced to the disk; 0: with every batch. */
  readonly fsyncMs: number
  readonly lock: TakeLock
  readonly log: Logger
  readonly files?: Files
  /** Longest wait for the disk at the end, in milliseconds: 1000. */
  readonly closeMs?: number | undefined
  /** Bytes that stay free on a file system of a size; default: `reserveOf`. */
  readonly reserve?: (totalBytes: number) => number
}

/** How the disk is doing. */
export interface DiskState {
  /** `degraded`: batches of at least one signal are kept in memory, or cannot be read, until the disk works again. */
  readonly state: 'ok' | 'degraded'
  /** What is wrong and how to fix it; '' where nothing is. */
  readonly reason: string
  /** Since when the state is as it is, milliseconds since the Unix epoch. */
  readonly sinceMs: number
  /** Of all files. */
  readonly bytes: number
  readonly maxBytes: number
  /** On the file system; 0 where it does not say. */
  readonly freeBytes: number
}

export interface QueueOptions {
  readonly signal: Signal
  /** Bound for bodies in memory, those under way included. */
  readonly memoryBytes: number
  /** Never called before `queue` has returned, but for damage that was found at once. */
  readonly dropped: Dropped
  /** `take` may give a batch now where it gave none before. */
  readonly ready: () => void
}

/**
 * Bytes that stay free, so that it is never svc that fills a disk: 64 MiB or 5 %, but a quarter of a file system that
 * is small, of which the queue would else have nothing, and 8 GiB of one that is large.
 */
export function reserveOf(totalBytes: number): number {
  return Math.min(Math.max(64 * Mi, totalBytes * 0.05), totalBytes / 4, 8192 * Mi)
}

/**
 * Opens the queues in a directory, which it makes where it is not there, and takes its lock. Throws in words where it
 * cannot be made, written or locked. What lies in it never makes it throw.
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

/** The log of one signal, and its queue once there is one. */
interface Shelf {
  readonly directory: string
  log: RecordLog
  /** What the directory was when the log was opened. */
  stats: Stats
  queue?: DiskQueue
}

/** The queues on the disk. They share a bound, a lock and the watch over the disk. */
export class DiskStore {
  readonly #options: DiskStoreOptions
  readonly #files: Files
  readonly #lock: DirectoryLock
  readonly #shelves: Readonly<Record<Signal, Shelf>>
  readonly #repeat: ReturnType<typeof limitRepeats>
  readonly #timer: NodeJS.Timeout
  #maxBytes: number
  #fsyncMs: number
  /** Undefined while all is well. */
  #fault: DiskFault | undefined
  /** Another process has the directory, whose lock somebody removed: two would write to the same files. */
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
    this.#timer = setInterval(() => this.#tick(), tickMs).unref()
  }

  get state(): DiskState {
    let freeBytes = 0
    try {
      freeBytes = this.#files.space(this.#options.directory).free
    } catch {
      // The directory may be gone; the state says so by itself.
    }
    return {
      state: this.#fault ? 'degraded' : 'ok',
      reason: this.#fault ? `${this.#fault.words}; ${this.#fault.hint}` : '',
      sinceMs: this.#sinceMs,
      bytes: this.#bytes,
      maxBytes: this.#maxBytes,
      freeBytes,
    }
  }

  /** The queue of a signal, with what former processes left there. Once for each signal. */
  queue({ signal, memoryBytes, dropped, ready }: QueueOptions): DiskQueue {
    const shelf = this.#shelves[signal]
    if (shelf.queue) throw new Error(`cannot open the queue of ${signal}: already open`)
    const { directory, log } = shelf
    const space = this.#spaceOf(signal)
    shelf.queue = new DiskQueue({ signal, directory, log, memoryBytes, dropped, ready, space })
    return shelf.queue
  }

  /** Sets other bounds. What no longer fits is dropped at once, the oldest first. */
  limit({ maxBytes, fsyncMs }: { readonly maxBytes: number; readonly fsyncMs: number }): void {
    this.#maxBytes = maxBytes
    this.#fsyncMs = fsyncMs
    try {
      this.#evict(0)
    } catch (error) {
      this.#say('cannot make room in the disk queue', error)
    }
  }

  /** Closes what is still open, and lets go of the directory. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    clearInterval(this.#timer)
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

  /** Drops oldest segments, of the signal that takes most, until so many bytes fit. False where they stay. */
  #evict(bytes: number): boolean {
    while (this.#bytes + bytes > this.#maxBytes) {
      const before = this.#bytes
      const shelves = signals.map(signal => this.#shelves[signal])
      // Files of which all was delivered cost nothing.
      shelves.sort((a, b) => Number(a.log.records > 0) - Number(b.log.records > 0) || bytesOf(b) - bytesOf(a))
      const evicted = shelves.some(shelf =>
        shelf.queue ? shelf.queue.evict('queue_full') : shelf.log.dropOldest() !== undefined,
      )
      // What is left at last are dead letters and cursors, which have bounds of their own.
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

  /** Room is made by the signal that takes most: up to what another one takes, it is the other that gives way. */
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
      return undefined // a right that is missing brings it back when it is given again
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
      // Without the directory there is no lock to take; the queues find out by themselves.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        this.#say('disk queue lock was removed and cannot be taken again', error)
    }
    for (const signal of signals) this.#shelves[signal].queue?.tick()
  }

  /** Says what became of the disk, once for each change. */
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
      const sentence =
        'disk queue degraded; new data is queued in memory until the disk works again'
      this.#repeat('warn', 'degraded', sentence, fields)
    } else
      this.#repeat('info', 'ok', 'disk queue works again', { directory, after_seconds: afterSeconds })
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
 * The thread pool, of two threads in the bundle, also looks up names and compresses: a disk that hangs must not take
 * all of it.
 */
function oneSyncAtATime(files: Files): Files {
  let last: Promise<unknown> = Promise.resolve()
  return {
    ...files,
    sync(fd) {
      const ended = last.then(() => files.sync(fd))
      last = ended.catch(() => undefined) // for the one who asked
      return ended
    },
  }
}

/** Files for a log that does not make its directory by itself: where that is removed, the queue has to know. */
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

/** The signal of RLIMIT_FSIZE would end the process; without that the write fails with EFBIG. */
function ignore(): void {}
