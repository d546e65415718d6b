import { Reloader } from '../agent/reload.ts'
import { refusedReload } from '../agent/reload-view.ts'
import { value, values } from '../agent/self-metrics.ts'
import type { Subsystem } from '../agent/subsystem.ts'
import { selfTraces } from './self-traces.ts'

export const reload: Subsystem<Reloader> = {
  name: 'reload',
  create: agent => {
    const { loaded, load, log, aroundReload = attempt => attempt() } = agent.options
    return new Reloader({
      loaded,
      contents: agent.contents,
      load,
      log,
      around: async (cause, attempt) => {
        const operation = agent.of(selfTraces).begin('reload')
        operation.attribute('svc.reload.cause', cause)
        const outcome = await aroundReload(attempt)
        if (outcome.kind === 'invalid' || outcome.kind === 'failed') operation.fail(outcome.kind)
        operation.end()
        return outcome
      },
      parts: agent.reloadables,
    })
  },
  stop: own => own.stop(),
  state: own => ({ state: 'ok', faults: refusedReload(own.state) }),
  metrics: {
    config_last_reload_successful: value(
      'Whether the last reload of the configuration, or the start, succeeded: 1 if it did.',
      ({ state }) => state.lastSuccessful,
    ),
    config_last_reload_success_timestamp_seconds: value(
      'Time when a configuration was last applied.',
      ({ state }) => state.lastSuccessMs / 1000,
    ),
    config_reloads_total: values(
      'result',
      'Reloads of the configuration.',
      ({ state: { reloads, failures } }) => ({ success: reloads - failures, failure: failures }),
    ),
    config_info: values(
      'hash',
      'Hash of the active configuration; the value is always 1.',
      ({ state: { hash } }) => ({ [hash]: 1 }),
    ),
  },
}
