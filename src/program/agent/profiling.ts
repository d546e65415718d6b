// Profiles of the host, wired to the pipeline and to interactive requests.

import { existsSync } from 'node:fs'
import type { Config } from '../../config/index.ts'
import { build } from '../../foundation/lib/build.ts'
import { type Change, change } from '../../foundation/lib/change.ts'
import type { CpuLever } from '../../foundation/lib/cpu-governor.ts'
import { CpuSteps } from '../../foundation/lib/cpu-steps.ts'
import { errorText, type Logger } from '../../foundation/lib/logger.ts'
import { fitted } from '../../foundation/lib/memory-room.ts'
import type { SpanLink } from '../../foundation/model/profile.ts'
import type { Resource, Scope } from '../../foundation/model/resource.ts'
import type { ProfileRefusal, ProfileRequest, TakenProfile } from '../../foundation/model/taken-profile.ts'
import { ProcessGroups } from '../../identity/entities/process-groups.ts'
import type { ProcessTable } from '../../identity/entities/process-table.ts'
import { loadNative, type MapHandle, Unsupported } from '../../kernel/native.ts'
import { ownPids } from '../../kernel/needs.ts'
import { hostPid } from '../../kernel/needs-processes.ts'
import { type NotLoaded, whyNotLoaded } from '../../kernel/why-not-loaded.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import { StackSampler } from '../../signals/capture/stack-sampler.ts'
import { Profiler, type ProfilerSettings } from '../../signals/profiles/profiler.ts'
import { tableDirectory } from '../../signals/profiles/unwind-cache.ts'
import type { Degradation } from '../../view/api/types.ts'
import type { HostEntity } from './host-resource.ts'
import { failureOf, profiles, whyOff } from './kernel-parts.ts'

export interface ProfilingOptions {
  readonly config: Config
  readonly pipeline: Pick<Pipeline, 'intake'>
  /** Its own table, because it includes processes that are not traced. */
  readonly processes: ProcessTable
  readonly host: HostEntity
  readonly log: Logger
  /** Links threads to requests; undefined: unavailable. */
  readonly links: SampleLinks | undefined
}

export interface SampleLinks {
  /** Set in the kernel for each thread; undefined: unavailable. */
  readonly requests: MapHandle | undefined
  /** Enables or disables it. */
  linkSamples(on: boolean): void
  /** The span of a request that a thread worked on. */
  linkOf(request: number): SpanLink | undefined
}

interface Running {
  readonly profiler: Profiler
  readonly sampler: StackSampler
}

/** Samples per second and CPU during a requested recording. */
const recordingRate = 99
const mostRecordings = 2
const mostServices = 100
/** Factors of the sampling rate, by step of CPU reduction. */
const loweredParts = [1, 1 / 4, 0] as const

/** Runs while the configuration enables it. */
export class Profiling {
  readonly #options: ProfilingOptions
  /** Groups to which samples are attributed. */
  readonly groups: ProcessGroups
  #config: Config
  #running: Running | undefined
  #fault: NotLoaded | undefined
  #recordings = 0
  readonly #part = new CpuSteps(loweredParts, () => this.#running?.profiler.configure(this.#settings()))
  /** Completes when the previously stopped ones have ended. */
  #stopping: Promise<unknown> = Promise.resolve()

  constructor(options: ProfilingOptions) {
    const { config, processes, host } = options
    this.#options = options
    this.#config = config
    this.groups = new ProcessGroups(processes, host)
    this.#start()
  }

  /** Why enabled profiles do not run. */
  get failures(): readonly Degradation[] {
    return this.#fault === undefined ? [] : [failureOf(profiles, this.#fault)]
  }

  /** The same, and other degradations. */
  get faults(): readonly Degradation[] {
    const hint = `run svc doctor ${profiles.topic}`
    const { sampler, profiler } = this.#running ?? {}
    const reasons = [sampler?.degraded, profiler?.files.denied, profiler?.degraded]
    const limits = reasons.flatMap(reason =>
      reason === undefined ? [] : [{ subsystem: profiles.subsystem, reason, hint }],
    )
    return [...this.failures, ...limits]
  }

