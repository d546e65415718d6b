// Graphics processors, wired to the pipeline.

import type { Degradation } from '../api/types.ts'
import type { Config } from '../config/index.ts'
import type { ProcessTable } from '../entities/process-table.ts'
import { GpuSource } from '../gpu/gpu-source.ts'
import { loadNative, Unsupported } from '../kernel/native.ts'
import { build } from '../lib/build.ts'
import type { Change } from '../lib/change.ts'
import type { Logger } from '../lib/logger.ts'
import type { Scope } from '../model/resource.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import type { HostEntity } from './host-resource.ts'

export interface GpuOptions {
  readonly config: Config
  readonly pipeline: Pick<Pipeline, 'intake'>
  readonly processes: ProcessTable
  readonly host: HostEntity
  readonly log: Logger
}

/** Measures GPUs while the configuration wants it to. */
export class Gpu {
  private readonly options: GpuOptions
  private readonly scope: Scope = { name: 'svc/gpu', version: build().version }
  private config: Config
  private running: GpuSource | undefined

  constructor(options: GpuOptions) {
    this.options = options
    this.config = options.config
    this.start()
  }

  /** Undefined: switched off. */
  get source(): GpuSource | undefined {
    return this.running
  }

  /** Where there is no GPU nothing is wrong. */
  get faults(): readonly Degradation[] {
    const { state } = this.running ?? {}
    if (state === undefined || state.hint === '') return []
    return [{ subsystem: 'gpu', reason: state.reason, hint: state.hint }]
  }

  prepare(config: Config): Change {
    return {
      commit: () => {
        this.stop()
        this.config = config
        this.start()
      },
      abort: () => undefined,
    }
  }

  stop(): void {
    this.running?.stop()
    this.running = undefined
  }

  private start(): void {
    const { mode, agent } = this.config
    if (mode !== 'agent' || !agent.gpu.enabled || !agent.gpu.nvidia) return
    const native = loadNative()
    if (native instanceof Unsupported) return
    const { pipeline, processes, host, log } = this.options
    const metrics = pipeline.intake('metrics', 'gpu')
    this.running = new GpuSource({
      native,
      intervalMs: agent.gpu.interval,
      perProcess: agent.gpu.per_process,
      emitHost: metric => metrics.add(host.resource, this.scope, metric),
      emitProcess: (pid, metric) => {
        // One that has ended meanwhile, or whose number is of another namespace, is nobody's series.
        const resource = processes.running(pid)
        if (resource !== undefined) metrics.add(resource, this.scope, metric)
      },
      warn: (reason, hint) => {
        const isPart = this.running?.state.on === true
        log.warn(isPart ? 'some GPUs are not monitored' : 'GPUs are not monitored', { reason, hint })
      },
    })
    this.running.start()
  }
}
