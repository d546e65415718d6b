// Profiles of this process, for /debug/pprof and /debug/vars.

import type { ProfileFile, ProfileKind } from '../lib/profile-file.ts'
import { AllocationWatch, type MemoryFigures } from './allocation-watch.ts'
import { AsyncWork } from './async-work.ts'
import { recordCpuProfile } from './cpu-profile.ts'
import { HeapSampling } from './heap-profile.ts'
import { noContention, osThreads } from './os-threads.ts'
import { stackProfileToPprof } from './pprof.ts'
import { profileTable, stackList } from './profile-text.ts'
import type { StackProfile } from './stack-profile.ts'
import { recordTrace } from './trace-file.ts'

export interface ProfileRequest {
  /** Duration, within the bounds of the kind; ignored by kinds without bounds. */
  readonly seconds: number
  /** 0: the file for tools. 1, 2: text. */
  readonly debug: 0 | 1 | 2
  /** Aborts a running profile and frees its memory. */
  readonly signal: AbortSignal
}

/** Another timed profile is running. */
export class ProfilerBusy extends Error {
  constructor(kind: string, running: string) {
    super(
      `cannot take ${kind}: ${running} is in progress, and only one can run at a time; try again when it is done`,
    )
    this.name = 'ProfilerBusy'
  }
}

/** Document of /debug/vars. */
export interface RuntimeVars {
  readonly cmdline: readonly string[]
  readonly memstats: MemoryFigures
}

/** Recorders that run while debug mode is on. */
interface Watch {
  readonly heap: Promise<HeapSampling>
  readonly asyncWork: AsyncWork
  /** Aborts with the reason when debug mode is turned off. */
  readonly end: AbortController
}

/** A profile before it is encoded as a file. */
interface Recording {
  readonly contentType: string
  readonly extension: string
  encode(): Promise<Buffer>
  text(): string
}

interface RecordedKind extends ProfileKind {
  record(watch: Watch, seconds: number, signal: AbortSignal): Promise<Recording>
}

const kinds: readonly RecordedKind[] = [
  {
    name: 'heap',
    summary: 'Memory in use by allocation site, sampled since debug mode was turned on',
    record: async ({ heap }) => pprof(await (await heap).profile(), profileTable),
  },
  {
    name: 'goroutine',
    summary: 'Active asynchronous work with the stacks that started it',
    record: async ({ asyncWork }) => pprof(asyncWork.profile(), stackList),
  },
  {
    name: 'threadcreate',
    summary: 'Threads of the process by name',
    record: async () => pprof(osThreads(), stackList),
  },
  {
    name: 'block',
    summary: 'Blocking: empty, the runtime has no equivalent',
    record: async () => pprof(noContention('block'), stackList),
  },
  {
    name: 'mutex',
    summary: 'Lock contention: empty, the runtime has no equivalent',
    record: async () => pprof(noContention('mutex'), stackList),
  },
  {
    name: 'profile',
    summary: 'CPU time of the main thread',
    seconds: { default: 30, min: 1, max: 60 },
    record: async (_, seconds, signal) => pprof(await recordCpuProfile(seconds, signal), profileTable),
  },
  {
    name: 'trace',
    summary: 'Trace events of the runtime for Perfetto and Chrome',
    seconds: { default: 1, min: 1, max: 10 },
    record: async (_, seconds, signal) => {
      const { json, text } = await recordTrace(seconds, signal)
      return {
        contentType: 'application/json',
        extension: 'json',
        encode: async () => json,
        text: () => text,
      }
    },
  },
]

/** The available profiles. */
export const profileKinds: readonly ProfileKind[] = kinds

export class RuntimeProfiler {
  readonly #allocations = new AllocationWatch()
  #watch: Watch | undefined
  /** The kind that is being recorded. */
  #recording: string | undefined

  /** Debug mode is on: starts the recorders. */
  start(): void {
    if (this.#watch) return
    const heap = HeapSampling.start()
    heap.catch(() => {}) // reported when the profile is requested
    this.#watch = { heap, asyncWork: new AsyncWork(), end: new AbortController() }
    this.#watch.asyncWork.start()
    this.#allocations.start()
  }

  /** Debug mode is off: aborts a running profile and frees everything. */
  stop(): void {
    if (!this.#watch) return
    const { heap, asyncWork, end } = this.#watch
    this.#watch = undefined
    end.abort(new Error('debug mode was turned off'))
    heap.then(
      sampling => sampling.stop(),
      () => {},
    )
    asyncWork.stop()
    this.#allocations.stop()
  }

  /**
   * Rejects with ProfilerBusy if another one is running, with the signal's reason if it aborts, and with an Error if
   * debug mode is off or the runtime lacks support.
   */
  async take(kind: string, { seconds, debug, signal }: ProfileRequest): Promise<ProfileFile> {
    const wanted = kinds.find(({ name }) => name === kind)
    if (!wanted) throw new RangeError(`cannot take ${kind}: there is no such profile`)
    const watch = this.#watch
    if (!watch) throw new Error(`cannot take ${kind}: debug mode is off (set self_telemetry.debug: true)`)
    if (wanted.seconds) {
      const { min, max } = wanted.seconds
      if (!(seconds >= min && seconds <= max))
        throw new RangeError(`cannot take ${kind}: seconds must be from ${min} to ${max}`)
      if (this.#recording) throw new ProfilerBusy(kind, this.#recording)
      this.#recording = kind
    }
    try {
      const recording = await wanted.record(watch, seconds, AbortSignal.any([signal, watch.end.signal]))
      if (debug !== 0) {
        const body = Buffer.from(recording.text())
        return { contentType: 'text/plain; charset=utf-8', fileName: `${kind}.txt`, body }
      }
      const { contentType, extension } = recording
      return { contentType, fileName: `${kind}.${extension}`, body: await recording.encode() }
    } catch (error) {
      if (signal.aborted) throw signal.reason
      throw new Error(`cannot take ${kind}: ${error instanceof Error ? error.message : error}`, {
        cause: error,
      })
    } finally {
      if (wanted.seconds) this.#recording = undefined
    }
  }

  /** Figures of the process; `NumGC` and `TotalAlloc` cover only the time in debug mode. */
  vars(): RuntimeVars {
    const cmdline = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
    return { cmdline, memstats: this.#allocations.figures() }
  }
}

function pprof(profile: StackProfile, text: (profile: StackProfile) => string): Recording {
  return {
    contentType: 'application/octet-stream',
    extension: 'pb.gz',
    encode: () => stackProfileToPprof(profile),
    text: () => text(profile),
  }
}
