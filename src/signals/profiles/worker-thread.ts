import { closeSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { errorText } from '../../foundation/lib/logger.ts'
import { within } from '../../foundation/lib/within.ts'
import type { Answer, MappedFile, Request, SymbolSettings } from './messages.ts'

/** Limit of V8's heap; tables and symbols are outside it. */
const heapMb = 96
const defaultRestartMs = 5_000
/** Maximum restart delay, which doubles after each failure and resets after a run of `soundMs`. */
const mostRestartMs = 120_000
const soundMs = 600_000
const defaultPatienceMs = 60_000
/** Maximum unanswered requests: above it files are refused, above twice as many also stacks. */
const mostWaiting = 128
/** Memory of stacks that wait, in bytes, about; beyond it no stacks are taken. */
const mostStackBytes = 16 * 1024 * 1024
const bytesOfStack = 1024
const bytesOfFrame = 16
/** Maximum wait for the end of a thread, which a system call may delay. */
const endMs = 3_000
/** Interval of questions for the thread's CPU time. */
const cpuEveryMs = 5_000

/** Beside the bundle; in development, the source file. */
const entry = ['profiling-worker.cjs', 'worker.ts']
  .map(name => join(import.meta.dirname, name))
  .find(path => existsSync(path))

/** Requests with one answer each. */
const answered: ReadonlySet<string> = new Set<Request['kind']>(['file', 'stacks', 'mark'])
const requestOf: Readonly<Record<Answer['kind'], string>> = {
  table: 'file',
  stacks: 'stacks',
  mark: 'mark',
  runtime: '',
  replaced: '',
}

export interface WorkerThreadOptions {
  readonly settings: SymbolSettings
  readonly answer: (answer: Answer) => void
  /** It ended unexpectedly: no more answers. */
  readonly ended: (reason: string) => void
  /** A new thread without state started. */
  readonly begun: () => void
  /** Delay of the first restart in milliseconds. */
  readonly restartMs?: number
  /** Milliseconds without an answer before it is terminated. */
  readonly patienceMs?: number
}

/**
 * Thread that reads files: ELF files may be large, broken or hostile, and must not affect the agent. It is restarted
 * after five seconds, then after twice as long each time, up to two minutes.
 */
export class WorkerThread {
  /** Number of unexpected ends. */
  failures = 0
  readonly #options: WorkerThreadOptions
  #settings: SymbolSettings
  #worker: Worker | undefined
  #restart: NodeJS.Timeout | undefined
  /** Descriptors that it has not closed yet, by file id. */
  readonly #descriptors = new Map<number, number>()
  /** Unanswered requests, and the time since the last answer. */
  #waiting = 0
  /** Bytes of each unanswered request of stacks, oldest first, and their sum. */
  readonly #bytesOf: number[] = []
  #stackBytes = 0
  #silentSince = 0
  #isEnding = false
  #restartMs = 0
  #startedMs = 0
  #closed = false
  #cpuMs_ = 0
  #cpuAskedMs = Number.NEGATIVE_INFINITY

  /** Throws if its program is missing. */
  constructor(options: WorkerThreadOptions) {
    this.#options = options
    this.#settings = options.settings
    this.#start()
  }

  /** False: no thread at present; nothing was sent. */
  send(request: Request): boolean {
    if (this.#worker === undefined) return false
    this.#worker.postMessage(request)
    if (!answered.has(request.kind)) return true
    if (this.#waiting === 0) this.#silentSince = performance.now()
    this.#waiting++
    if (request.kind === 'stacks') {
      const bytes = bytesOf(request)
      this.#bytesOf.push(bytes)
      this.#stackBytes += bytes
    }
    return true
  }

  /** Too much is unanswered to send files; the kernel side reports them again. */
  get busy(): boolean {
    return this.#waiting >= mostWaiting || this.#stackBytes >= mostStackBytes / 2
  }

  /** Too much is unanswered to send stacks; they must be reported again later. */
  get overloaded(): boolean {
    return this.#waiting >= 2 * mostWaiting || this.#stackBytes >= mostStackBytes
  }

  /** Memory of stacks that wait. */
  get stackBytes(): number {
    return this.#stackBytes
  }

  /** Current fault; undefined if there is none. */
  get stuck(): string | undefined {
    if (!this.#isEnding) return undefined
    const seconds = Math.round((performance.now() - this.#silentSince) / 1000)
    return `the symbol thread has not responded for ${seconds} s and cannot be stopped; a file system may not respond`
  }

  /** CPU milliseconds of the thread some seconds ago; 0 if the runtime does not report them (before Node 24.6). */
  get cpuMs(): number {
    return this.#cpuMs_
  }

  /** The question wakes both threads, so it is rare. */
  #askForCpu(): void {
    const now = performance.now()
    if (now - this.#cpuAskedMs < cpuEveryMs) return
    this.#cpuAskedMs = now
    void this.#worker
      ?.cpuUsage?.()
      .then(({ user, system }) => {
        this.#cpuMs_ = (user + system) / 1000
      })
      .catch(() => undefined) // it has ended
  }

  /** Terminates the thread if it has not answered for long. Call periodically. */
  watch(): void {
    this.#askForCpu()
    if (this.#worker === undefined || this.#waiting === 0 || this.#isEnding) return
    if (performance.now() - this.#silentSince < (this.#options.patienceMs ?? defaultPatienceMs)) return
    this.#isEnding = true
    void this.#worker.terminate()
  }

  /**
   * Sends a file with its descriptor (-1: none), which is closed when its table is built or the thread ends. False: no
   * thread at present, or busy.
   */
  sendFile(file: MappedFile, fd: number): boolean {
    if (this.#worker === undefined || this.busy) {
      if (fd >= 0) closeSync(fd)
      return false
    }
    if (fd >= 0) this.#descriptors.set(file.id, fd)
    return this.send({ kind: 'file', file, fd })
  }

  configure(settings: SymbolSettings): void {
    this.#settings = settings
    this.send({ kind: 'settings', settings })
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#restart)
    const worker = this.#worker
    this.#worker = undefined
    if (worker === undefined) return
    await within(endMs, worker.terminate())
    this.#closeDescriptors()
  }

  #start(): void {
    if (entry === undefined) throw new Error('profiling-worker.cjs not found; reinstall the package')
    const worker = new Worker(entry, {
      workerData: this.#settings,
      resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: 8 },
      name: 'svc-symbols',
    })
    worker.unref()
    this.#waiting = 0
    this.#stackBytes = 0
    this.#bytesOf.length = 0
    this.#isEnding = false
    this.#startedMs = performance.now()
    worker.on('message', (answer: Answer) => {
      this.#silentSince = performance.now()
      if (answered.has(requestOf[answer.kind])) this.#waiting--
      if (answer.kind === 'stacks') this.#stackBytes -= this.#bytesOf.shift() ?? 0
      if (answer.kind === 'table') {
        const fd = this.#descriptors.get(answer.id)
        this.#descriptors.delete(answer.id)
        if (fd !== undefined) closeSync(fd)
      }
      this.#options.answer(answer)
    })
    let reason = 'it exited'
    worker.on('error', error => {
      reason = error instanceof Error ? error.message : String(error)
    })
    worker.on('exit', () => {
      if (this.#closed || this.#worker !== worker) return
      this.#worker = undefined
      this.failures++
      this.#closeDescriptors()
      if (this.#isEnding) reason = 'it did not respond'
      this.#isEnding = false
      this.#options.ended(reason)
      this.#startLater()
    })
    this.#worker = worker
  }

  #startLater(): void {
    const first = this.#options.restartMs ?? defaultRestartMs
    const isSound = performance.now() - this.#startedMs >= soundMs
    this.#restartMs = isSound || this.#restartMs === 0 ? first : Math.min(2 * this.#restartMs, mostRestartMs)
    this.#restart = setTimeout(() => {
      try {
        this.#start()
      } catch (error) {
        // Out of memory or threads.
        this.#options.ended(errorText(error))
        this.#startLater()
        return
      }
      this.#options.begun()
    }, this.#restartMs)
    this.#restart.unref()
  }

  #closeDescriptors(): void {
    for (const fd of this.#descriptors.values()) closeSync(fd)
    this.#descriptors.clear()
  }
}

function bytesOf({ user, kernel }: Extract<Request, { kind: 'stacks' }>): number {
  let frames = 0
  for (const { spaces, inner } of user) frames += spaces.length + inner.spaces.length
  for (const { addresses } of kernel) frames += addresses.length
  return bytesOfStack * (user.length + kernel.length) + bytesOfFrame * frames
}
