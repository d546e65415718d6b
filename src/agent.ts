import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { banner } from './agent/banner.ts'
import { Cpu } from './agent/cpu.ts'
import { leverParts } from './agent/cpu-levers.ts'
import { Discovery } from './agent/discovery.ts'
import { EbpfDebug } from './agent/ebpf-debug.ts'
import { governEntities, governProfiles, governSmallTables } from './agent/entity-memory.ts'
import { Gpu } from './agent/gpu.ts'
import { stuckMs } from './agent/health.ts'
import { HostMetrics } from './agent/host-metrics.ts'
import { ebpfOff, traces, whyOff } from './agent/kernel-parts.ts'
import { failedParts, failureText } from './agent/kernel-state.ts'
import { KernelTelemetry } from './agent/kernel-telemetry.ts'
import { Logs } from './agent/logs.ts'
import { Memory } from './agent/memory.ts'
import { metricsSource } from './agent/metrics-source.ts'
import { Outlets } from './agent/outlets.ts'
import type { Parts } from './agent/parts.ts'
import { Profiling } from './agent/profiling.ts'
import { contentsOf, Reloader, type ReloadOutcome, reloadMessage } from './agent/reload.ts'
import { apiSettings, debugMode, reloadables, selfTracing, warnOfExposure } from './agent/reloadables.ts'
import { RunRecord } from './agent/run-record.ts'
import { Scraping } from './agent/scraping.ts'
import { SelfTracer } from './agent/self-tracing.ts'
import {
  selectionOf,
  startTracing,
  Tracing,
  type TracingFault,
  type TracingOptions,
} from './agent/tracing.ts'
import { HostVitals } from './agent/ui/host-vitals.ts'
import { livePage } from './agent/ui/live-page.ts'
import { agentView, drainMs } from './agent/view.ts'
import { LiveWindow, shareOf } from './agent/window.ts'
import { BrowserKey } from './api/browser-key.ts'
import type { Operation } from './api/operation.ts'
import { operations } from './api/routes.ts'
import { type SelfMetrics, selfMetrics } from './api/self-metrics.ts'
import { type Api, startApi } from './api/server.ts'
import type {
  AgentView,
  Browsers,
  Degradation,
  ReloadCause,
  ReloadResult,
  RunningAgent,
} from './api/types.ts'
import type { LoadedConfig } from './config/index.ts'
import { ContainerResources } from './entities/container-resources.ts'
import { ProcessTable, type ProcessTableOptions } from './entities/process-table.ts'
import { duplicate } from './kernel/duplicate.ts'
import { loadNative, Unsupported } from './kernel/native.ts'
import { hostPid } from './kernel/needs-processes.ts'
import { peerUser } from './kernel/peer-user.ts'
import { build } from './lib/build.ts'
import { startHeartbeat } from './lib/heartbeat.ts'
import type { LogRing } from './lib/log-ring.ts'
import { errorText, type Logger } from './lib/logger.ts'
import { ExitCode, StartError } from './lib/start-error.ts'
import { RecentLogs } from './logs/recent-logs.ts'
import { Attributes } from './model/attributes.ts'
import { DiskStore } from './pipeline/disk/disk-store.ts'
import type { DrainResult } from './pipeline/pipeline.ts'
import { type EventLoopWatch, eventLoopWatch } from './runtime/event-loop.ts'
import { RuntimeProfiler } from './runtime/runtime-profiler.ts'

export interface StartOptions {
  readonly loaded: LoadedConfig
  readonly log: Logger
  /** Where `log` keeps what it wrote last. */
  readonly logRing: LogRing
  /** Reads the configuration anew. */
  readonly load: () => LoadedConfig
  /** Runs every reload, whoever asked for it. */
  readonly aroundReload?: <T>(attempt: () => Promise<T>) => Promise<T>
}

/** Memory for the log records that the API shows where there is no page. */
const recentLogBytes = 4 * 1024 * 1024

/** Longest wait of the start for the files that keys name, in milliseconds. */
const mostContentMs = 1000

