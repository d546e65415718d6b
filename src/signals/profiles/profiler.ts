import { errorText } from '../../foundation/lib/logger.ts'
import { every, type Ticks } from '../../foundation/lib/shared-ticks.ts'
import { Turn } from '../../foundation/lib/turn.ts'
import type { Frame, Profile, SpanLink } from '../../foundation/model/profile.ts'
import type { RawStack, SampleKind, StackCount, StackSink } from '../../foundation/model/raw-stack.ts'
import type { Resource } from '../../foundation/model/resource.ts'
import { FrameStore } from './frame-store.ts'
import { MappedFiles } from './mapped-files.ts'
import type { Answer, KernelStack, SymbolSettings, WorkerState } from './messages.ts'
import { SampleSet } from './sample-set.ts'
import type { Sampler, Sampling } from './sampler.ts'
import { type StackGroup, type StackTotal, StackTotals } from './stack-totals.ts'
import { UnwindArena } from './unwind-arena.ts'
import { WorkerThread } from './worker-thread.ts'

export interface ProfilerSettings extends Sampling {
  /** Duration of one profile. */
  readonly intervalMs: number
  readonly symbols: SymbolSettings
}

export interface ProfilerOptions {
  readonly settings: ProfilerSettings
  /** Loads the kernel side. Throws if the kernel rejects it. */
  readonly open: (sampling: Sampling, sink: StackSink) => Sampler
  /** Resource of a process; `kernel`: a kernel thread. Undefined: not reported. */
  readonly group: (pid: number, comm: string, kernel: boolean) => Resource | undefined
  readonly emit: (resource: Resource, profile: Profile) => void
  /** Span of a request that a thread served; undefined if there is none. */
  readonly linkOf: (request: number) => SpanLink | undefined
  readonly warn: (message: string, reason: string) => void
}

/** A recording on demand. */
export interface Recording {
  /** Whether samples of this process belong to it. */
  readonly matches: (pid: number, group: Resource) => boolean
  readonly kind: SampleKind
}

export interface Recorded {
  readonly group: Resource
  readonly pids: readonly number[]
  readonly profile: Profile
}

const drainMs = 500
/** The kernel side has room for 16,384 counts. */
const gatherMs = 1_000
/** Delay of the first profile: short, for users who just started svc. */
const firstMs = 3_000
/** Maximum wait for names before a profile is made without them. */
const namesMs = 30_000
/** The same at shutdown, which must be quick. */
const lastNamesMs = 3_000
/** Interval at which all stacks are named again: files may have been unreadable, or code compiled since. */
const renewMs = 3_600_000

/**
 * Profiles the whole host: passes files reported by the kernel side to a thread that builds their tables, stores the
 * stacks named there, and makes a profile per process group at the end of each interval.
 */
export class Profiler {
  readonly arena: UnwindArena
  /** State at the end of the last interval. */
  state: WorkerState | undefined
  readonly #options: ProfilerOptions
  readonly #sampler: Sampler
  readonly worker: WorkerThread
  readonly frames = new FrameStore()
  readonly files: MappedFiles
  readonly #totals = new StackTotals()
  readonly #recordings = new Map<Recording, StackTotals>()
  readonly #recorders = new Set<Promise<unknown>>()
  /** Ends all recordings. */
  readonly #ending = new AbortController()
  readonly #marks = new Map<number, () => void>()
  #settings: ProfilerSettings
  #boosts: readonly Sampling[] = []
  readonly #drains: Ticks
  #intervalTimer: NodeJS.Timeout
  readonly #firstTimer: NodeJS.Timeout
  #userStacks: RawStack[] = []
  #kernelStacks: KernelStack[] = []
  #epoch = 0
  #nextMark = 1
  #gatheredMs = performance.now()
  #startedMs = performance.now()
  #renewedMs = performance.now()
  /** Current emission; the next ones wait for it. */
  #emission: Promise<void> = Promise.resolve()
  #emissions = 0
  /** Recordings that still need reported stacks. */
  #readers = 0
  /** Stacks were not sent to the worker and must be reported again. */
  #left = false
  #fault: string | undefined
  #failure = ''
  #closing: Promise<void> | undefined
  #closed = false

