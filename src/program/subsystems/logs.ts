import { logsDocument } from '../../view/api/discovery-schemas.ts'
import type { LogsDocument } from '../../view/api/types.ts'
import { Logs, type LogsStatus } from '../agent/logs.ts'
import { off, offByMode } from '../agent/off.ts'
import { nested, value, values } from '../agent/self-metrics.ts'
import { type Fact, fact, type Subsystem } from '../agent/subsystem.ts'
import { cpu } from './cpu.ts'
import { discovery } from './discovery.ts'
import { exporting } from './exporting.ts'
import { livePage } from './live-page.ts'
import { memory } from './memory.ts'
import { processes } from './processes.ts'

const maxFollowed = 100

export const logs: Subsystem<Logs> = {
  name: 'logs',
  keys: ['agent.logs'],
  banner: 'always',
  source: { id: 'logs', name: 'logs', signal: 'logs' },
  create: agent => {
    const { entities, host } = agent.of(discovery)
    const own = new Logs({
      config: agent.config,
      pipeline: agent.of(exporting).pipeline,
      entities,
      resources: agent.of(processes).resources,
      recent: agent.of(livePage).recent,
      host,
      log: agent.options.log,
      governor: agent.of(memory).governor,
    })
    agent.of(cpu).governor.register('logs', own.lever)
    agent.events.containers.listen(() => own.hurry())
    return own
  },
  start: own => own.start(),
  stop: own => own.stop(),
  prepare: (own, config) => own.prepare(config),
  state: (own, config) => {
    const { enabled, container_logs, journald, paths } = config.agent.logs
    const isOff = offByMode(config) ?? (enabled ? undefined : off('agent.logs.enabled'))
    if (isOff !== undefined) return isOff
    const kinds = [
      ...(container_logs ? ['of containers'] : []),
      ...(paths.length > 0 ? [`of files (${paths.join(' ')})`] : []),
      ...(journald ? ['of the journal'] : []),
    ]
    const { faults } = own
    if (kinds.length === 0) return { state: 'off', detail: 'no sources in agent.logs', faults }
    if (!own.isOn) return { state: faults.length > 0 ? 'failed' : 'off', detail: 'not started', faults }
    const { files, paused, records } = own.counts
    return {
      state: 'ok',
      detail: `${kinds.join(', ')}; ${files} files so far`,
      faults,
      pause: paused ? 'paused until the queue has space: see its exporter' : '',
      items: [...records.values()].reduce((sum, read) => sum + read, 0),
      facts: () => factsOf(own.status),
    }
  },
  pages: [
    {
      path: '/status/logs',
      id: 'getLogsStatus',
      summary: 'Followed logs.',
      schema: logsDocument,
      access: 'private',
      read: own => documentOf(own.status),
    },
  ],
  metrics: {
    log_records_total: values('source', 'Log records read, by source.', ({ counts }) => counts.records),
    log_files: value('Followed log files.', ({ counts }) => counts.files),
    log_behind_bytes: value('Unread bytes in followed log files.', ({ status }) => status.behindBytes),
    log_read_bytes_total: value('Bytes read from followed log files.', ({ counts }) => counts.readBytes),
    log_truncations_total: value('Log files truncated while followed.', ({ counts }) => counts.truncations),
    log_lost_rotations_total: value(
      'Rotated log files deleted or compressed before they were read.',
      ({ counts }) => counts.lostRotations,
    ),
    log_left_out: value(
      'Log files not followed, and directories not scanned to the end, because their owners have reached their share.',
      ({ counts: { leftOut } }) => leftOut.files + leftOut.directories,
    ),
    log_cut_texts_total: value(
      'Incomplete lines or records of logs that were sent as they were, because too much was buffered.',
      ({ counts }) => counts.cutTexts,
    ),
    log_paused: value(
      'Whether reading of logs is paused because the queue is full: 1 if it is.',
      ({ counts }) => counts.paused,
    ),
    share_losses_total: nested(({ counts: { enabled, losses, forgottenPositions } }) =>
      enabled ? { logs: losses, log_positions: { refused: 0, taken: forgottenPositions } } : {},
    ),
  },
}

function factsOf({ files, behindBytes, readBytes, lostRotations, leftOut }: LogsStatus): readonly Fact[] {
  return [
    fact('files', files),
    fact('bytes unread', behindBytes),
    fact('bytes read', readBytes),
    fact('files lost by rotation', lostRotations),
    fact('files not followed', leftOut.files),
  ]
}

function documentOf(status: LogsStatus): LogsDocument {
  return {
    enabled: status.enabled,
    records: Object.fromEntries(status.records),
    files: status.files,
    unread_bytes: status.behindBytes,
    read_bytes: status.readBytes,
    paused: status.paused,
    truncations: status.truncations,
    lost_rotations: status.lostRotations,
    omitted_files: status.leftOut.files,
    omitted_directories: status.leftOut.directories,
    evicted_logs: status.losses.taken,
    incomplete_records: status.cutTexts,
    journal: status.journal,
    followed: status.followed.slice(0, maxFollowed),
  }
}
