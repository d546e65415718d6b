// The tracing subsystem: capture back end, protocols, spans and request metrics, wired to the pipeline.

import { networkInterfaces } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../../config/index.ts'
import { build } from '../../foundation/lib/build.ts'
import { type Change, change } from '../../foundation/lib/change.ts'
import { errorText, type Logger } from '../../foundation/lib/logger.ts'
import type { MemoryGovernor } from '../../foundation/lib/memory-governor.ts'
import { every, type Ticks } from '../../foundation/lib/shared-ticks.ts'
import { WallClock } from '../../foundation/lib/wall-clock.ts'
import type { SpanLink } from '../../foundation/model/profile.ts'
import { hostOwner, type Scope } from '../../foundation/model/resource.ts'
import type { Operation } from '../../foundation/model/stream.ts'
import { unknownProcess } from '../../identity/entities/process-resource.ts'
import type { ProcessTable } from '../../identity/entities/process-table.ts'
import type { ProcessSelector, SelectionRules } from '../../identity/entities/selection.ts'
import { loadNative, type MapHandle, Unsupported } from '../../kernel/native.ts'
import { firstMissing, ownPids } from '../../kernel/needs.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import type { Backend, Capture, CaptureCounter } from '../../signals/capture/capture.ts'
import { backends } from '../../signals/capture/index.ts'
import { kernelDrops } from '../../signals/capture/kernel-drops.ts'
import type { TlsProbes } from '../../signals/capture/tls/tls-probes.ts'
import { kernelBounds } from '../../signals/traces/protocols/durations.ts'
import { protocols } from '../../signals/traces/protocols/index.ts'
import { RedTable } from '../../signals/traces/tracing/red.ts'
import { pathMatcher, type RouteOptions, Routes } from '../../signals/traces/tracing/routes.ts'
import { Streams } from '../../signals/traces/tracing/streams.ts'
import { Tracer } from '../../signals/traces/tracing/tracer.ts'
import type { TracerOptions, TracerRules } from '../../signals/traces/tracing/tracer-options.ts'
import { TracingSink } from '../../signals/traces/tracing/tracing-sink.ts'
import { captureOptions, captureRules } from './capture-options.ts'
import { readInsideTls, type TracingLimit } from './inside-tls.ts'
import { RedExport } from './red-export.ts'
import { SpanBudget } from './span-budget.ts'

const addressesMs = 30_000
const tickMs = 250
const quietTickMs = 1_000
const notFound = 404
/** Share of table memory for request metrics: enough for their usual 10,000 series. */
const redShare = 0.4
/** The same for learned routes, without paths: for all services of a hundred pods. */
const routesShare = 1 / 6
/** Wait before resolving a sample's link: records of earlier ends have been read by then. */
const linkDrainMs = 20
/** Longest wait at the end for the kernel to detach from TLS libraries. */
const mostLettingGoMs = 3000
/** Why tracing does not run, or what is missing, and the hint. */
export interface TracingFault {
  readonly reason: string
  readonly hint: string
}

export interface TracingOptions {
  readonly config: Config
  readonly pipeline: Pick<Pipeline, 'intake' | 'ledger'>
  readonly processes: ProcessTable
  readonly log: Logger
  readonly governor?: MemoryGovernor
  /** Called with caller and callee; see `TracerOptions`. */
  readonly edge?: NonNullable<TracerOptions['edge']>
}

/** The running tracing. */
export class Tracing {
  readonly capture: Capture
  /** Undefined if disabled. */
  readonly tls: TlsProbes | undefined
  readonly tracer: Tracer
  readonly red: RedTable
  /** Connections whose bytes are parsed in user space. */
  readonly streams: Streams
  readonly budget: SpanBudget
  /** Number of protocols to detect. */
  readonly protocols: number
  /** Its degradations. */
  readonly limits: readonly TracingLimit[]
  readonly #options: TracingOptions
  /** The current configuration. */
  #ebpf: Ebpf
  readonly routes: Routes
  readonly #scope: Scope = { name: 'svc/network', version: build().version }
  readonly #ticks: readonly Ticks[]
  #localAddresses = new Set<string>()
  /** Kernel counters at the last reading. */
  #seen: Partial<Record<CaptureCounter, number>> = {}
  /** Exchanges without a record by reason, less those already booked. */
  readonly #reasons = { ring_full: 0, over_budget: 0 }
  /** Exchanges that the kernel only counted, not booked yet. */
  #unbooked = 0
  #lettingGo: Promise<void> | undefined
  readonly #metrics: RedExport
  #stopped = false

