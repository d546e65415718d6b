import { closeSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Answer, MappedFile, Request, SymbolSettings } from './messages.ts'

/** Of V8's heap: tables and symbols are outside of it. */
const heapMb = 96
const defaultRestartMs = 5_000

/** Beside the bundle, or in development the source itself. */
const entry = ['profiling-worker.cjs', 'worker.ts']
  .map(name => join(import.meta.dirname, name))
  .find(path => existsSync(path))

export interface WorkerThreadOptions {
  readonly settings: SymbolSettings
  readonly answer: (answer: Answer) => void
  /** It ended without being asked to: nothing is answered any more. */
  readonly ended: (reason: string) => void
  /** Another one begins, and knows nothing. */
  readonly begun: () => void
  /** Milliseconds until another one begins. */
  readonly restartMs?: number
}

/**
 * The thread that reads files: ELF files of strangers may be large, broken or hostile, and whatever they do to it the
 * agent goes on. It is started again at most every five seconds.
 */
export class WorkerThread {
  /** How often it ended without being asked to. */
  failures = 0
  private readonly options: WorkerThreadOptions
  private settings: SymbolSettings
  private worker: Worker | undefined
  private restart: NodeJS.Timeout | undefined
  /** Descriptors that it has not closed yet, by id of the file. */
  private readonly descriptors = new Map<number, number>()
  private closed = false

  /** Throws where its program is missing. */
  constructor(options: WorkerThreadOptions) {
    this.options = options
    this.settings = options.settings
    this.start()
  }

  /** False: there is none now, and nothing was sent. */
  send(request: Request): boolean {
    this.worker?.postMessage(request)
    return this.worker !== undefined
  }

  /**
   * Hands a file over, with its descriptor (-1: none), which is closed when its table is made or the thread ends. False:
   * there is none now.
   */
  sendFile(file: MappedFile, fd: number): boolean {
    if (this.worker === undefined) {
      if (fd >= 0) closeSync(fd)
      return false
    }
    if (fd >= 0) this.descriptors.set(file.id, fd)
    return this.send({ kind: 'file', file, fd })
  }

  configure(settings: SymbolSettings): void {
    this.settings = settings
    this.send({ kind: 'settings', settings })
  }

  async close(): Promise<void> {
    this.closed = true
    clearTimeout(this.restart)
    const { worker } = this
    this.worker = undefined
    await worker?.terminate()
    this.closeDescriptors()
  }

  private start(): void {
    if (entry === undefined) throw new Error('cannot find profiling-worker.cjs: install the package anew')
    const worker = new Worker(entry, {
      workerData: this.settings,
      resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: 8 },
      name: 'svc-symbols',
    })
    worker.unref()
    worker.on('message', (answer: Answer) => {
      if (answer.kind === 'table') {
        const fd = this.descriptors.get(answer.id)
        this.descriptors.delete(answer.id)
        if (fd !== undefined) closeSync(fd)
      }
      this.options.answer(answer)
    })
    let reason = 'it ended'
    worker.on('error', error => {
      reason = error instanceof Error ? error.message : String(error)
    })
    worker.on('exit', () => {
      if (this.closed || this.worker !== worker) return
      this.worker = undefined
      this.failures++
      this.closeDescriptors()
      this.options.ended(reason)
      this.restart = setTimeout(() => {
        this.start()
        this.options.begun()
      }, this.options.restartMs ?? defaultRestartMs)
      this.restart.unref()
    })
    this.worker = worker
  }

  private closeDescriptors(): void {
    for (const fd of this.descriptors.values()) closeSync(fd)
    this.descriptors.clear()
  }
}