/** Starts all that the configuration asks for. What cannot start is told in the banner and in `/ready`; it stops nothing else. */
export async function startAgent({
  loaded,
  log,
  logRing,
  load,
  aroundReload = attempt => attempt(),
}: StartOptions): Promise<RunningAgent> {
  const { config } = loaded
  const startedMs = performance.now()
  // Before any part reads these files. One that hangs, as on a network file system, must not keep the agent from starting.
  const contents = contentsOf(loaded)
  await Promise.race([contents, delay(mostContentMs, undefined, { ref: false })])
  const memory = new Memory(config.limits.memory, log)
  const cpu = new Cpu(config.limits.cpu, log)
  const record = new RunRecord(dirname(config.pipeline.export.queue.directory), log)
  const profiler = new RuntimeProfiler()
  if (debugMode(config)) profiler.start()
  let metrics: SelfMetrics | undefined
  let self: SelfTracer | undefined
  const isShown = config.self_telemetry.enabled && config.self_telemetry.ui.enabled
  const recent = new RecentLogs({ maxBytes: isShown ? shareOf(config, 'logs') : recentLogBytes })
  const outlets = new Outlets(config, {
    log,
    observe: request => {
      metrics?.exportRequest(request)
      self?.exportRequest(request)
    },
    lock: takeLock,
  })
  const { pipeline } = outlets
  memory.governor.register({
    name: 'queued batches',
    ...(outlets.store instanceof DiskStore
      ? ({ kind: 'cache' } as const)
      : ({ kind: 'intake', apart: true } as const)),
    bytes: () => pipeline.queuedMemory,
    shed: bytes => pipeline.shed(bytes),
  })
  memory.governor.register({
    name: 'recent logs',
    kind: 'detail',
    apart: true,
    bytes: () => recent.bytes,
    shed: () => 0,
  })
  // What processes do is told by events; the logs are what they say.
  pipeline.watch('logs', (resource, record) => {
    if (record.eventName === '') recent.add(resource, record)
  })
  const window = isShown ? new LiveWindow(config, pipeline, log, memory.governor) : undefined
  // Rates need two readings: the first one before all that takes time.
  const vitals = window && new HostVitals({ paths: config.agent.nodeexporter.path, vitals: window.vitals })
  vitals?.start()
  self = new SelfTracer({
    emit: (resource, scope, span) => pipeline.intake('traces').add(resource, scope, span),
    resource: {
      serviceName: config.service_name,
      instanceId: config.instance_id,
      version: build().version,
      hostName: hostname(),
    },
    settings: selfTracing(config),
  })
  const starting = self.begin('start')
  let onContainer = (): void => undefined
  const discovery = new Discovery({
    config,
    log,
    onContainer: () => onContainer(),
    governor: memory.governor,
  })
  const { entities, host } = discovery
  const aboutProcesses: ProcessTableOptions = {
    hostName: hostname(),
    hostId: String(host.resource.attributes.get('host.id') ?? ''),
    bootId: bootId(),
    version: build().version,
    attributes: Attributes.of(config.resource.attributes),
    surroundings: place => entities.surroundings(place),
    toldKeys: config.agent.discovery.process_attributes,
  }
  const processes = new ProcessTable(aboutProcesses)
  processes.select(selectionOf(config.discovery))
  // Of those that profiles meet: nobody may trace them.
  const profiled = new ProcessTable({ ...aboutProcesses, maxProcesses: 1024 })
  const resources = new ContainerResources({ entities, processes, host: () => host.resource })
  governSmallTables(memory.governor)
  governEntities(memory.governor, { processes, profiled, entities, resources })
  let tracing: Tracing | TracingFault | undefined
  let kernel: KernelTelemetry | undefined
  const ebpfDebug = new EbpfDebug({ config, log })
  if (whyOff(traces, config) === undefined) {
    const edge: TracingOptions['edge'] = request => {
      kernel?.graph.edge(request.client, request.server, request.failed, request.clientNs, request.serverNs)
      window?.edge(request)
    }
    tracing = startTracing({
      config,
      pipeline,
      processes,
      log: ebpfDebug.log,
      edge,
      governor: memory.governor,
    })
  }
  const running = tracing instanceof Tracing ? tracing : undefined
  // A capture finds that out by itself.
  const withEbpf = ebpfOff(config) === undefined
  if (running === undefined && withEbpf && isApart()) processes.withoutProc()
  if (withEbpf)
    kernel = new KernelTelemetry({
      config,
      pipeline,
      processes,
      profiled,
      host,
      resources,
      governor: memory.governor,
      log: ebpfDebug.log,
      selfPid: running?.capture.selfPid ?? process.pid,
      onExec: pid => running?.tls?.noticed(pid),
    })
  const profiling = new Profiling({
    config,
    pipeline,
    processes: profiled,
    host,
    log: ebpfDebug.log,
    links: running,
  })
  governProfiles(memory.governor, profiling)
  const gpu = new Gpu({ config, pipeline, processes, host, log })
  const logs = new Logs({
    config,
    pipeline,
    entities,
    resources,
    recent,
    host,
    log,
    governor: memory.governor,
  })
  leverParts(cpu.governor, { tracing: running, kernel, profiling, logs })
  onContainer = () => logs.hurry()
  const baseDir = loaded.filePath === null ? process.cwd() : dirname(loaded.filePath)
  const scraping = new Scraping({ config, baseDir, pipeline, log, memory })
  const heartbeat = startHeartbeat(stuckMs)
  let eventLoop: EventLoopWatch | undefined
  let hostMetrics: HostMetrics | undefined
  let api: Api | undefined
  let stopping: Promise<void> | undefined
  const reloader = new Reloader({
    loaded,
    contents,
    load,
    log,
    around: async (cause, attempt) => {
      const operation = self.begin('reload')
      operation.attribute('svc.reload.cause', cause)
      const outcome = await aroundReload(attempt)
      if (outcome.kind === 'invalid' || outcome.kind === 'failed') operation.fail(outcome.kind)
      operation.end()
      return outcome
    },
    parts: reloadables({
      log,
      outlets,
      processes,
      tracing: running,
      profiling,
      discovery,
      gpu,
      logs,
      scraping,
      self,
      profiler,
      ebpfDebug,
      api: () => api,
      hostMetrics: () => hostMetrics,
    }),
  })
  const reload = async (cause: ReloadCause) => resultOf(await reloader.reload(cause))
  const parts: Parts = {
    loaded: () => reloader.current,
    outlets,
    processes,
    tracing,
    self,
    profiler,
    logRing,
    memory,
    cpu,
    lastRun: record,
    eventLoop: () => eventLoop,
    stuck: () => heartbeat.stuck(),
    faults: () => [
      ...(hostMetrics?.faults ?? []),
      ...(kernel?.faults ?? []),
      ...profiling.faults,
      ...discovery.faults,
      ...logs.faults,
      ...gpu.faults,
      ...scraping.faults,
      ...socketFaults(api),
    ],
    kernel,
    ebpfDebug,
    profiling,
    discovery,
    gpu,
    logs,
    scraping,
    hostMetrics: () => hostMetrics,
    stopping: () => stopping !== undefined,
    reload: () => reload('request'),
    reloads: () => reloader.state,
    api: () => api,
    startedMs,
  }
  metrics = selfMetrics(config.self_telemetry.prometheus_namespace, metricsSource(parts))
  const live = window && vitals && livePage(parts, window, vitals, metrics.registry)
  const browsers: Browsers | undefined = live && {
    key: new BrowserKey(),
    tls: config.self_telemetry.tls.enabled,
    link: () => `${api?.url('/ui')}#key=${browsers!.key.key}`,
  }
  const view = agentView(parts, metrics.registry, live?.source, browsers)
  try {
    hostMetrics = await HostMetrics.start({ loaded, pipeline, host, log })
    if (config.agent.ebpf.required) refuseWithout(parts)
    if (config.self_telemetry.enabled) {
      api = await startApi({
        settings: apiSettings(config),
        operations: operationsOf(view, config.self_telemetry.path),
        log,
        peerUser,
        duplicate,
        browserKey: browsers?.key,
        observe: request => self.apiRequest(request),
      })
      warnOfExposure(api, log)
      if (window !== undefined) window.ownPort = api.port
    }
  } catch (error) {
    await end(0)
    record.end('start_failed', errorText(error))
    throw error
  }
  discovery.start()
  logs.start()
  scraping.start()
  live?.start()
  starting.end()
  cpu.started()
  eventLoop = watchLoop()

  /** Ends everything; what is not delivered within the time is given up. */
  async function end(withinMs: number): Promise<DrainResult> {
    reloader.stop()
    cpu.stop()
    api?.finish()
    live?.stop()
    discovery.stop()
    gpu.stop()
    ebpfDebug.stop()
    running?.stop()
    kernel?.stop()
    await profiling.stop()
    await logs.stop()
    await scraping.stop()
    await hostMetrics?.close()
    const drained = await pipeline.drain(withinMs)
    await api?.close()
    heartbeat.stop()
    memory.stop()
    profiler.stop()
    await running?.close()
    return drained
  }

  async function stop(): Promise<void> {
    log.info('drained', { ...(await end(drainMs(reloader.current.config))) })
  }

  return {
    view,
    banner: () => banner(parts),
    links: () => [
      ...(api === undefined
        ? []
        : [
            ...(live === undefined ? [] : [{ what: 'page', url: api.url('/ui') }]),
            { what: 'status', url: api.url('/status') },
            { what: 'ready', url: api.url('/ready') },
            { what: 'metrics', url: api.url(config.self_telemetry.path) },
            { what: 'API', url: api.url('/openapi.json') },
          ]),
      ...(hostMetrics?.server === undefined
        ? []
        : [{ what: 'host metrics', url: hostMetrics.server.url('/metrics') }]),
    ],
    pageLink: () => (api === undefined ? undefined : browsers?.link()),
    reload,
    ended: (cause, detail) => record.end(cause, detail),
    get shutdownTimeoutMs() {
      return reloader.current.config.pipeline.operations.shutdown.timeout
    },
    stop: () => {
      stopping ??= stop()
      return stopping
    },
  }
}

