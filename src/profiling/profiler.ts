import type { Frame, Profile, SpanLink } from '../model/profile.ts'
import type { RawStack, SampleKind, StackCount, StackSink } from '../model/raw-stack.ts'
import type { Resource } from '../model/resource.ts'
import { FrameStore } from './frame-store.ts'
import { MappedFiles } from './mapped-files.ts'
import type { Answer, KernelStack, SymbolSettings, WorkerState } from './messages.ts'
import { SampleSet } from './sample-set.ts'
import type { Sampler, Sampling } from './sampler.ts'
import { type StackGroup, type StackTotal, StackTotals } from './stack-totals.ts'
import { UnwindArena } from './unwind-arena.ts'
import { WorkerThread } from './worker-thread.ts'

export interface ProfilerSettings extends Sampling {
  /** Length of one profile. */
  readonly intervalMs: number
  readonly symbols: SymbolSettings
}

export interface ProfilerOptions {
  readonly settings: ProfilerSettings
  /** Loads the kernel side. Throws where the kernel refuses. */
  readonly open: (sampling: Sampling, sink: StackSink) => Sampler
  /** Who it was; `kernel`: one of the kernel's own threads. Undefined: nothing is to be told of it. */
  readonly group: (pid: number, comm: string, kernel: boolean) => Resource | undefined
  readonly emit: (resource: Resource, profile: Profile) => void
  /** The span of a request that a thread served; undefined: none was made. */
  readonly linkOf: (request: number) => SpanLink | undefined
  readonly warn: (message: string, reason: string) => void
}

/** A recording that somebody asked for. */
export interface Recording {
  /** Whether samples of this process belong to it. */
  readonly wanted: (pid: number, group: Resource) => boolean
  readonly kind: SampleKind
}

export interface Recorded {
  readonly group: Resource
  readonly pids: readonly number[]
  readonly profile: Profile
}

const drainMs = 500
/** The kernel side has room for 16,384 counts. */
const gatherMs = 5_000
/** How long names are waited for before a profile is made without them. */
const namesMs = 30_000

/**
 * Takes profiles of the whole host: hands files that the kernel side meets to a thread that makes their tables, keeps
 * what stacks are named there, and makes a profile of each group of processes at the end of each interval.
 */
export class Profiler {
  readonly arena: UnwindArena
  /** As of the last interval. */
  state: WorkerState | undefined
  private readonly options: ProfilerOptions
  private readonly sampler: Sampler
  private readonly worker: WorkerThread
  private readonly frames = new FrameStore()
  readonly files: MappedFiles
  private readonly totals = new StackTotals()
  private readonly recordings = new Map<Recording, StackTotals>()
  private readonly marks = new Map<number, () => void>()
  private settings: ProfilerSettings
  private boosts: readonly Sampling[] = []
  private drainTimer: NodeJS.Timeout
  private intervalTimer: NodeJS.Timeout
  private userStacks: RawStack[] = []
  private kernelStacks: KernelStack[] = []
  private epoch = 0
  private nextMark = 1
  private gatheredMs = performance.now()
  private startedUs = Date.now() * 1000
  private closed = false

  constructor(options: ProfilerOptions) {
    const { settings } = options
    this.options = options
    this.settings = settings
    this.worker = new WorkerThread({
      settings: settings.symbols,
      answer: answer => this.take(answer),
      ended: reason => this.pause(reason),
      begun: () => this.begin(),
    })
    try {
      this.sampler = options.open(settings, {
        userStack: stack => this.userStacks.push(stack),
        kernelStack: (hash, addresses) => this.kernelStacks.push({ hash, addresses }),
        unknownFile: file => this.files.meet(file),
        unknownRuntime: runtime => this.worker.send({ kind: 'runtime', runtime }),
      })
    } catch (error) {
      void this.worker.close()
      throw error
    }
    this.arena = new UnwindArena(this.sampler.tables)
    this.files = new MappedFiles({
      sampler: this.sampler,
      arena: this.arena,
      read: (file, fd) => this.worker.sendFile(file, fd),
      forget: id => this.worker.send({ kind: 'forget', id }),
    })
    this.files.meetVdso()
    this.drainTimer = setInterval(() => {
      if (performance.now() - this.gatheredMs > gatherMs) this.gather()
      else this.drain()
    }, drainMs)
    this.intervalTimer = this.intervals()
    this.drainTimer.unref()
  }

  /** Samples a second and CPU, recordings included. */
  get rate(): number {
    return this.sampling().sampleRate
  }

  /** Stacks that are remembered. */
  get stacks(): number {
    return this.frames.stacks
  }

  /** How often the thread that names frames had to be started again. */
  get failures(): number {
    return this.worker.failures
  }

  /** Applies what can be changed while it runs. */
  configure(settings: ProfilerSettings): void {
    const { intervalMs } = this.settings
    this.settings = settings
    this.sampler.apply(this.sampling())
    this.worker.configure(settings.symbols)
    if (settings.intervalMs === intervalMs) return
    clearInterval(this.intervalTimer)
    this.intervalTimer = this.intervals()
  }

  /** Records for so long, or until it is aborted: a profile of each group that had samples. */
  async record(
    recording: Recording,
    sampling: Sampling,
    ms: number,
    signal: AbortSignal,
  ): Promise<Recorded[]> {
    this.gather()
    const totals = new StackTotals()
    const startUs = Date.now() * 1000
    this.boosts = [...this.boosts, sampling]
    this.sampler.apply(this.sampling())
    this.recordings.set(recording, totals)
    try {
      await wait(ms, signal)
      this.gather()
    } finally {
      this.recordings.delete(recording)
      this.boosts = this.boosts.filter(each => each !== sampling)
      if (!this.closed) this.sampler.apply(this.sampling())
    }
    await this.named()
    const durationUs = Date.now() * 1000 - startUs
    return totals.groups().map(each => ({
      group: each.group,
      pids: [...each.pids],
      profile: this.profile(each, startUs, durationUs, false),
    }))
  }

