import { existsSync } from 'node:fs'
import { uptime } from 'node:os'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { errorText } from '../../../foundation/lib/logger.ts'
import type { Metric } from '../../../foundation/model/metric.ts'
import type { Native, NvmlAnswer, NvmlHandle, PollHandle } from '../../../kernel/native.ts'
import { GpuReadings } from './gpu-readings.ts'
import { type Failure, nvmlFailure, nvmlHint } from './nvml-failure.ts'

export interface GpuSourceOptions {
  readonly native: Pick<Native, 'nvmlOpen' | 'nvmlAsk' | 'nvmlTake' | 'nvmlClose' | 'pollStart' | 'pollStop'>
  /** Path of the driver's library, unless it is a known one. */
  readonly library?: string
  /** Interval of measurements. */
  readonly intervalMs: number
  /** Whether processes are measured too. */
  readonly perProcess: boolean
  /** A metric of the host's GPUs, with the points of all of them. */
  readonly emitHost: (metric: Metric) => void
  readonly emitProcess: (pid: number, metric: Metric) => void
  /** Called once per reason. A missing driver is not a reason. */
  readonly warn: (reason: string, hint: string) => void
  /** Interval of attempts while the driver fails. */
  readonly retryMs?: number
  /** Maximum duration of an answer. */
  readonly deadlineMs?: number
}

/** A GPU by NVML's index. If it never answered, it has no name. */
export interface GpuDevice {
  readonly index: number
  readonly uuid: string
  readonly name: string
  /** Reason why it is not measured; '' if it is. */
  readonly reason: string
}

export interface GpuState {
  /** Whether GPUs are measured: all that answer. */
  readonly on: boolean
  /** Reason why some or all GPUs are not measured. '' with `on` false: not known yet. */
  readonly reason: string
  /** '' if there is nothing to fix, as on a host without GPUs. */
  readonly hint: string
  /** Version of the driver. */
  readonly driver: string
  readonly devices: readonly GpuDevice[]
}

/** Known paths: the system's own, and those of NVIDIA's container tools and operator. */
const libraries = [
  'libnvidia-ml.so.1',
  '/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1',
  '/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1',
  '/usr/lib64/libnvidia-ml.so.1',
  '/usr/local/nvidia/lib64/libnvidia-ml.so.1',
  '/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1',
  '/run/nvidia/driver/usr/lib64/libnvidia-ml.so.1',
  '/run/opengl-driver/lib/libnvidia-ml.so.1',
]

/** The first query starts the driver, which takes seconds per GPU if nothing else keeps it running. */
const deadlineMs = 30_000
const retryMs = 60_000
/** Processes whose metrics are emitted in one turn of the event loop. */
const processesAtOnce = 32

const unknown: GpuState = { on: false, reason: '', hint: '', driver: '', devices: [] }

/** Measures NVIDIA GPUs through NVML, at an interval. */
export class GpuSource {
  readonly #options: GpuSourceOptions
  readonly #readings = new GpuReadings((Date.now() - uptime() * 1000) * 1000)
  #state = unknown
  #nvml: NvmlHandle | undefined
  #poll: PollHandle | undefined
  #timer: NodeJS.Timeout | undefined
  #askedMs = 0
  #warned = ''

  constructor(options: GpuSourceOptions) {
    this.#options = options
  }

  get state(): GpuState {
    return this.#state
  }