  constructor(backend: Backend, options: TracingOptions) {
    this.#options = options
    const { pipeline, processes, config, governor, log } = options
    const { network } = config.agent.ebpf
    this.#ebpf = config.agent.ebpf
    this.red = new RedTable({
      startUs: Date.now() * 1000,
      histograms: config.otlp.metrics.histograms,
      others: unknownProcess(processes.about),
      ...(governor === undefined ? {} : { maxBytes: governor.limitOf(redShare) }),
    })
    this.routes = new Routes(routeOptions(network), governor?.limitOf(routesShare))
    const made = this.#makeProtocols(network)
    this.protocols = made.length
    const clock = new WallClock()
    this.tracer = this.#makeTracer(made, network, clock)
    this.#findAddresses()
    const native = loadNative()
    if (native instanceof Unsupported) throw new Error(native.reason)
    this.streams = new Streams(made, this.tracer, {
      governor,
      isGone: pid => processes.isGone(pid),
      noRoom: () => this.capture.noRoom,
    })
    const names = made.map(({ name }) => name)
    this.capture = backend.open(
      native,
      { ...captureOptions(config, names, governor), clock },
      this.#makeSink(),
    )
    this.budget = new SpanBudget({
      capture: this.capture,
      clock,
      rules: captureRules(network),
      counted: new Set(protocols.filter(({ counted }) => counted).map(({ name }) => name)),
      spans: () => [...this.collected.values()].reduce((sum, spans) => sum + spans, 0),
      sync: () => this.sync(),
    })
    this.#register(governor)
    const inside: ReturnType<typeof readInsideTls> = network.tls
      ? readInsideTls(this.capture, selectionOf(config.discovery), log)
      : {}
    this.tls = inside.probes
    this.limits = [inside.limit, this.#withoutNames()].filter(limit => limit !== undefined)
    const ticks = every(tickMs, () => this.#tick())
    this.capture.onPace(quiet => ticks.every(quiet ? quietTickMs : tickMs))
    this.#ticks = [ticks, every(addressesMs, () => this.#findAddresses())]
    processes.onEnd((ended, next) => this.red.forget(ended, next))
    const { red } = this
    const scope = this.#scope
    const sync = () => {
      this.sync()
      this.routes.expire(performance.now())
    }
    this.#metrics = new RedExport({ red, processes, pipeline, scope, sync, log })
    this.#metrics.every(network.metrics_interval)
  }

  #makeProtocols(network: Network) {
    const { processes } = this.#options
    const route = ({ connection, status }: Operation, path: string): string => {
      const { attributes, owner = hostOwner } = processes.resource(connection.pid, connection.comm)
      const service = String(attributes.get('service.name'))
      return this.routes.route(owner, service, path, status !== notFound)
    }
    const switches: Readonly<Record<string, unknown>> = { ...network }
    return protocols
      .filter(({ key }) => switches[key] !== false)
      .map(unit => unit.create({ route, captureBytes: network.capture_bytes }))
  }

  #makeTracer(made: TracerOptions['protocols'], network: Network, clock: WallClock): Tracer {
    const { pipeline, processes, edge, governor } = this.#options
    const account = pipeline.ledger.traces
    return new Tracer({
      protocols: made,
      scope: this.#scope,
      red: this.red,
      countedBounds: kernelBounds,
      resourceOf: ({ pid, comm, server, localPort }) => processes.resource(pid, comm, server ? localPort : 0),
      spans: pipeline.intake('traces'),
      drop: (reason, n) => account.dropAtIntake(reason, n),
      refuse: connection => this.capture.refuse(connection),
      exports: ({ pid, comm }) => processes.exported(pid, comm),
      hidden: ({ pid, comm }) => processes.hidden(pid, comm),
      ...(edge === undefined ? {} : { edge }),
      overBudget: (operation, { owner = hostOwner }) =>
        this.budget.allows(operation, owner) ? '' : this.budget.reason,
      rules: tracerRules(network),
      isLocal: address =>
        address.startsWith('127.') || address === '::1' || this.#localAddresses.has(address),
      now: () => this.capture?.reachedMs ?? performance.now(),
      clock,
      ...(governor === undefined ? {} : { governor }),
    })
  }

