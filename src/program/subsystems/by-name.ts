// The subsystems that documents need by name. Everything else goes through the list.

import type { ReloadCause, ReloadResult } from '../../view/api/types.ts'
import { reloadMessage } from '../agent/reload.ts'
import { cpu } from './cpu.ts'
import { debugMode } from './debug-mode.ts'
import { discovery } from './discovery.ts'
import { ebpf } from './ebpf.ts'
import { eventLoop } from './event-loop.ts'
import { exporting } from './exporting.ts'
import { hostMetrics } from './host-metrics.ts'
import { lastRun } from './last-run.ts'
import { logs } from './logs.ts'
import { managementApi } from './management-api.ts'
import { memory } from './memory.ts'
import { processes } from './processes.ts'
import { profiles } from './profiles.ts'
import { reload } from './reload.ts'
import type { Running } from './running.ts'
import { selfTraces } from './self-traces.ts'
import { traces } from './traces.ts'

export type Subsystems = ReturnType<typeof subsystemsOf>

export function subsystemsOf(running: Running) {
  const loop = running.of(eventLoop)
  return {
    /** The active configuration; a reload replaces it. */
    loaded: () => running.loaded(),
    pipelines: running.of(exporting),
    processes: running.of(processes).processes,
    tracing: running.of(traces),
    self: running.of(selfTraces),
    profiler: running.of(debugMode),
    logRing: running.options.logRing,
    memory: running.of(memory),
    cpu: running.of(cpu),
    lastRun: running.of(lastRun),
    eventLoop: () => loop.watch,
    /** Why the event loop counts as stuck. */
    stuck: () => loop.heartbeat.stuck(),
    hostMetrics: () => running.of(hostMetrics),
    ebpfDebug: running.of(ebpf),
    profiling: running.of(profiles),
    discovery: running.of(discovery),
    logs: running.of(logs),
    states: () => running.states(),
    faults: () => running.faults(),
    known: () => running.known(),
    stopping: () => running.isStopping,
    reload: () => reloadOf(running, 'request'),
    reloads: () => running.of(reload).state,
    api: () => running.of(managementApi).api,
    startedMs: running.startedMs,
  } as const
}

export async function reloadOf(running: Running, cause: ReloadCause): Promise<ReloadResult> {
  const outcome = await running.of(reload).reload(cause)
  const message = reloadMessage(outcome)
  return outcome.kind === 'unchanged' ? { ...outcome, message, changed: [] } : { ...outcome, message }
}
