import { boolean, duration, path } from '../foundation/schema/kinds.ts'
import { branch, key } from '../foundation/schema/tree.ts'
import { limits } from '../pipeline/processors/limit-settings.ts'
import { redaction } from '../pipeline/processors/redact/settings.ts'
import { transformation } from '../pipeline/processors/transform/settings.ts'
import { exporting } from './schema-export.ts'

export const pipeline = branch('Processing of telemetry between collection and export.', {
  enabled: key(boolean, true, 'Applies limits, redaction and transformation; export works without it.'),
  limits,
  pii_redaction: redaction,
  transform: transformation,
  export: exporting,
  operations: branch('Operation of the agent.', {
    hot_reload: branch('Configuration reload without a restart.', {
      enabled: key(
        boolean,
        true,
        'Reloads the configuration when files change, on SIGHUP and on `POST /admin/reload`.',
      ),
      config_path: key(
        path,
        '',
        'File that triggers a reload when it changes; empty for the configuration file.',
      ),
      check_interval: key(
        duration({ min: 1000 }),
        30_000,
        'Interval for checking the content of the configuration, secret files and TLS files.',
      ),
      enable_sighup: key(boolean, true, 'Reloads on SIGHUP.'),
    }),
    shutdown: branch('Shutdown of the agent.', {
      timeout: key(
        duration(),
        30_000,
        'Maximum time from the signal to the exit; `shutdown_timeout` applies if this is not set.',
      ),
      drain_timeout: key(
        duration({ min: 0 }),
        10_000,
        'Maximum time to deliver queued data; part of `timeout`.',
      ),
    }),
  }),
})
