// The agent's metrics about what it found around it: containers, pods, logs, GPUs.

import type { Registry } from '../lib/registry.ts'

/** Totals since the start of the process, and what there is now. */
export interface SurroundingsStats {
  readonly containers: number
  readonly pods: number
  /** Attributes that processes named and that were not taken, by why. */
  readonly lostAttributes: Readonly<Record<string, number>>
  /** By who reads, and why not. */
  readonly unreadProcesses: Readonly<Record<string, Readonly<Record<string, number>>>>
  readonly gpus: number
  /** Whether each source of metadata that is on answers, by name. */
  readonly sources: readonly (readonly [source: string, connected: boolean])[]
  /** Log records by source. */
  readonly records: ReadonlyMap<string, number>
  readonly logFiles: number
  readonly logBehindBytes: number
  readonly logReadBytes: number
  readonly logTruncations: number
  readonly logLostRotations: number
  readonly logLeftOut: number
  readonly logCutTexts: number
  readonly logPaused: boolean
}

type Value = (stats: SurroundingsStats) => number

/** Declares them; `named` puts the prefix before a name. */
export function surroundingsMetrics(
  registry: Registry,
  named: (name: string) => string,
  source: () => SurroundingsStats,
): void {
  const declare = (name: string, help: string, kind: 'counter' | 'gauge', value: Value) =>
    registry.collector(named(name), help, kind, [], emit => emit(value(source())))
  declare('discovery_containers', 'Containers that are there.', 'gauge', ({ containers }) => containers)
  declare('discovery_pods', 'Pods of this node.', 'gauge', ({ pods }) => pods)
  registry.collector(
    named('discovery_connected'),
    'Whether a source of metadata that there is answers.',
    'gauge',
    ['source'],
    emit => {
      for (const [name, connected] of source().sources) emit(connected ? 1 : 0, name)
    },
  )
  registry.collector(
    named('process_attributes_dropped_total'),
    'Attributes of OTEL_RESOURCE_ATTRIBUTES of processes, and of annotations resource.opentelemetry.io/ of pods, that were not taken, or cut: not_allowed (neither service.* nor deployment.*, nor in agent.discovery.process_attributes); too_many; too_long; memory.',
    'counter',
    ['reason'],
    emit => {
      for (const [reason, count] of Object.entries(source().lostAttributes)) emit(count, reason)
    },
  )
  registry.collector(
    named('process_memory_unread_total'),
    'Looks at what processes keep in their memory that were not answered, by reader: strings (command lines and environments: they go by the names of their programs), tls (libraries are found later), profiles (functions of V8 and CPython have no names). Reasons: late (no answer in time, as where a file system that hangs keeps the lock of their memory, or what it has in there); refused (others of their user or container wait for that); busy (answers took so long that svc waits for no more of them now); unavailable (svc-probe does not run).',
    'counter',
    ['reader', 'reason'],
    emit => {
      for (const [reader, lost] of Object.entries(source().unreadProcesses))
        for (const [reason, count] of Object.entries(lost)) emit(count, reader, reason)
    },
  )
  declare('gpu_devices', 'GPUs that are measured.', 'gauge', ({ gpus }) => gpus)
  registry.collector(
    named('log_records_total'),
    'Log records that were read, by source.',
    'counter',
    ['source'],
    emit => {
      for (const [name, records] of source().records) emit(records, name)
    },
  )
  declare('log_files', 'Log files that are followed.', 'gauge', ({ logFiles }) => logFiles)
  declare('log_behind_bytes', 'Bytes in them that are not read yet.', 'gauge', of => of.logBehindBytes)
  declare('log_read_bytes_total', 'Bytes that were read of them.', 'counter', of => of.logReadBytes)
  declare(
    'log_truncations_total',
    'Log files that were cut while they were followed.',
    'counter',
    of => of.logTruncations,
  )
  declare(
    'log_lost_rotations_total',
    'Rotated log files that were gone, or compressed, before they were read.',
    'counter',
    of => of.logLostRotations,
  )
  declare(
    'log_left_out',
    'Log files that are there and not followed, and directories that are not gone through to their end, as their owners have their share.',
    'gauge',
    of => of.logLeftOut,
  )
  declare(
    'log_cut_texts_total',
    'Times that what waited in a log for the end of its line or record was handed on as it was, as too much waited.',
    'counter',
    of => of.logCutTexts,
  )
  declare('log_paused', 'Whether no log is read because the queue is full.', 'gauge', ({ logPaused }) =>
    logPaused ? 1 : 0,
  )
}
