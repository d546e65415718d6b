import { dirname } from 'node:path'
import { RunRecord } from '../agent/run-record.ts'
import { values } from '../agent/self-metrics.ts'
import type { Subsystem } from '../agent/subsystem.ts'

export const lastRun: Subsystem<RunRecord> = {
  name: 'last run',
  create: ({ config, options: { log } }) =>
    new RunRecord(dirname(config.pipeline.export.queue.directory), log),
  metrics: {
    previous_runs_total: values(
      'cause',
      'Previous runs by the cause of their end, as recorded in the state directory.',
      ({ ends }) => ends,
    ),
  },
}