function resultOf(outcome: ReloadOutcome): ReloadResult {
  const message = reloadMessage(outcome)
  return outcome.kind === 'unchanged' ? { ...outcome, message, changed: [] } : { ...outcome, message }
}

function operationsOf(view: AgentView, metricsPath: string): readonly Operation[] {
  try {
    return operations(view, metricsPath)
  } catch (error) {
    throw new StartError(`${errorText(error)}; change self_telemetry.path`, ExitCode.usage)
  }
}

/** Throws where a part that was asked for does not run. */
function refuseWithout(parts: Parts): void {
  const failed = failedParts(parts)
  if (failed.length === 0) return
  const hints = [...new Set(failed.map(({ hint }) => hint))].join('; ')
  throw new StartError(
    `cannot start: agent.ebpf.required is true and eBPF is not available: ${failureText(failed)}; ${hints}`,
    ExitCode.ebpf,
  )
}

function socketFaults(api: Api | undefined): readonly Degradation[] {
  if (api?.socketFault === undefined) return []
  const hint = 'set self_telemetry.admin_socket to a path that svc can create, or to "" for no socket'
  return [{ subsystem: 'admin socket', reason: api.socketFault, hint }]
}

/** Without the addon nobody is kept out; it is there wherever svc can run at all. */
function takeLock(fd: number): boolean {
  const native = loadNative()
  return native instanceof Unsupported || native.flock(fd)
}

function watchLoop(): EventLoopWatch | undefined {
  const native = loadNative()
  return native instanceof Unsupported ? undefined : eventLoopWatch(native)
}

/** Whether the kernel's numbers of processes are others than those of /proc here. */
function isApart(): boolean {
  const found = hostPid.try()
  return 'fault' in found && found.fault === 'own'
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
  } catch {
    return '' // no /proc: instance ids then only tell processes of one boot apart
  }
}
