// What the running agent is made of.

import type { Api } from '../api/server.ts'
import type { Degradation, ReloadResult } from '../api/types.ts'
import type { LoadedConfig } from '../config/index.ts'
import type { ProcessTable } from '../entities/process-table.ts'
import type { LogRing } from '../lib/log-ring.ts'
import type { EventLoopWatch } from '../runtime/event-loop.ts'
import type { RuntimeProfiler } from '../runtime/runtime-profiler.ts'
import type { Cpu } from './cpu.ts'
import type { Discovery } from './discovery.ts'
import type { EbpfDebug } from './ebpf-debug.ts'
import type { Gpu } from './gpu.ts'
import type { HostMetrics } from './host-metrics.ts'
import type { KernelTelemetry } from './kernel-telemetry.ts'
import type { Logs } from './logs.ts'
import type { Memory } from './memory.ts'
import type { Outlets } from './outlets.ts'
import type { Profiling } from './profiling.ts'
import type { ReloadState } from './reload.ts'
import type { RunState } from './run-record.ts'
import type { Scraping } from './scraping.ts'
import type { SelfTracer } from './self-tracing.ts'
import type { Tracing, TracingFault } from './tracing.ts'

export interface Parts {
  /** What runs; a reload replaces it. */
  readonly loaded: () => LoadedConfig
  readonly outlets: Outlets
  readonly processes: ProcessTable
  /** Undefined: switched off. */
  readonly tracing: Tracing | TracingFault | undefined
  readonly self: SelfTracer
  readonly profiler: RuntimeProfiler
  readonly logRing: LogRing
  readonly memory: Memory
  readonly cpu: Cpu
  readonly lastRun: RunState
  /** Undefined until the start is over, and where the addon is missing. */
  readonly eventLoop: () => EventLoopWatch | undefined
  /** Why the event loop counts as stuck. */
  readonly stuck: () => string | undefined
  /** Undefined while they are off, or start. */
  readonly hostMetrics: () => HostMetrics | undefined
  /** Undefined: eBPF is off. */
  readonly kernel: KernelTelemetry | undefined
  readonly ebpfDebug: Pick<EbpfDebug, 'measures'>
  readonly profiling: Profiling
  readonly discovery: Discovery
  readonly gpu: Gpu
  readonly logs: Logs
  readonly scraping: Scraping
  /** What else works less than asked. */
  readonly faults: () => readonly Degradation[]
  /** The end has begun. */
  readonly stopping: () => boolean
  readonly reload: () => Promise<ReloadResult>
  readonly reloads: () => ReloadState
  /** Undefined while it is off, or starts. */
  readonly api: () => Api | undefined
  /** Of `performance.now()`. */
  readonly startedMs: number
}