  #makeSink(): TracingSink {
    const account = this.#options.pipeline.ledger.traces
    return new TracingSink({
      tracer: this.tracer,
      streams: this.streams,
      drop: (reason, n) => account.dropAtIntake(reason, n),
      counted: operations => {
        this.#unbooked += operations
      },
      refuse: connection => this.capture.refuse(connection),
      log: this.#options.log,
    })
  }

  /** In a PID namespace of its own, the agent cannot read process names. */
  #withoutNames(): TracingLimit | undefined {
    if (this.capture.selfPid === process.pid) return undefined
    this.#options.processes.withoutProc()
    const { detail, impact, hint } = ownPids
    return { subsystem: 'processes', reason: `${detail}: ${impact}`, hint }
  }

  #register(governor: MemoryGovernor | undefined): void {
    const { red, routes } = this
    // Counts are kept: their share bounds them at the intake.
    const counted = { kind: 'intake', share: redShare, bytes: () => red.bytes, shed: () => 0 } as const
    governor?.register({ name: 'request metrics', ...counted })
    const waiting = { kind: 'intake', bytes: () => this.capture.backlog.heldBytes, shed: () => 0 } as const
    governor?.register({ name: 'records of the kernel', apart: true, ...waiting })
    governor?.register({
      name: 'routes',
      kind: 'cache',
      bytes: () => routes.bytes,
      shed: () => routes.shed(),
    })
  }

  /**
   * Prepares those differences of `config` that can change at run time; committing touches nothing else. Exchanges
   * already recorded are judged by the old rules.
   */
  prepare(config: Config): Change {
    const { ebpf } = config.agent
    const { network } = ebpf
    const before = this.#ebpf
    const differs = <T>(of: (network: Network) => T): boolean =>
      !isDeepStrictEqual(of(before.network), of(network))
    const steps: (() => void)[] = [
      () => {
        this.#ebpf = ebpf
      },
    ]
    if (differs(captureRules)) {
      const rules = captureRules(network)
      steps.push(() => this.budget.change(rules))
    }
    if (differs(({ sampling, propagation, exclude_paths }) => [sampling, propagation, exclude_paths])) {
      const rules = tracerRules(network)
      steps.push(() => {
        this.capture.drain()
        this.tracer.rules = rules
      })
    }
    if (differs(routeOptions)) {
      const rules = routeOptions(network)
      steps.push(() => {
        this.capture.drain()
        this.routes.change(rules)
      })
    }
    if (differs(({ metrics_interval }) => metrics_interval))
      steps.push(() => this.#metrics.every(network.metrics_interval))
    return change(() => {
      // Do not restart anything if the agent has stopped since.
      if (!this.#stopped) for (const step of steps) step()
    })
  }

  /** Observed spans by kind, including those lost later. */
  get collected(): ReadonlyMap<string, number> {
    return this.tracer.collected
  }

  /** Which request each thread works on, maintained while `linkSamples` is on. */
  get requests(): MapHandle | undefined {
    return this.capture.requests
  }

  linkSamples(on: boolean): void {
    this.tracer.linkSamples(on)
    this.capture.trackRequests?.(on)
  }

  /** The span of the request that a sampled thread worked on. */
  linkOf(request: number): SpanLink | undefined {
    // A recently ended request may still be in the ring.
    if (this.capture.sinceDrainMs > linkDrainMs) this.capture.drain()
    return this.tracer.linkOf(request)
  }

  /** Books the losses counted by the kernel. */
  sync(): void {
    this.capture.collect()
    // The kernel counts the reason before the exchange; reading in the opposite order, no exchange lacks its reason.
    const now = this.capture.counters()
    const reasons = this.#reasons
    const seen = this.#seen
    const account = this.#options.pipeline.ledger.traces
    const grown = (counter: CaptureCounter) => now[counter] - (seen[counter] ?? 0)
    reasons.ring_full += grown('ring_full')
    reasons.over_budget += grown('over_budget')
    this.#explain(grown('red_full'))
    for (const [counter, reason] of kernelDrops) this.tracer.lost(reason, grown(counter))
    this.#seen = now
    const ringFull = this.#explain(this.#unbooked)
    account.dropAtIntake('ring_full', ringFull)
    account.dropAtIntake(this.budget.reason, this.#unbooked - ringFull)
    this.#unbooked = 0
  }

  /** Assigns `exchanges` to reasons. Returns how many found the ring full; the others were over budget. */
  #explain(exchanges: number): number {
    const reasons = this.#reasons
    const ringFull = Math.min(exchanges, reasons.ring_full)
    reasons.ring_full -= ringFull
    reasons.over_budget -= exchanges - ringFull
    return ringFull
  }

  exportMetrics(): void {
    this.#metrics.now()
  }

  /** Detaches, and emits everything observed. Its counters can be read until it is closed. */
  stop(): void {
    this.#stopped = true
    for (const ticks of this.#ticks) ticks.stop()
    this.#metrics.stop()
    this.#lettingGo = this.tls?.close()
    this.capture.detach()
    this.streams.close()
    this.sync()
    this.tracer.flush()
    this.exportMetrics()
  }

  /**
   * Unloads once the kernel has detached from TLS libraries: those left at the end of the process are detached one by
   * one.
   */
  async close(): Promise<void> {
    if (this.#lettingGo !== undefined)
      await Promise.race([this.#lettingGo, sleep(mostLettingGoMs, undefined, { ref: false })])
    this.capture.close()
  }

  /** Gives up what did not arrive in time. */
  #tick(): void {
    // It may have arrived while this process, or its whole host, was suspended.
    this.capture.drain()
    this.tracer.tick()
    this.budget.measure()
    this.streams.tick(this.capture.reachedNs)
  }

  #findAddresses(): void {
    const found = new Set<string>()
    for (const addresses of Object.values(networkInterfaces()))
      for (const { address } of addresses ?? []) found.add(address)
    this.#localAddresses = found
  }
}

/** Starts tracing with the configured back end, or the first that works. */
export function startTracing(options: TracingOptions): Tracing | TracingFault {
  const wanted = options.config.agent.ebpf.backend
  const candidates = backends.filter(({ name }) => wanted === 'auto' || name === wanted)
  const faults: TracingFault[] = []
  for (const backend of candidates) {
    const native = loadNative()
    if (native instanceof Unsupported) return native
    try {
      const missing = firstMissing(backend.needs)
      if (missing !== undefined) {
        faults.push({ reason: missing.detail, hint: missing.hint ?? '' })
        continue
      }
      return new Tracing(backend, options)
    } catch (error) {
      faults.push({
        reason: errorText(error),
        hint: 'run svc doctor; agent.ebpf.debug: true logs the verifier output',
      })
    }
  }
  if (faults.length === 0)
    return {
      reason: `the capture back end "${wanted}" is not built in this version`,
      hint: 'set agent.ebpf.backend: auto',
    }
  // Reports the best one; the others are alternatives.
  return {
    reason: [...new Set(faults.map(({ reason }) => reason))].join('; '),
    hint: [...new Set(faults.map(({ hint }) => hint))].join('; or '),
  }
}

type Ebpf = Config['agent']['ebpf']
type Network = Ebpf['network']

function tracerRules({ sampling, propagation, exclude_paths }: Network): TracerRules {
  return {
    ratio: sampling.ratio,
    alwaysErrors: sampling.always_errors,
    alwaysSlow: sampling.always_slow,
    slowNs: sampling.slow_threshold * 1e6,
    readContext: propagation === 'read',
    excludedPath: pathMatcher(exclude_paths),
  }
}

/** Which processes are observed. */
export function selectionOf({ instrument, exclude }: Config['discovery']): SelectionRules {
  const selector = (entry: Config['discovery']['instrument'][number]): ProcessSelector => ({
    ports: entry.open_ports,
    executable: entry.exe_path,
    name: entry.name,
    namespace: entry.k8s_namespace,
    podName: entry.k8s_pod_name,
    deploymentName: entry.k8s_deployment_name,
    daemonsetName: entry.k8s_daemonset_name,
    statefulsetName: entry.k8s_statefulset_name,
    containerName: entry.k8s_container_name,
    podLabels: new Map(Object.entries(entry.k8s_pod_labels)),
  })
  return { instrument: instrument.map(selector), exclude: exclude.map(selector) }
}

function routeOptions({ routes }: Network): RouteOptions {
  return {
    patterns: routes.patterns,
    unmatched: routes.unmatched,
    maxSegmentCardinality: routes.max_segment_cardinality,
  }
}
