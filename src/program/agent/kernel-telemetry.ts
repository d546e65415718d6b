// Kernel metrics besides requests, wired to the pipeline: connections, flows, system calls, processes. Each part runs
// or fails separately.

import { networkInterfaces } from 'node:os'
import type { Config } from '../../config/index.ts'
import { build } from '../../foundation/lib/build.ts'
import type { CpuLever } from '../../foundation/lib/cpu-governor.ts'
import { CpuSteps } from '../../foundation/lib/cpu-steps.ts'
import type { ShareLosses } from '../../foundation/lib/fair-share.ts'
import { errorText, type Logger } from '../../foundation/lib/logger.ts'
import type { MemoryGovernor } from '../../foundation/lib/memory-governor.ts'
import { every, type Ticks } from '../../foundation/lib/shared-ticks.ts'
import { Turn } from '../../foundation/lib/turn.ts'
import type { NetworkPair } from '../../foundation/model/network-pair.ts'
import { hostOwner, type Resource, type Scope } from '../../foundation/model/resource.ts'
import { noPlace } from '../../identity/entities/container-place.ts'
import type { ContainerResources } from '../../identity/entities/container-resources.ts'
import { placeOfNews } from '../../identity/entities/process-news.ts'
import type { ProcessTable } from '../../identity/entities/process-table.ts'
import { loadNative, type Native, Unsupported } from '../../kernel/native.ts'
import { whyNotLoaded } from '../../kernel/why-not-loaded.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import { NetworkProbe } from '../../signals/capture/network.ts'
import { ProcessEvents } from '../../signals/capture/process-events.ts'
import { SyscallCounts, syscallDuration } from '../../signals/capture/syscall-counts.ts'
import { Flows } from '../../signals/traces/tracing/flows.ts'
import { NetworkSeries } from '../../signals/traces/tracing/network-series.ts'
import { RedTable } from '../../signals/traces/tracing/red.ts'
import { ServiceGraph } from '../../signals/traces/tracing/service-graph.ts'
import type { Degradation } from '../../view/api/types.ts'
import type { HostEntity } from './host-resource.ts'
import { connections, failureOf, type KernelPart, processEvents, systemCalls } from './kernel-parts.ts'

export interface KernelTelemetryOptions {
  readonly config: Config
  readonly pipeline: Pick<Pipeline, 'intake' | 'ledger'>
  readonly processes: ProcessTable
  /** Processes that profiles use. */
  readonly profiled: ProcessTable
  readonly host: HostEntity
  readonly resources: ContainerResources
  readonly governor: MemoryGovernor
  readonly log: Logger
  /** PID of this process in the kernel's namespace. */
  readonly selfPid: number
  /** A process started another program. */
  readonly onExec: (pid: number) => void
}

const addressesMs = 30_000
/** Process starts and ends to log per second, by step of CPU reduction. */
const eventsPerSecond = [1000, 250, 60] as const
/** Share of table memory for connection metrics. */
const seriesShare = 0.3
/** The same for the service graph: enough for its 2,000 edges with 256 MiB for the agent. */
const graphShare = 0.12
/** Beyond the table itself, half as many entries may wait for their last export. */
const leavingPart = 1.5

export class KernelTelemetry {
  /** Enabled parts that do not run. */
  readonly faults: Degradation[] = []
  /** The service graph; filled by the tracer. */
  readonly graph: ServiceGraph
  readonly #options: KernelTelemetryOptions
  readonly #scope: Scope = { name: 'svc/kernel', version: build().version }
  /** Resource to which unknown processes were last attributed. */
  #lastHost: Resource
  readonly #network: NetworkProbe | undefined
  readonly #series: NetworkSeries | undefined
  readonly #flows: Flows | undefined
  readonly #syscalls: SyscallCounts | undefined
  readonly #syscallTimes: RedTable
  readonly #events: ProcessEvents | undefined
  readonly #eventSteps = new CpuSteps(eventsPerSecond, most => this.#events?.limit(most))
  readonly #ticks: readonly Ticks[]
  /** Interface names by address. */
  #interfaces = new Map<string, string>()
  #counting = false
  /** Exports since the start. */
  #exports = 0
  #stopped = false
  #unreported = 0
  #lostCalls = 0