  /** Measures immediately, and then at the interval until `stop`. */
  start(): void {
    const { native, library } = this.#options
    try {
      const nvml = native.nvmlOpen(library === undefined ? libraries : [library])
      this.#nvml = nvml
      this.#poll = native.pollStart(nvml.fd, () => this.#take(nvml))
    } catch (error) {
      this.#fail({
        reason: errorText(error),
        hint: 'free file descriptors or memory, then restart svc',
      })
      return
    }
    this.#ask()
  }

  /** Releases its resources. A hanging driver blocks one thread until it answers. */
  stop(): void {
    clearTimeout(this.#timer)
    const { native } = this.#options
    if (this.#poll !== undefined) native.pollStop(this.#poll)
    if (this.#nvml !== undefined) native.nvmlClose(this.#nvml)
    this.#poll = undefined
    this.#nvml = undefined
  }

  #ask(): void {
    if (this.#nvml === undefined) return
    this.#askedMs = performance.now()
    try {
      this.#options.native.nvmlAsk(this.#nvml, this.#options.perProcess)
    } catch (error) {
      this.#fail({ reason: errorText(error), hint: 'raise the limits on threads and memory of svc' })
      this.#askIn(this.#options.retryMs ?? retryMs)
      return
    }
    // No further query until it answers.
    const mostMs = this.#options.deadlineMs ?? deadlineMs
    this.#schedule(() => this.#silent(mostMs), mostMs)
  }

  #askIn(ms: number): void {
    this.#schedule(() => this.#ask(), Math.max(0, this.#askedMs + ms - performance.now()))
  }

  #schedule(what: () => void, ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(what, ms).unref()
  }

  #silent(afterMs: number): void {
    this.#fail({
      reason: `no response from the NVIDIA driver for ${afterMs / 1000} s`,
      hint: 'check whether nvidia-smi hangs too; dmesg has the cause (lines with NVRM and Xid); restart the host to recover the driver',
    })
  }

  #take(nvml: NvmlHandle): void {
    const { native, intervalMs, perProcess } = this.#options
    const answer = nvml === this.#nvml ? native.nvmlTake(nvml) : undefined
    if (answer === undefined) return
    const failure = nvmlFailure(answer, driverIsLoaded)
    if (failure !== undefined) this.#fail(failure)
    else this.#accept(answer)
    const rests = failure !== undefined || answer.devices.every(({ status }) => status !== 0)
    this.#askIn(rests ? Math.max(intervalMs, this.#options.retryMs ?? retryMs) : intervalMs)
    if (failure !== undefined) return
    for (const metric of this.#readings.host(answer, Date.now() * 1000)) this.#options.emitHost(metric)
    if (perProcess) void this.#emitProcesses(nvml, this.#readings.processes(answer))
  }

  async #emitProcesses(nvml: NvmlHandle, byPid: ReadonlyMap<number, readonly Metric[]>): Promise<void> {
    let count = 0
    for (const [pid, metrics] of byPid) {
      if (++count % processesAtOnce === 0) await nextTurn()
      if (nvml !== this.#nvml) return
      for (const metric of metrics) this.#options.emitProcess(pid, metric)
    }
  }

  #accept(answer: NvmlAnswer): void {
    const before = this.#state.devices
    const devices = answer.devices.map(({ uuid, name, status, error }, index) => ({
      index,
      uuid: uuid || (before[index]?.uuid ?? ''),
      name: name || (before[index]?.name ?? ''),
      reason: status === 0 ? '' : error,
    }))
    const lost = devices.filter(({ reason }) => reason !== '')
    const reason =
      devices.length === 0
        ? 'the NVIDIA driver reports no GPU'
        : lost.map(({ index, name, reason: why }) => `GPU ${index}${name && ` (${name})`}: ${why}`).join('; ')
    const status = answer.devices.find(device => device.status !== 0)?.status
    const hint = status === undefined ? '' : nvmlHint(status)
    this.#state = { on: lost.length < devices.length, reason, hint, driver: answer.driver, devices }
    this.#warn()
  }

  /** Known properties of the GPUs are kept. */
  #fail({ reason, hint }: Failure): void {
    const devices = this.#state.devices.map(device => ({ ...device, reason }))
    this.#state = { ...this.#state, on: false, reason, hint, devices }
    this.#warn()
  }

  #warn(): void {
    const { reason, hint } = this.#state
    if (hint !== '' && reason !== this.#warned) this.#options.warn(reason, hint)
    this.#warned = hint === '' ? '' : reason
  }
}

function driverIsLoaded(): boolean {
  return existsSync('/proc/driver/nvidia/version')
}