  /** Makes profiles of what was sampled since the last ones. */
  async emit(): Promise<void> {
    this.gather()
    const startUs = this.startedUs
    const endUs = Date.now() * 1000
    this.startedUs = endUs
    const totals = this.totals.take()
    await this.named()
    for (const group of totals.groups())
      this.options.emit(group.group, this.profile(group, startUs, endUs - startUs, true))
    this.arena.age()
    if (this.frames.full) this.clear()
  }

  /** Makes the last profiles, and unloads. */
  async close(): Promise<void> {
    if (this.closed) return
    clearInterval(this.drainTimer)
    clearInterval(this.intervalTimer)
    await this.emit()
    this.closed = true
    this.sampler.close()
    await this.worker.close()
  }

  private intervals(): NodeJS.Timeout {
    const timer = setInterval(() => void this.emit(), this.settings.intervalMs)
    return timer.unref()
  }

  /** What is sampled while there are recordings: all that each of them asks for. */
  private sampling(): Sampling {
    return this.boosts.reduce<Sampling>(
      (all, boost) => ({
        sampleRate: Math.max(all.sampleRate, boost.sampleRate),
        cpu: all.cpu || boost.cpu,
        memory: all.memory || boost.memory,
        offCpu: all.offCpu || boost.offCpu,
        includeKernel: all.includeKernel || boost.includeKernel,
      }),
      this.settings,
    )
  }

  private drain(): void {
    if (this.closed) return
    this.sampler.drain()
    if (this.userStacks.length + this.kernelStacks.length === 0) return
    this.worker.send({ kind: 'stacks', user: this.userStacks, kernel: this.kernelStacks })
    this.userStacks = []
    this.kernelStacks = []
  }

  /** Takes over what the kernel side counted. */
  private gather(): void {
    if (this.closed) return
    this.gatheredMs = performance.now()
    this.drain()
    this.sampler.collect(count => this.count(count))
  }

  private count(count: StackCount): void {
    const group = this.options.group(count.pid, count.comm, count.userHash === 0)
    if (group === undefined) return
    if (this.wants(count.kind)) this.totals.add(group, count)
    for (const [{ wanted, kind }, totals] of this.recordings)
      if (kind === count.kind && wanted(count.pid, group)) totals.add(group, count)
  }

  /** Whether a kind is taken without anybody asking for it. */
  private wants(kind: SampleKind): boolean {
    const { cpu, memory, offCpu } = this.settings
    return kind === 'cpu' ? cpu : kind === 'memory' ? memory : offCpu
  }

  /** Waits until all stacks that were told have names. */
  private named(): Promise<void> {
    const mark = this.nextMark++
    if (!this.worker.send({ kind: 'mark', mark })) return Promise.resolve()
    return new Promise(resolve => {
      const done = () => {
        clearTimeout(timer)
        this.marks.delete(mark)
        resolve()
      }
      const timer = setTimeout(done, namesMs)
      this.marks.set(mark, done)
    })
  }

  /** `counted`: values of `cpu` are samples, of which readers make time by the mean period; else nanoseconds. */
  private profile(
    { kind, stacks }: StackGroup,
    startUs: number,
    durationUs: number,
    counted: boolean,
  ): Profile {
    const samples = new SampleSet()
    const inSamples = counted && kind === 'cpu'
    let count = 0
    let value = 0
    for (const total of stacks.values()) {
      count += total.count
      value += total.value
      const link = total.request === 0 ? undefined : this.options.linkOf(total.request)
      samples.add(this.framesOf(total), total.comm, link, inSamples ? total.count : total.value)
    }
    return {
      kind,
      unit: kind === 'memory' ? 'bytes' : inSamples ? 'count' : 'nanoseconds',
      startUs,
      durationUs,
      ...(kind === 'off_cpu' || count === 0 ? {} : { period: Math.round(value / count) }),
      samples: samples.list(),
    }
  }

  /** Leaf first: those of the kernel, then those of the program. */
  private framesOf({ userHash, kernelHash }: StackTotal): Frame[] {
    const { frames } = this
    const found: Frame[] = []
    if (kernelHash !== 0) found.push(...frames.kernelStack(kernelHash))
    if (userHash !== 0) found.push(...frames.userStack(userHash))
    return found
  }

  private take(answer: Answer): void {
    if (this.closed) return
    switch (answer.kind) {
      case 'table':
        this.files.publish(answer.id, answer.table, answer.runtime)
        break
      case 'runtime':
        this.sampler.setRuntime(answer.pid, answer.settings)
        break
      case 'stacks':
        if (answer.epoch === this.epoch) this.frames.add(answer)
        break
      case 'mark':
        this.state = answer.state
        this.marks.get(answer.mark)?.()
    }
  }

  /** Frames are numbered anew, and all stacks told again. */
  private clear(): void {
    this.epoch++
    this.frames.clear()
    this.worker.send({ kind: 'clear', epoch: this.epoch })
    this.sampler.forgetStacks()
  }

  /** The thread that names frames has ended. */
  private pause(reason: string): void {
    this.options.warn('the thread that names frames ended and is started again', reason)
    for (const done of [...this.marks.values()]) done()
  }

  /** Another one begins, which learns all anew. */
  private begin(): void {
    this.epoch = 0
    this.frames.clear()
    this.files.clear()
    this.files.meetVdso()
    this.sampler.forgetRuntimes()
    this.sampler.forgetStacks()
  }
}

function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done, { once: true })
  })
}
