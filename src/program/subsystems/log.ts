import { change } from '../../foundation/lib/change.ts'
import type { Logger } from '../../foundation/lib/logger.ts'
import type { Subsystem } from '../agent/subsystem.ts'

export const log: Subsystem<Logger> = {
  name: 'log',
  keys: ['log_level', 'log_format'],
  create: ({ options }) => options.log,
  prepare: (own, { log_level: level, log_format: format }, changed) =>
    change(() => {
      // The format chosen for a terminal stays, unless the key changes.
      own.configure(changed.has('log_format') ? { level, format } : { level })
    }),
}