  constructor(options: ProfilerOptions) {
    const { settings } = options
    this.#options = options
    this.#settings = settings
    this.worker = new WorkerThread({
      settings: settings.symbols,
      answer: answer => this.#take(answer),
      ended: reason => this.#pause(reason),
      begun: () => this.#begin(),
    })
    try {
      this.#sampler = options.open(settings, {
        userStack: stack => this.#userStacks.push(stack),
        kernelStack: (hash, addresses) => this.#kernelStacks.push({ hash, addresses }),
        unknownFile: file => this.files.addUnknown(file),
        unknownRuntime: runtime => this.worker.send({ kind: 'runtime', runtime }),
      })
    } catch (error) {
      void this.worker.close()
      throw error
    }
    this.arena = new UnwindArena(this.#sampler.tables)
    this.files = new MappedFiles({
      sampler: this.#sampler,
      arena: this.arena,
      read: (file, fd) => this.worker.sendFile(file, fd),
      forget: id => this.worker.send({ kind: 'forget', id }),
    })
    this.files.addVdso()
    this.#drains = every(drainMs, () => {
      this.worker.watch()
      this.#guard(() => {
        if (performance.now() - this.#gatheredMs > gatherMs) this.#gather()
        else this.#drain()
      })
    })
    this.#intervalTimer = this.#intervals()
    this.#firstTimer = setTimeout(() => void this.emit(), Math.min(firstMs, settings.intervalMs))
    this.#firstTimer.unref()
  }

  /** Samples per second and CPU, including recordings. */
  get rate(): number {
    return this.#sampling().sampleRate
  }

  /** Counts for profiles and recordings. */
  get counts(): readonly StackTotals[] {
    return [this.#totals, ...this.#recordings.values()]
  }

  get stacks(): number {
    return this.frames.stacks
  }

  /** Number of restarts of the symbol thread. */
  get failures(): number {
    return this.worker.failures
  }

  /** Current fault; undefined if there is none. */
  get degraded(): string | undefined {
    return this.#fault ?? this.worker.stuck
  }

  /** Applies settings that can change at run time. `degraded` shows what the kernel rejects. */
  configure(settings: ProfilerSettings): void {
    if (this.#closed) return
    const { intervalMs } = this.#settings
    this.#guard(() => this.#gather())
    this.#settings = settings
    this.#apply()
    this.worker.configure(settings.symbols)
    if (settings.intervalMs === intervalMs) return
    clearInterval(this.#intervalTimer)
    this.#intervalTimer = this.#intervals()
  }

  /** Records one profile per sampled group for `ms`, or until aborted or closed. Throws if the kernel rejects it. */
  async record(
    recording: Recording,
    sampling: Sampling,
    ms: number,
    signal: AbortSignal,
  ): Promise<Recorded[]> {
    const recorded = this.#recorded(recording, sampling, ms, signal)
    const settled = recorded.catch(() => undefined)
    this.#recorders.add(settled)
    try {
      return await recorded
    } finally {
      this.#recorders.delete(settled)
    }
  }

  async #recorded(
    recording: Recording,
    sampling: Sampling,
    ms: number,
    signal: AbortSignal,
  ): Promise<Recorded[]> {
    if (signal.aborted || this.#ending.signal.aborted) return []
    this.#gather()
    const totals = new StackTotals()
    const begunMs = performance.now()
    this.#boosts = [...this.#boosts, sampling]
    this.#readers++
    try {
      try {
        this.#sampler.apply(this.#sampling())
        this.#recordings.set(recording, totals)
        await wait(ms, AbortSignal.any([signal, this.#ending.signal]))
        this.#gather()
      } finally {
        this.#recordings.delete(recording)
        this.#boosts = this.#boosts.filter(each => each !== sampling)
        this.#apply()
      }
      const durationMs = performance.now() - begunMs
      const startUs = (Date.now() - (performance.now() - begunMs)) * 1000
      await this.#named()
      const recorded: Recorded[] = []
      for (const each of totals.groups()) {
        const profile = await this.#profile(each, startUs, durationMs * 1000, false)
        recorded.push({ group: each.group, pids: [...each.pids], profile })
      }
      return recorded
    } finally {
      this.#readers--
    }
  }

  /** Makes profiles of the samples since the last ones. Waits for an emission in progress. Does not throw. */
  emit(): Promise<void> {
    // The waiting emission includes all samples up to its start.
    if (this.#emissions > 1) return this.#emission
    this.#emissions++
    this.#emission = this.#emission
      .then(() => this.#emitNow())
      .catch(error => this.#failed(error))
      .finally(() => this.#emissions--)
    return this.#emission
  }

  async #emitNow(): Promise<void> {
    if (this.#closed) return
    this.#gather()
    const endMs = performance.now()
    const durationMs = endMs - this.#startedMs
    const startUs = (Date.now() - durationMs) * 1000
    this.#startedMs = endMs
    const totals = this.#totals.take()
    await this.#named()
    for (const group of totals.groups())
      this.#options.emit(group.group, await this.#profile(group, startUs, durationMs * 1000, true))
    if (this.#readers === 0) this.frames.forget()
    this.files.age()
    this.#renew()
  }

  /** Clears the stacks if there are too many, or if their names are old. */
  #renew(): void {
    const isOld = performance.now() - this.#renewedMs > renewMs
    if (this.frames.overfull || ((this.frames.full || isOld) && this.#readers === 0)) this.#clear()
  }

  /** Ends recordings, makes the last profiles, and unloads. */
  close(): Promise<void> {
    this.#closing ??= this.#closeNow()
    return this.#closing
  }

  async #closeNow(): Promise<void> {
    clearInterval(this.#intervalTimer)
    clearTimeout(this.#firstTimer)
    this.#ending.abort()
    const hurry = setTimeout(() => this.#unmark(), lastNamesMs)
    try {
      await Promise.all([this.emit(), ...this.#recorders])
    } finally {
      clearTimeout(hurry)
      this.#drains.stop()
      this.#closed = true
      this.#sampler.close()
      await this.worker.close()
    }
  }

  #intervals(): NodeJS.Timeout {
    const timer = setInterval(() => void this.emit(), this.#settings.intervalMs)
    return timer.unref()
  }

  /** Runs work whose result has no consumer. */
  #guard(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Logs a failure once, until a different one occurs. */
  #failed(error: unknown): void {
    const reason = errorText(error)
    if (reason === this.#failure) return
    this.#failure = reason
    this.#options.warn('part of a profile was lost', reason)
  }

  #apply(): void {
    if (this.#closed) return
    try {
      this.#sampler.apply(this.#sampling())
      this.#fault = undefined
    } catch (error) {
      this.#fault = errorText(error)
      this.#options.warn('cannot sample everything as configured', this.#fault)
    }
  }

  /** Sampling during recordings: the union of all requests. */
  #sampling(): Sampling {
    return this.#boosts.reduce<Sampling>(
      (all, boost) => ({
        sampleRate: Math.max(all.sampleRate, boost.sampleRate),
        cpu: all.cpu || boost.cpu,
        memory: all.memory || boost.memory,
        offCpu: all.offCpu || boost.offCpu,
        includeKernel: all.includeKernel || boost.includeKernel,
      }),
      this.#settings,
    )
  }

  #drain(): void {
    if (this.#closed) return
    this.#sampler.drain()
    if (this.#left && !this.worker.busy && !this.frames.overfull) {
      this.#sampler.forgetStacks()
      this.#left = false
    }
    if (this.#userStacks.length + this.#kernelStacks.length === 0) return
    // Unsent stacks are reported again later: the worker may be blocked, and memory is limited.
    if (this.worker.overloaded || this.frames.overfull) this.#left = true
    else this.worker.send({ kind: 'stacks', user: this.#userStacks, kernel: this.#kernelStacks })
    this.#userStacks = []
    this.#kernelStacks = []
  }

  /** Reads the counts of the kernel side. */
  #gather(): void {
    if (this.#closed) return
    this.#gatheredMs = performance.now()
    this.#drain()
    this.#sampler.collect(count => this.#count(count))
  }

  #count(count: StackCount): void {
    const group = this.#options.group(count.pid, count.comm, count.userHash === 0)
    if (group === undefined) return
    if (this.#wants(count.kind)) this.#totals.add(group, count)
    for (const [{ matches: wanted, kind }, totals] of this.#recordings)
      if (kind === count.kind && wanted(count.pid, group)) totals.add(group, count)
  }

  /** Whether a kind is sampled without recordings. */
  #wants(kind: SampleKind): boolean {
    const { cpu, memory, offCpu } = this.#settings
    return kind === 'cpu' ? cpu : kind === 'memory' ? memory : offCpu
  }

  /** Waits until all reported stacks have names. */
  #named(): Promise<void> {
    const mark = this.#nextMark++
    if (!this.worker.send({ kind: 'mark', mark })) return Promise.resolve()
    return new Promise(resolve => {
      const done = () => {
        clearTimeout(timer)
        this.#marks.delete(mark)
        resolve()
      }
      const timer = setTimeout(done, this.#closing === undefined ? namesMs : lastNamesMs)
      this.#marks.set(mark, done)
    })
  }

  /** `counted`: `cpu` values are numbers of samples, of which readers know the mean period; otherwise nanoseconds. */
  async #profile(
    { kind, stacks }: StackGroup,
    startUs: number,
    durationUs: number,
    counted: boolean,
  ): Promise<Profile> {
    const turn = new Turn(1)
    const samples = new SampleSet()
    const inSamples = counted && kind === 'cpu'
    let count = 0
    let value = 0
    for (const total of stacks.values()) {
      if (turn.isOver) await turn.next()
      count += total.count
      value += total.value
      const link = total.request === 0 ? undefined : this.#options.linkOf(total.request)
      samples.add(this.#framesOf(total), total.comm, link, inSamples ? total.count : total.value)
    }
    return {
      kind,
      unit: kind === 'memory' ? 'bytes' : inSamples ? 'count' : 'nanoseconds',
      startUs: Math.round(startUs),
      durationUs: Math.round(durationUs),
      ...(kind === 'off_cpu' || count === 0 ? {} : { period: Math.round(value / count) }),
      samples: samples.list(),
    }
  }

  /** Leaf first: kernel frames, then frames of the program. */
  #framesOf({ userHash, kernelHash }: StackTotal): Frame[] {
    const { frames } = this
    const found: Frame[] = []
    if (kernelHash !== 0) found.push(...frames.kernelStack(kernelHash))
    if (userHash !== 0) found.push(...frames.userStack(userHash))
    return found
  }

  #take(answer: Answer): void {
    if (!this.#closed) this.#guard(() => this.#takeAnswer(answer))
  }

  #takeAnswer(answer: Answer): void {
    switch (answer.kind) {
      case 'table':
        this.files.publish(answer.id, answer.table, answer.runtime)
        break
      case 'runtime':
        this.#sampler.setRuntime(answer.pid, answer.settings)
        break
      case 'stacks':
        this.frames.add(answer)
        break
      case 'replaced':
        for (const id of answer.ids) this.files.replaced(id)
        break
      case 'mark':
        this.state = answer.state
        this.#marks.get(answer.mark)?.()
    }
  }

  /** Frame numbers start again, and all stacks are reported again. */
  #clear(): void {
    this.#epoch++
    this.#renewedMs = performance.now()
    this.#left = false
    this.frames.clear(this.#epoch)
    this.worker.send({ kind: 'clear', epoch: this.#epoch })
    this.#sampler.forgetStacks()
  }

  #pause(reason: string): void {
    this.#options.warn('symbol thread stopped; restarting it', reason)
    this.#unmark()
  }

  #unmark(): void {
    for (const done of [...this.#marks.values()]) done()
  }

  /** A new symbol thread starts without any state. */
  #begin(): void {
    this.#guard(() => {
      this.files.clear()
      this.files.addVdso()
      this.#sampler.forgetRuntimes()
      this.#clear()
    })
  }
}

function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done, { once: true })
  })
}
