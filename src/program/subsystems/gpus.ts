// Graphics processors, wired to the pipeline.

import type { Config } from '../../config/index.ts'
import { build } from '../../foundation/lib/build.ts'
import { type Change, change } from '../../foundation/lib/change.ts'
import type { Logger } from '../../foundation/lib/logger.ts'
import type { Scope } from '../../foundation/model/resource.ts'
import type { ProcessTable } from '../../identity/entities/process-table.ts'
import { loadNative, Unsupported } from '../../kernel/native.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import { GpuSource } from '../../signals/metrics/gpu/gpu-source.ts'
import { count, flag, list, named, type Of, object, text } from '../../view/api/schema.ts'
import type { HostEntity } from '../agent/host-resource.ts'
import { type Off, off, offByMode } from '../agent/off.ts'
import { value } from '../agent/self-metrics.ts'
import { type Fault, fact, type Subsystem } from '../agent/subsystem.ts'
import { discovery } from './discovery.ts'
import { exporting } from './exporting.ts'
import { processes } from './processes.ts'

export interface GpuOptions {
  readonly config: Config
  readonly pipeline: Pick<Pipeline, 'intake'>
  readonly processes: ProcessTable
  readonly host: HostEntity
  readonly log: Logger
}

/** Measures GPUs while the configuration enables it. */
export class Gpu {
  /** Undefined if disabled. */
  source: GpuSource | undefined
  /** What svc itself lacks for it; '' for nothing. */
  lacks = ''
  readonly #options: GpuOptions
  readonly #scope: Scope = { name: 'svc/gpu', version: build().version }

  constructor(options: GpuOptions) {
    this.#options = options
    this.#start(options.config)
  }

  /** A host without GPUs has no fault. */
  get faults(): readonly Fault[] {
    const { reason, hint } = this.source?.state ?? { reason: '', hint: '' }
    return hint === '' ? [] : [{ subsystem: 'gpu', reason, hint }]
  }

  prepare(config: Config): Change {
    return change(() => {
      this.stop()
      this.#start(config)
    })
  }

  stop(): void {
    this.source?.stop()
    this.source = undefined
    this.lacks = ''
  }

  #start(config: Config): void {
    if (whyOff(config) !== undefined) return
    const { agent } = config
    const native = loadNative()
    if (native instanceof Unsupported) {
      this.lacks = native.reason
      return
    }
    const { pipeline, processes: table, host, log } = this.#options
    const metrics = pipeline.intake('metrics', 'gpu')
    this.source = new GpuSource({
      native,
      intervalMs: agent.gpu.interval,
      perProcess: agent.gpu.per_process,
      emitHost: metric => metrics.add(host.resource, this.#scope, metric),
      emitProcess: (pid, metric) => {
        // A process that has ended, or whose PID is of another namespace, has no series.
        const resource = table.running(pid)
        if (resource !== undefined) metrics.add(resource, this.#scope, metric)
      },
      warn: (reason, hint) => {
        const isPart = this.source?.state.on === true
        log.warn(isPart ? 'some GPUs are not monitored' : 'GPUs are not monitored', { reason, hint })
      },
    })
    this.source.start()
  }
}

/** Why GPUs are off; undefined if enabled. */
function whyOff(config: Config): Off | undefined {
  const { enabled, nvidia } = config.agent.gpu
  if (enabled && nvidia) return offByMode(config)
  return offByMode(config) ?? off(enabled ? 'agent.gpu.nvidia' : 'agent.gpu.enabled')
}

const document = named(
  'Gpu',
  object('GPUs.', {
    enabled: flag('GPUs are measured.'),
    reason: text(
      'Why GPUs, or some of them, are not measured; empty if all are, and if GPU metrics are disabled.',
    ),
    driver: text('Driver version.'),
    devices: list(
      'Devices.',
      object('A device.', {
        index: count('Device number.'),
        uuid: text('`hw.id`.'),
        name: text('Model.'),
        reason: text('Why it is not measured; empty if it is.'),
      }),
    ),
  }),
)

/** Most hosts have none, which is no fault. */
export const gpus: Subsystem<Gpu> = {
  name: 'GPUs',
  keys: ['agent.gpu'],
  banner: 'working',
  source: { id: 'gpus', name: 'GPUs', signal: 'metrics', hidden: ['ok'] },
  create: agent =>
    new Gpu({
      config: agent.config,
      pipeline: agent.of(exporting).pipeline,
      processes: agent.of(processes).processes,
      host: agent.of(discovery).host,
      log: agent.options.log,
    }),
  stop: own => own.stop(),
  prepare: (own, config) => own.prepare(config),
  state: ({ source, lacks, faults }, config) => {
    const isOff = whyOff(config)
    if (isOff !== undefined) return isOff
    const { on, reason, devices } = source?.state ?? { on: false, reason: lacks, devices: [] }
    if (!on) return { state: 'none', detail: reason || 'not detected yet', faults }
    return {
      state: 'ok',
      detail: `${devices.length} measured: ${devices.map(({ name }) => name).join(', ')}`,
      faults,
      measures: () => [fact('GPUs', devices.length)],
    }
  },
  pages: [
    {
      path: '/status/gpu',
      id: 'getGpu',
      summary: 'GPUs.',
      schema: document,
      access: 'private',
      read: documentOf,
    },
  ],
  metrics: {
    gpu_devices: value('Measured GPUs.', ({ source }) =>
      source?.state.on ? source.state.devices.filter(({ reason }) => reason === '').length : 0,
    ),
  },
}

function documentOf({ source, lacks }: Gpu): Of<typeof document> {
  const { on = false, reason = lacks, driver = '', devices = [] } = source?.state ?? {}
  return {
    enabled: on,
    reason,
    driver,
    devices: devices.map(each => ({
      index: each.index,
      uuid: each.uuid,
      name: each.name,
      reason: each.reason,
    })),
  }
}
