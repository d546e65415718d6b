// All subsystems, in the order of the banner. Each is created when another asks for it, or in this order.

import type { Subsystem } from '../agent/subsystem.ts'
import { cpu } from './cpu.ts'
import { debugMode } from './debug-mode.ts'
import { discovery } from './discovery.ts'
import { ebpf } from './ebpf.ts'
import { eventLoop } from './event-loop.ts'
import { exporting } from './exporting.ts'
import { gpus } from './gpus.ts'
import { hostCounts, hostMetrics } from './host-metrics.ts'
import { connections, processEvents, systemCalls } from './kernel-counts.ts'
import { lastRun } from './last-run.ts'
import { livePage } from './live-page.ts'
import { log } from './log.ts'
import { logs } from './logs.ts'
import { managementApi } from './management-api.ts'
import { memory } from './memory.ts'
import { processes } from './processes.ts'
import { profiles } from './profiles.ts'
import { queue } from './queue.ts'
import { reload } from './reload.ts'
import { scraping } from './scraping.ts'
import { selfTraces } from './self-traces.ts'
import { traces } from './traces.ts'

export const subsystems: readonly Subsystem[] = [
  reload,
  managementApi,
  memory,
  cpu,
  lastRun,
  debugMode,
  livePage,
  traces,
  connections,
  processEvents,
  systemCalls,
  profiles,
  logs,
  discovery,
  gpus,
  scraping,
  hostMetrics,
  hostCounts,
  exporting,
  queue,
  selfTraces,
  processes,
  ebpf,
  log,
  eventLoop,
]