  /** The lever for CPU reduction. Requested recordings are not affected. */
  get lever(): CpuLever {
    const part = this.#part
    const effect = () => this.#lowered
    return {
      costMs: () => {
        const { profiler, sampler } = this.#running ?? {}
        return (profiler?.worker.cpuMs ?? 0) + (sampler?.busyMs ?? 0)
      },
      lower: () => this.#running !== undefined && part.lower(),
      raise: () => part.raise(),
      get effect() {
        return effect()
      },
    }
  }

  get #lowered(): string {
    if (!this.#part.isLowered) return ''
    if (this.#part.value === 0) return 'profiles only on request'
    const { sampleRate } = this.#settings()
    return `profiles at ${sampleRate} samples/s instead of ${this.#config.agent.profiling.sample_rate}`
  }

  #settings(): ProfilerSettings {
    const settings = settingsOf(this.#config)
    const part = this.#part.value
    if (part === 0) return { ...settings, cpu: false, memory: false, offCpu: false }
    return { ...settings, sampleRate: Math.max(1, Math.floor(settings.sampleRate * part)) }
  }

  get sampler(): StackSampler | undefined {
    return this.#running?.sampler
  }

  /** Counters of the kernel side by name; names that end in `_ns` are nanoseconds. Empty while off. */
  get counters(): Readonly<Record<string, number>> {
    if (this.#running === undefined) return {}
    const { samples, samplesNs, idleNs, ends, lost, ...others } = this.#running.sampler.counters()
    const counters: Record<string, number> = { samples_ns: samplesNs, idle_ns: idleNs }
    for (const [kind, total] of Object.entries(samples)) counters[`samples_${kind}`] = total
    for (const [end, total] of Object.entries(ends)) counters[`stacks_${end}`] = total
    for (const [kind, total] of Object.entries(lost)) counters[`lost_${kind}`] = total
    const { undecoded = {} } = this.profiler?.state ?? {}
    for (const [why, total] of Object.entries<number>(undecoded)) counters[`names_${why}`] = total
    counters.ring_full = others.ringFull
    counters.runtime_other_memory = others.otherMemory
    counters.runtime_other_thread = others.otherThread
    return counters
  }

  get profiler(): Profiler | undefined {
    return this.#running?.profiler
  }

  /** Applies a reload. */
  prepare(config: Config): Change {
    return change(() => {
      const before = this.#config
      this.#config = config
      const isOn = enabled(config)
      if (!isOn) {
        this.#fault = undefined
        void this.stop()
      } else if (this.#running === undefined) this.#start()
      else if (before.agent.profiling !== config.agent.profiling)
        this.#running?.profiler.configure(this.#settings())
    })
  }

  async take(request: ProfileRequest): Promise<TakenProfile | ProfileRefusal> {
    const running = this.#running
    if (running === undefined) return this.#refusal()
    if (this.#recordings >= mostRecordings)
      return {
        cause: 'busy',
        refused: `limit of ${mostRecordings} simultaneous profiles reached`,
        hint: 'try again when one is finished',
      }
    const { kind, seconds, pid, service, rate = recordingRate, signal } = request
    const wanted = (of: number, group: Resource) =>
      pid !== undefined ? of === pid : service === undefined || nameOf(group) === service
    if (pid !== undefined && !isRunning(pid))
      return {
        cause: 'no_target',
        refused: `process ${pid} not found`,
        hint: 'list running processes with ps',
      }
    const { sampler, profiler } = running
    const sampling = {
      ...settingsOf(this.#config),
      sampleRate: rate,
      cpu: kind === 'cpu',
      memory: kind === 'memory',
      offCpu: kind === 'off_cpu',
    }
    const before = sampler.counters()
    this.#recordings++
    const seen = new Set<string>()
    const note = (of: number, group: Resource) => {
      if (seen.size < mostServices) seen.add(nameOf(group))
      return wanted(of, group)
    }
    try {
      const recorded = await profiler.record({ kind, matches: note }, sampling, seconds * 1000, signal)
      signal.throwIfAborted()
      const after = sampler.counters()
      if (recorded.length === 0 && service !== undefined && !seen.has(service))
        return {
          cause: 'no_target',
          refused: `no process of service ${service} seen in ${seconds} s`,
          hint: 'use the name of a running service, or a process ID',
          services: [...seen].sort(),
        }
      return {
        groups: recorded.map(({ group, pids, profile }) => ({
          service: nameOf(group),
          executable: String(group.attributes.get('process.executable.path') ?? ''),
          pids,
          profile,
        })),
        busyNs: after.samplesNs - before.samplesNs,
        idleNs: after.idleNs - before.idleNs,
        lostSamples: after.lost[kind] - before.lost[kind],
      }
    } finally {
      this.#recordings--
    }
  }

  /** Emits the last profiles, and unloads. Idempotent. */
  stop(): Promise<void> {
    const running = this.#running
    const stopping = this.#stopping
    this.#running = undefined
    if (running !== undefined) this.#stopping = Promise.all([stopping, this.#end(running)])
    return this.#stopping.then(() => undefined)
  }

  async #end({ profiler }: Running): Promise<void> {
    try {
      await profiler.close()
    } catch (error) {
      this.#options.log.warn('profiler stopped with an error', { reason: errorText(error) })
    }
    // A reload may have restarted them since.
    if (this.#running === undefined) this.#options.links?.linkSamples(false)
  }

  #refusal(): ProfileRefusal {
    return {
      cause: 'off',
      refused:
        this.#fault === undefined
          ? 'profiles are disabled'
          : `profiler is not running: ${this.#fault.reason}`,
      hint: this.#fault === undefined ? 'set agent.profiling.enabled: true' : 'run svc doctor profiles',
    }
  }

  #start(): void {
    this.#fault = undefined
    if (!enabled(this.#config)) return
    try {
      this.#running = this.#open()
    } catch (error) {
      this.#fault = whyNotLoaded(error)
      this.#options.log.warn('cannot start the profiler', { reason: this.#fault.reason })
    }
  }

  #open(): Running {
    const { pipeline, processes, log, links } = this.#options
    const native = loadNative()
    if (native instanceof Unsupported) throw new Error(native.reason)
    const numbers = hostPid.try()
    if ('fault' in numbers && numbers.fault === 'own')
      throw new Error(`${ownPids.detail}: cannot open the files of processes`)
    const scope: Scope = { name: 'svc/profiler', version: build().version }
    const intake = pipeline.intake('profiles', ({ kind }) => kind)
    let sampler: StackSampler | undefined
    const profiler = new Profiler({
      settings: this.#settings(),
      open: (sampling, sink) => {
        const requests = links?.requests
        sampler = new StackSampler(
          native,
          requests === undefined ? sampling : { ...sampling, requests },
          sink,
        )
        return sampler
      },
      group: (pid, comm, kernel) => {
        if (kernel) return this.groups.kernel()
        return processes.selected(pid, comm) ? this.groups.of(pid, comm) : undefined
      },
      emit: (resource, profile) => intake.add(resource, scope, profile),
      linkOf: request => links?.linkOf(request),
      warn: (message, reason) => log.warn(message, { reason }),
    })
    links?.linkSamples(true)
    return { profiler, sampler: sampler! }
  }
}

function enabled(config: Config): boolean {
  return whyOff(profiles, config) === undefined
}

function nameOf(group: Resource): string {
  return String(group.attributes.get('service.name') ?? '')
}

function isRunning(pid: number): boolean {
  return existsSync(`/proc/${pid}`)
}

function settingsOf(config: Config): ProfilerSettings {
  const { profiling } = config.agent
  const { symbols } = profiling
  return {
    sampleRate: profiling.sample_rate,
    cpu: profiling.cpu,
    memory: profiling.memory,
    offCpu: profiling.off_cpu,
    includeKernel: profiling.include_kernel,
    intervalMs: profiling.interval,
    symbols: {
      demangle: symbols.demangle,
      perfMap: symbols.perf_map,
      debugDirs: symbols.debuginfo_dirs,
      cacheBytes: fitted(symbols.cache_size),
      cacheDir: tableDirectory(config.pipeline.export.queue.directory),
    },
  }
}
