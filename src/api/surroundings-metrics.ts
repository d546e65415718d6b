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
  declare('discovery_containers', 'Containers on this host.', 'gauge', ({ containers }) => containers)
  declare('discovery_pods', 'Pods of this node.', 'gauge', ({ pods }) => pods)
  registry.collector(
    named('discovery_connected'),
    'Whether a source of metadata answers: 1 if it does.',
    'gauge',
    ['source'],
    emit => {
      for (const [name, connected] of source().sources) emit(connected ? 1 : 0, name)
    },
  )
  registry.collector(
    named('process_attributes_dropped_total'),
    'Attributes from OTEL_RESOURCE_ATTRIBUTES of processes, and from annotations resource.opentelemetry.io/ of pods, that were ignored or cut: not_allowed (neither service.* nor deployment.*, nor in agent.discovery.process_attributes); too_many; too_long; memory.',
    'counter',
    ['reason'],
    emit => {
      for (const [reason, count] of Object.entries(source().lostAttributes)) emit(count, reason)
    },
  )
  registry.collector(
    named('process_memory_unread_total'),
    'Failed reads of process memory, by reader: strings (command lines and environments; such processes are named after their programs), tls (libraries are found later), profiles (functions of V8 and CPython have no names). Reasons: late (no answer in time, for example because a hanging file system holds the lock of that memory); refused (other reads for the same user or container are waiting); busy (answers took so long that svc waits for no more of them now); unavailable (svc-probe is not running).',
    'counter',
    ['reader', 'reason'],
    emit => {
      for (const [reader, lost] of Object.entries(source().unreadProcesses))
        for (const [reason, count] of Object.entries(lost)) emit(count, reader, reason)
    },
  )
  declare('gpu_devices', 'Measured GPUs.', 'gauge', ({ gpus }) => gpus)
  registry.collector(
    named('log_records_total'),
    'Log records read, by source.',
    'counter',
    ['source'],
    emit => {
      for (const [name, records] of source().records) emit(records, name)
    },
  )
  declare('log_files', 'Followed log files.', 'gauge', ({ logFiles }) => logFiles)
  declare('log_behind_bytes', 'Unread bytes in followed log files.', 'gauge', of => of.logBehindBytes)
  declare('log_read_bytes_total', 'Bytes read from followed log files.', 'counter', of => of.logReadBytes)
  declare('log_truncations_total', 'Log files truncated while followed.', 'counter', of => of.logTruncations)
  declare(
    'log_lost_rotations_total',
    'Rotated log files deleted or compressed before they were read.',
    'counter',
    of => of.logLostRotations,
  )
  declare(
    'log_left_out',
    'Log files not followed, and directories not scanned to the end, because their owners have reached their share.',
    'gauge',
    of => of.logLeftOut,
  )
  declare(
    'log_cut_texts_total',
    'Incomplete lines or records of logs that were sent as they were, because too much was buffered.',
    'counter',
    of => of.logCutTexts,
  )
  declare(
    'log_paused',
    'Whether reading of logs is paused because the queue is full: 1 if it is.',
    'gauge',
    ({ logPaused }) => (logPaused ? 1 : 0),
  )
}
