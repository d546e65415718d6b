import type { Need } from '../../kernel/need.ts'
import { needs } from '../../kernel/needs.ts'
import { capture } from './capture.ts'
import type { Check } from './check.ts'
import { adminSocket } from './commands.ts'
import { settings } from './configuration.ts'
import { cloudMetadata, cluster, containerRuntime } from './discovery.ts'
import { diskQueue } from './disk-queue.ts'
import { gpus } from './gpu.ts'
import { collectors, metricsAddress, remoteMounts } from './host-metrics.ts'
import { kernelCounts } from './kernel-counts.ts'
import { eventLoop, lastRun } from './last-run.ts'
import { journal, logDirectories, logFiles, logPositions } from './logs.ts'
import { address, certificate, exposure } from './management.ts'
import { debugFiles, decoder, profilePrograms, tableCache } from './profiles.ts'
import { kernelSymbols, mappedFiles, perfEvents } from './profiling-rights.ts'
import { receiver } from './receiver.ts'
import { heap, node } from './runtime.ts'
import { targets } from './targets.ts'

/** All needs of svc, in the order of display within their group. */
export const table: readonly Check[] = [
  node,
  heap,
  lastRun,
  eventLoop,
  ...needs.map(asCheck),
  capture,
  profilePrograms,
  perfEvents,
  mappedFiles,
  kernelSymbols,
  tableCache,
  debugFiles,
  decoder,
  ...kernelCounts,
  metricsAddress,
  remoteMounts,
  collectors,
  containerRuntime,
  cluster,
  cloudMetadata,
  logDirectories,
  logFiles,
  logPositions,
  journal,
  gpus,
  targets,
  address,
  certificate,
  exposure,
  receiver,
  diskQueue,
  settings,
  adminSocket,
]

function asCheck(each: Need): Check {
  return { ...each, try: () => [each.try()] }
}
