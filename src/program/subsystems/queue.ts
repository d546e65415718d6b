import { type Signal, signals } from '../../foundation/model/signal.ts'
import { DiskStore } from '../../pipeline/disk/disk-store.ts'
import { type ExportPipelines, queueHint } from '../agent/export-pipelines.ts'
import { type Metric, value, values } from '../agent/self-metrics.ts'
import type { Fault, State, Subsystem } from '../agent/subsystem.ts'
import { exporting } from './exporting.ts'

/** The queue of data while the receiver does not answer. */
export const queue: Subsystem<ExportPipelines> = {
  name: 'queue',
  banner: 'always',
  create: agent => agent.of(exporting),
  state: (own, config) => stateOf(own, config.pipeline.export.queue),
  metrics: {
    export_queue_size: bySignal('Items waiting for export.', (own, signal) => own.waiting(signal)),
    export_queue_bytes: bySignal(
      'Bytes waiting for export, in memory or on disk.',
      ({ pipeline }, signal) => pipeline.state(signal).queuedBytes,
    ),
    export_queue_recovered_total: bySignal(
      'Items in the disk queue at the start, left by a previous process.',
      ({ pipeline }, signal) => pipeline.state(signal).recovered,
    ),
    disk_queue_bytes: value('Size of all files of the disk queue.', own => diskOf(own)?.bytes),
    disk_queue_max_bytes: value('Size limit of the disk queue.', own => diskOf(own)?.maxBytes),
    disk_queue_degraded: value(
      'Whether batches stay in memory because the disk does not work: 1 if they do.',
      own => {
        const state = diskOf(own)?.state
        return state && state !== 'ok'
      },
    ),
  },
}

function bySignal(
  help: string,
  read: (own: ExportPipelines, signal: Signal) => number,
): Metric<ExportPipelines> {
  return values('signal_type', help, own => signals.map(signal => [signal, read(own, signal)] as const))
}

function diskOf({ store }: ExportPipelines) {
  return store instanceof DiskStore ? store.state : undefined
}

function stateOf(
  { store, endpoint, pipeline }: ExportPipelines,
  { directory, max_size_bytes: most }: { readonly directory: string; readonly max_size_bytes: number },
): State {
  const faults = faultsOf(store)
  if (endpoint === '') return { state: 'ok', faults }
  if (typeof store === 'string') return { state: 'failed', faults }
  if (store === undefined) {
    const detail = 'in memory only, lost at a crash; data left at shutdown is counted as dropped'
    return { state: 'off', detail, faults }
  }
  const recovered = signals.reduce((sum, signal) => sum + pipeline.state(signal).recovered, 0)
  const found = recovered > 0 ? `; ${recovered} items recovered from an earlier run` : ''
  return {
    state: 'ok',
    detail: `on disk in ${directory}, up to ${Math.round(most / 1e6)} MB${found}`,
    faults,
  }
}

function faultsOf(store: ExportPipelines['store']): readonly Fault[] {
  if (typeof store === 'string')
    return [{ subsystem: 'queue', reason: store, hint: queueHint, fails: 'otlp' }]
  const { state, reason } = store?.state ?? { state: 'ok', reason: '' }
  if (state === 'ok') return []
  const hint = 'no action needed; svc resumes when the disk works again'
  return [{ subsystem: 'queue', reason, hint, fails: 'otlp' }]
}
