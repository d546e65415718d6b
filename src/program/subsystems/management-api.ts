import type { Config } from '../../config/index.ts'
import { duplicate } from '../../kernel/duplicate.ts'
import { peerUser } from '../../kernel/peer-user.ts'
import type { BrowserKey } from '../../view/api/browser-key.ts'
import type { Operation } from '../../view/api/operation.ts'
import { type Api, startApi } from '../../view/api/server.ts'
import { value, values } from '../agent/self-metrics.ts'
import type { AnsweredRequest } from '../agent/self-tracing.ts'
import type { Subsystem } from '../agent/subsystem.ts'
import { isDebugged } from './debug-mode.ts'
import { selfTraces } from './self-traces.ts'

export interface ManagementApi {
  /** Undefined while off or starting. */
  api: Api | undefined
  /** Serves the documents of the other subsystems. Rejects with a `StartError`. */
  readonly serve: (operations: readonly Operation[], browserKey: BrowserKey | undefined) => Promise<void>
  /** Warns if other hosts may read metrics, health and the configuration, or everything. */
  readonly warnOfExposure: () => void
}

export const managementApi: Subsystem<ManagementApi> = {
  name: 'management API',
  keys: ['self_telemetry', 'log_level'],
  create: agent => {
    const { log } = agent.options
    const settings = apiSettings(agent.config)
    const observe = (request: AnsweredRequest) => agent.of(selfTraces).apiRequest(request)
    const own: ManagementApi = {
      api: undefined,
      serve: async (operations, browserKey) => {
        own.api = await startApi({ settings, operations, log, peerUser, duplicate, browserKey, observe })
        own.warnOfExposure()
      },
      warnOfExposure: () => {
        if (!own.api?.exposed) return
        log.warn('the management API is reachable from other hosts without a token or client certificates', {
          url: own.api.url('/'),
          hint: 'set self_telemetry.auth.enabled and a bearer_token, or self_telemetry.listen: "127.0.0.1:19090"',
        })
      },
    }
    return own
  },
  stop: ({ api }) => api?.finish(),
  close: ({ api }) => api?.close(),
  state: ({ api }) => {
    const reason = api?.socketFault
    const hint = 'set self_telemetry.admin_socket to a path that svc can create, or to "" for no socket'
    return { state: 'ok', faults: reason === undefined ? [] : [{ subsystem: 'admin socket', reason, hint }] }
  },
  checks: ({ api }) =>
    api === undefined ? {} : { address: { ok: `${api.url('/')} is this running agent` } },
  prepare: (own, config) => {
    const { api } = own
    const prepared = api?.prepare(apiSettings(config))
    if (!api || !prepared) return undefined
    return {
      commit: () => {
        const before = api.exposed
        prepared.commit()
        if (!before) own.warnOfExposure()
      },
      abort: () => prepared.abort(),
    }
  },
  metrics: {
    insecure_listen: value(
      'Whether the management API is reachable from other hosts without a token or client certificates: 1 if it is.',
      ({ api }) => api?.exposed ?? false,
    ),
    api_responses_total: values(
      'code',
      'Responses of the management API, including those to unreadable requests.',
      ({ api }) =>
        [...(api?.stats().requests ?? [])].map(([code, answers]) => [String(code), answers] as const),
    ),
    api_refused_total: values(
      'reason',
      'Requests rejected by the management API, by reason.',
      ({ api }) => api?.stats().refused,
    ),
    api_connections: value(
      'Open connections to the management API.',
      ({ api }) => api?.stats().connections ?? 0,
    ),
    api_connections_dropped_total: value(
      'Connections to the management API closed because too many were open.',
      ({ api }) => api?.stats().dropped_connections ?? 0,
    ),
    api_tls_handshakes_failed_total: value(
      'Failed TLS handshakes with the management API.',
      ({ api }) => api?.stats().failed_handshakes ?? 0,
    ),
  },
}

/** The API's settings, with those that follow from keys elsewhere. */
function apiSettings(config: Config): Config['self_telemetry'] {
  return { ...config.self_telemetry, debug: isDebugged(config) }
}
