import { limits } from '../processors/limit-settings.ts'
import { redaction } from '../processors/redact/settings.ts'
import { transformation } from '../processors/transform/settings.ts'
import { boolean, duration, path } from '../schema/kinds.ts'
import { branch, key } from '../schema/tree.ts'
import { exporting } from './schema-export.ts'

export const pipeline = branch('What happens to telemetry between collection and export.', {
  enabled: key(boolean, true, 'Applies limits, redaction and transformation; export goes on without it.'),
  limits,
  pii_redaction: redaction,
  transform: transformation,
  export: exporting,
  operations: branch('Running the agent.', {
    hot_reload: branch('Taking up changes of the configuration without a restart.', {
      enabled: key(
        boolean,
        true,
        'Takes up changes: by looking at the files, on SIGHUP and by `POST /admin/reload`.',
      ),
      config_path: key(
        path,
        '',
        'File whose changes make the agent read its configuration again; empty for the configuration itself.',
      ),
      check_interval: key(
        duration({ min: 1000 }),
        30_000,
        'Time between two looks at the content of the configuration, of secret files and of TLS files.',
      ),
      enable_sighup: key(boolean, true, 'Takes up changes on SIGHUP.'),
    }),
    shutdown: branch('Ending the agent.', {
      timeout: key(
        duration(),
        30_000,
        'Longest time from the signal to the end; `shutdown_timeout` stands in where this is not set.',
      ),
      drain_timeout: key(
        duration({ min: 0 }),
        10_000,
        'Longest time to deliver what is queued; part of `timeout`.',
      ),
    }),
  }),
})