  constructor(options: KernelTelemetryOptions) {
    const { config, processes, profiled, selfPid, log, governor, host } = options
    const { network, syscalls } = config.agent.ebpf
    const startUs = Date.now() * 1000
    this.#options = options
    this.#lastHost = host.resource
    this.graph = new ServiceGraph({ startUs, maxBytes: governor.limitOf(graphShare) })
    const maxBytes = governor.limitOf(seriesShare)
    this.#syscallTimes = new RedTable({ startUs, maxBytes, others: host.resource })
    processes.onEnd((ended, next) => {
      this.#series?.forget(ended)
      this.#syscallTimes.forget(ended, next)
    })
    this.#findInterfaces()
    this.#network = this.#load(connections, native => new NetworkProbe(native))
    if (this.#network !== undefined && network.tcp_metrics)
      this.#series = new NetworkSeries({ startUs, maxBytes })
    if (this.#network !== undefined && network.flows) {
      const interfaceOf = (address: string) =>
        address.startsWith('127.') ? 'lo' : (this.#interfaces.get(address) ?? '')
      this.#flows = new Flows({ startUs, interfaceOf, interfaces: network.interfaces })
    }
    this.#syscalls = this.#load(systemCalls, native => new SyscallCounts(native, syscalls, selfPid))
    if (this.#syscalls !== undefined && this.#syscalls.unknown.length > 0)
      log.warn('unknown system calls in the configuration', { names: this.#syscalls.unknown.join(' ') })
    this.#events = this.#load(processEvents, native => this.#openEvents(native))
    for (const table of [processes, profiled]) table.catchUp = () => this.#events?.drain()
    this.#register(governor)
    this.#ticks = [
      every(network.metrics_interval, () => void this.#exportInTurns()),
      every(addressesMs, () => this.#findInterfaces()),
    ]
  }

  /** Loads a part; a failure is recorded as a fault, and the others continue. */
  #load<T>(part: KernelPart, open: (native: Native) => T): T | undefined {
    const { config, log } = this.#options
    if (part.off(config.agent) !== undefined) return undefined
    try {
      const native = loadNative()
      if (native instanceof Unsupported) throw new Error(native.reason)
      return open(native)
    } catch (error) {
      const why = whyNotLoaded(error)
      log.warn(`${part.subsystem}: not available`, { reason: why.reason })
      this.faults.push(failureOf(part, why))
      return undefined
    }
  }

  #openEvents(native: Native): ProcessEvents {
    const { pipeline, processes, profiled, resources, onExec } = this.#options
    const logs = pipeline.intake('logs', 'process')
    let place = noPlace
    let began: number | undefined
    return new ProcessEvents(native, {
      maxPerSecond: this.#eventSteps.value,
      onProcess: news => {
        processes.noticed(news)
        profiled.noticed(news)
        if (news.kind === 'exec') onExec(news.pid)
        place = placeOfNews(news)
        began = news.start
      },
      emit: record => {
        const pid = Number(record.attributes.get('process.pid'))
        // Another process may have reused its PID.
        logs.add(processes.known(pid, began) ?? resources.of(place), this.#scope, record)
        place = noPlace
        began = undefined
      },
    })
  }

  #register(governor: MemoryGovernor): void {
    const { graph } = this
    const flows = this.#flows
    governor.register({
      name: 'service graph',
      kind: 'detail',
      share: graphShare * leavingPart,
      bytes: () => graph.bytes,
      shed: bytes => graph.shed(bytes),
    })
    if (flows !== undefined)
      governor.register({
        name: 'network flows',
        kind: 'detail',
        bytes: () => flows.bytes,
        shed: bytes => flows.shed(bytes),
      })
    // Counts are kept: they are bounded at the intake.
    governor.register({
      name: 'network metrics',
      kind: 'intake',
      share: seriesShare * leavingPart,
      bytes: () => (this.#series?.bytes ?? 0) + this.#syscallTimes.bytes,
      shed: () => 0,
    })
  }

  /** Entries rejected or evicted for the sake of other owners, by table. */
  get losses(): Readonly<Record<string, ShareLosses | undefined>> {
    const { graph } = this
    const network = this.#network
    const series = this.#series
    const flows = this.#flows
    return {
      service_graph: graph.losses,
      connection_pairs: network && { refused: network.counters().overflowed, taken: 0 },
      connections: series?.losses,
      flows: flows?.losses,
    }
  }

  /** The lever for CPU reduction: process events, which cost a lookup each. */
  get lever(): CpuLever {
    const eventSteps = this.#eventSteps
    const change = (step: () => boolean) => () => {
      if (this.#events === undefined) return false
      // Book earlier losses under the previous limit.
      this.#book()
      return step()
    }
    return {
      costMs: () => this.#events?.busyMs ?? 0,
      lower: change(() => eventSteps.lower()),
      raise: change(() => eventSteps.raise()),
      get effect() {
        return eventSteps.isLowered
          ? `at most ${eventSteps.value} process starts and exits per second are reported (metrics count all); very short processes may have only a name`
          : ''
      },
    }
  }

  /** Exports all counts. `last`: nothing is held back any longer. */
  exportMetrics(last = false): void {
    this.#network?.collect(this.#connectionCounter(), last)
    for (const _ of this.#exportEach(last));
  }

  /** Exports all counts, and yields to other work while it reads connections. */
  async #exportInTurns(): Promise<void> {
    if (this.#counting) return
    this.#counting = true
    try {
      await this.#network?.collectInTurns(this.#connectionCounter())
      await this.#options.processes.look()
      const turn = new Turn()
      const began = this.#exports + 1
      for (const _ of this.#exportEach(false)) {
        if (turn.isOver) await turn.next()
        // The rest was exported by another call since then, and is older.
        if (this.#stopped || this.#exports !== began) break
      }
    } catch (error) {
      this.#options.log.warn('connections not counted', { reason: errorText(error) })
    } finally {
      this.#counting = false
    }
  }

  /**
   * Exports all counts, one metric of a process per step. Counters that change during the steps (requests between
   * services) are exported at once.
   */
  *#exportEach(last: boolean): Generator<void> {
    if (this.#stopped && !last) return
    this.#exports++
    const options = this.#options
    const { processes, pipeline } = options
    const host = options.host.resource
    this.#syscalls?.collect((pid, comm, dimensions, count, sumNs, buckets) => {
      if (!processes.selected(pid, comm)) return
      const resource = processes.resource(pid, comm)
      this.#syscallTimes.merge(resource, syscallDuration, dimensions, count, sumNs, buckets)
    })
    const timeUs = Date.now() * 1000
    for (const [type, all] of [
      ['network', this.#series?.collect(timeUs) ?? []],
      ['syscalls', this.#syscallTimes.collect(timeUs)],
    ] as const) {
      const intake = pipeline.intake('metrics', type)
      for (const { resource, metrics } of all)
        for (const metric of metrics) {
          intake.add(resource, this.#scope, metric)
          yield
        }
    }
    for (const [type, metrics] of [
      ['network', this.#flows?.collect(timeUs, last) ?? []],
      ['service_graph', this.graph.collect(timeUs)],
      ['process', this.#events?.metrics(timeUs) ?? []],
    ] as const) {
      const intake = pipeline.intake('metrics', type)
      for (const metric of metrics) intake.add(host, this.#scope, metric)
    }
    this.#book()
  }

  /** Exports the final counts, and unloads. */
  stop(): void {
    this.#stopped = true
    for (const ticks of this.#ticks) ticks.stop()
    this.#events?.drain()
    this.exportMetrics(true)
    this.#network?.close()
    this.#syscalls?.close()
    this.#events?.close()
  }

  #connectionCounter(): (pair: NetworkPair) => void {
    const { processes } = this.#options
    const host = this.#options.host.resource
    if (host !== this.#lastHost) this.#series?.forget(this.#lastHost)
    this.#lastHost = host
    return pair => {
      const { pid, comm, server, port, overflow } = pair
      const known = pid !== 0 && !overflow
      if (known && !processes.selected(pid, comm)) return
      const resource = known ? processes.resource(pid, comm, server ? port : 0) : host
      this.#series?.add(resource, pair)
      this.#flows?.add(
        pair,
        String(resource.attributes.get('service.name') ?? ''),
        resource.owner ?? hostOwner,
      )
    }
  }

  /** Books the losses so far. */
  #book(): void {
    const { ledger } = this.#options.pipeline
    const unreported = this.#events?.unreported ?? 0
    const reason = this.#eventSteps.isLowered ? 'cpu_limit' : 'over_budget'
    if (unreported > this.#unreported)
      ledger.logs.dropAtIntake(reason, unreported - this.#unreported, 'process')
    this.#unreported = unreported
    const lost = this.#syscalls?.lost ?? 0
    if (lost > this.#lostCalls)
      this.#options.log.warn('system calls not counted', { calls: lost - this.#lostCalls })
    this.#lostCalls = lost
  }

  #findInterfaces(): void {
    const found = new Map<string, string>()
    for (const [name, addresses] of Object.entries(networkInterfaces()))
      for (const { address } of addresses ?? []) found.set(address, name)
    this.#interfaces = found
  }
}
