// The operations of the management API.

import type { ApiPath, probePaths } from '../../config/api-paths.ts'
import type { ProfileKind } from '../../foundation/lib/profile-file.ts'
import { openMetricsText, prefersOpenMetrics } from './accept.ts'
import { type Answer, answer, failure, json } from './answer.ts'
import { processesDocument } from './discovery-schemas.ts'
import { healthOf, publicEbpf, publicExport, publicStatus, readinessOf } from './documents.ts'
import { hostProfiles } from './host-profiles.ts'
import { openapi } from './openapi.ts'
import type { ApiOperation, Operation, Outcome, Parameter } from './operation.ts'
import { recentLogs } from './recent-logs.ts'
import type { Schema } from './schema.ts'
import * as schemas from './schemas.ts'
import type { AgentView, ReloadResult } from './types.ts'
import { browserOperations } from './ui/browser-routes.ts'
import { noPage, pageFiles } from './ui/page-files.ts'
import { uiOperations } from './ui/routes.ts'

const plainText = 'text/plain; version=0.0.4'
const proseText = 'text/plain; charset=utf-8'

/** All operations. `metricsPath` is the path of the metrics page. */
export function operations(view: AgentView, metricsPath: string): readonly Operation[] {
  if (!/^\/[^?#\s]*$/.test(metricsPath))
    throw new Error(`cannot serve the metrics at "${metricsPath}": a path starts with /`)
  const all: Operation[] = [
    ...probes(view),
    metrics(view, metricsPath),
    ...documents(view),
    hostProfiles(view),
    recentLogs(view),
    ...admin(view),
    ...debug(view),
    ...(view.browsers === undefined ? [] : browserOperations(view.browsers)),
    ...(view.ui === undefined ? noPage() : [...uiOperations(view.ui), ...pageFiles(view.pageDirectory)]),
  ]
  let description: Answer | undefined
  all.push({
    method: 'GET',
    path: '/openapi.json',
    id: 'describeApi',
    tag: 'status',
    summary: 'OpenAPI description of this API.',
    access: 'public',
    outcomes: { 200: jsonOutcome('The description.', schemas.openapiDocument) },
    handle: () => {
      description ??= json(200, openapi(all))
      return description
    },
  })
  return all
}

function probes(view: AgentView): ApiOperation[] {
  const healthy = json(200, healthOf({ healthy: true }))
  const live = () => {
    const now = view.health()
    return now.healthy ? healthy : json(503, healthOf(now))
  }
  const ready = () => {
    const document = readinessOf(view.readiness(), view.warnings())
    return json(document.status === 'ready' ? 200 : 503, document)
  }
  const probe = (path: (typeof probePaths)[number], id: string, summary: string): ApiOperation => {
    const [schema, handle] = path.startsWith('/ready')
      ? [schemas.readinessDocument as Schema<unknown>, ready]
      : [schemas.healthDocument as Schema<unknown>, live]
    const outcomes = { 200: jsonOutcome('Yes.', schema), 503: jsonOutcome('No.', schema) }
    return { method: 'GET', path, id, tag: 'probes', summary, access: 'open', outcomes, handle }
  }
  return [
    probe('/healthz', 'getHealth', 'Whether the process works; its receivers do not matter.'),
    probe('/livez', 'getLive', 'Same as /healthz.'),
    probe('/ready', 'getReadiness', 'Whether all requested features work.'),
    probe('/readyz', 'getReadinessAlias', 'Same as /ready.'),
  ]
}

function metrics(view: AgentView, path: string): Operation {
  return {
    method: 'GET',
    path,
    id: 'getMetrics',
    tag: 'telemetry',
    summary: 'Metrics of the agent about itself; OpenMetrics if the Accept header prefers it.',
    access: 'public',
    outcomes: {
      200: { description: 'The metrics.', content: { [plainText]: undefined, [openMetricsText]: undefined } },
    },
    handle: ({ headers }) => {
      const openMetrics = prefersOpenMetrics(headers.accept)
      const type = openMetrics ? openMetricsText : plainText
      return answer(200, type, Buffer.from(view.registry.write(openMetrics)))
    },
  }
}

function documents(view: AgentView): ApiOperation[] {
  const page = (
    path: ApiPath,
    id: string,
    summary: string,
    schema: Schema<unknown>,
    read: (isPublic: boolean) => unknown,
    more: { readonly costly?: true; readonly access?: 'private' } = {},
  ) =>
    ({
      method: 'GET',
      path,
      id,
      tag: 'status',
      summary,
      access: 'public',
      ...more,
      outcomes: { 200: jsonOutcome('The document.', schema) },
      handle: async ({ isPublic }) => json(200, await read(isPublic)),
    }) as const satisfies ApiOperation
  return [
    page('/status', 'getStatus', 'Summary of the agent’s state.', schemas.statusDocument, isPublic =>
      isPublic ? publicStatus(view.status()) : view.status(),
    ),
    page('/status/ebpf', 'getEbpf', 'eBPF programs and maps.', schemas.ebpfDocument, isPublic =>
      isPublic ? publicEbpf(view.ebpf()) : view.ebpf(),
    ),
    page('/status/export', 'getExport', 'Export and its queues.', schemas.exportDocument, isPublic =>
      isPublic ? publicExport(view.exporting()) : view.exporting(),
    ),
    ...view.pages.map(({ path, id, summary, schema, read, ...more }) =>
      page(path, id, summary, schema, () => read(), more),
    ),
    processes(view),
    page(
      '/config',
      'getConfig',
      'The effective configuration, secrets redacted.',
      schemas.configDocument,
      () => view.config(),
    ),
  ]
}

function processes(view: AgentView): ApiOperation {
  return {
    method: 'GET',
    path: '/status/processes',
    id: 'getProcesses',
    tag: 'status',
    summary:
      'Why a process, or the processes on a port, are observed or not; without parameters, all processes with observed calls.',
    access: 'private',
    costly: true,
    parameters: [
      { name: 'pid', description: 'Process ID; 0 for all.', minimum: 0, maximum: 4_194_304, fallback: 0 },
      {
        name: 'port',
        description: 'Port on which the processes listen; 0 for all.',
        minimum: 0,
        maximum: 65_535,
        fallback: 0,
      },
    ],
    outcomes: { 200: jsonOutcome('The document.', processesDocument) },
    handle: async ({ parameters: { pid = 0, port = 0 } }) => json(200, await view.processes(pid, port)),
  }
}

function admin(view: AgentView): ApiOperation[] {
  return [
    {
      method: 'POST',
      path: '/admin/reload',
      id: 'reload',
      tag: 'admin',
      summary: 'Reloads the configuration. If it is invalid, the previous one stays active.',
      access: 'private',
      outcomes: {
        200: jsonOutcome('Applied, or unchanged.', schemas.reloadDocument),
        400: jsonOutcome(
          'The configuration is invalid; `details.problems` lists all errors.',
          schemas.errorDocument,
        ),
        500: jsonOutcome('The configuration is valid but could not be applied.', schemas.errorDocument),
      },
      handle: async () => reloadAnswer(await view.reload()),
    },
    {
      method: 'POST',
      path: '/admin/flush',
      id: 'flush',
      tag: 'admin',
      summary: 'Exports the queued data and waits for the receiver, at most as long as a shutdown.',
      access: 'private',
      costly: true,
      outcomes: { 200: jsonOutcome('Items that the receiver acknowledged.', schemas.flushDocument) },
      handle: async () => json(200, { status: 'ok', ...(await view.flush()) }),
    },
    {
      method: 'GET',
      path: '/admin/logs',
      id: 'getLogs',
      tag: 'admin',
      summary: 'Recent log records of the agent, one JSON object per line.',
      access: 'private',
      outcomes: { 200: { description: 'The records.', content: { 'application/x-ndjson': undefined } } },
      handle: () => answer(200, 'application/x-ndjson', Buffer.from(view.logs())),
    },
  ]
}

function reloadAnswer(result: ReloadResult): Answer {
  switch (result.kind) {
    case 'applied':
    case 'unchanged':
      return json(200, {
        status: 'ok',
        message: result.message,
        changed: result.changed,
        requires_restart: result.restart,
        config_hash: result.hash,
      })
    case 'invalid':
      return failure(400, result.message, {
        problems: result.problems.map(({ where, line, column, key, message }) => ({
          file: where,
          line,
          column,
          key,
          message,
        })),
      })
    case 'failed':
      return failure(500, result.message, { part: result.part })
    case 'off':
      return result.key === ''
        ? failure(503, result.message, {}, { 'Retry-After': '5' })
        : failure(403, result.message, { key: result.key })
  }
}

function debug(view: AgentView): ApiOperation[] {
  const common = { method: 'GET', tag: 'debug', access: 'private', debug: true } as const
  const index = {
    profiles: view.profiles.map(({ name, summary }) => ({
      name,
      path: `/debug/pprof/${name}`,
      description: summary,
    })),
  }
  const indexAt = (path: ApiPath, id: string): ApiOperation => ({
    ...common,
    path,
    id,
    summary: 'Profiles of the agent process.',
    outcomes: { 200: jsonOutcome('The list.', schemas.profileIndex) },
    handle: () => json(200, index),
  })
  return [
    indexAt('/debug/pprof/', 'listProfiles'),
    indexAt('/debug/pprof', 'listProfilesAlias'),
    ...view.profiles.map(kind => ({ ...common, ...profile(view, kind) })),
    {
      ...common,
      path: '/debug/vars',
      id: 'getVars',
      summary: 'Runtime variables.',
      outcomes: { 200: jsonOutcome('The variables.', schemas.varsDocument) },
      handle: () => json(200, view.vars()),
    },
    {
      ...common,
      path: '/debug/pipeline/stats',
      id: 'getPipeline',
      summary: 'Balance of all items.',
      outcomes: { 200: jsonOutcome('The balance of each signal.', schemas.pipelineDocument) },
      handle: () => json(200, view.pipeline()),
    },
  ]
}

function profile(view: AgentView, { name, summary, seconds }: ProfileKind) {
  const verbosity: Parameter = {
    name: 'debug',
    description: 'Above 0 for readable text.',
    minimum: 0,
    maximum: 2,
    fallback: 0,
  }
  const duration: Parameter[] = seconds
    ? [
        {
          name: 'seconds',
          description: 'Length of the recording.',
          minimum: seconds.min,
          maximum: seconds.max,
          fallback: seconds.default,
        },
      ]
    : []
  const type = name === 'trace' ? 'application/json' : 'application/octet-stream'
  return {
    path: `/debug/pprof/${name}`,
    id: `take${name[0]!.toUpperCase()}${name.slice(1)}`,
    summary: `${summary}.`,
    costly: true,
    parameters: [...duration, verbosity],
    outcomes: {
      200: { description: 'The profile.', content: { [type]: undefined, [proseText]: undefined } },
      ...(seconds ? { 409: jsonOutcome('Another profile is in progress.', schemas.errorDocument) } : {}),
    },
    handle: async ({ parameters, signal }) => {
      const file = await view.profile(name, parameters.seconds ?? 0, parameters.debug!, signal)
      if (typeof file === 'string') return failure(409, file)
      const headers = file.contentType.startsWith('text/')
        ? undefined
        : { 'Content-Disposition': `attachment; filename="${file.fileName}"` }
      return answer(200, file.contentType, file.body, headers)
    },
  } as const satisfies Partial<ApiOperation>
}

function jsonOutcome(description: string, schema: Schema<unknown>): Outcome {
  return { description, content: { 'application/json': schema } }
}
