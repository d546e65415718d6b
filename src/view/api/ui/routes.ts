// The operations below `/ui/api/`.

import { type Answer, answer, failure, goingOn, json } from '../answer.ts'
import { linesOf, linesType } from '../follow.ts'
import type { ApiOperation, ApiRequest, Parameter } from '../operation.ts'
import type { Schema } from '../schema.ts'
import { errorDocument } from '../schemas.ts'
import * as inside from './agent-documents.ts'
import * as look from './host-documents.ts'
import type { Live, ProfileKind, SignalName, TracesQuery, UiSource } from './source.ts'
import { tryOperation } from './try-route.ts'

const follow: Parameter = {
  name: 'follow',
  description: '1 keeps the answer open for updates until the client closes it.',
  minimum: 0,
  maximum: 1,
  fallback: 0,
}
const seconds = (fallback: number): Parameter => ({
  name: 'seconds',
  description: 'Length of the window to show.',
  minimum: 10,
  maximum: 86_400,
  fallback,
})
const service: Parameter = { name: 'service', description: '`service.name`; empty for all.', fallback: '' }
const q: Parameter = { name: 'q', description: 'Text to search for, not case-sensitive.', fallback: '' }
const limit = (fallback: number, maximum: number): Parameter => ({
  name: 'limit',
  description: 'Maximum number of results.',
  minimum: 1,
  maximum,
  fallback,
})
const number = (name: string, description: string, maximum = 999_999_999): Parameter => ({
  name,
  description,
  minimum: 0,
  maximum,
  fallback: 0,
})
const kind: Parameter = {
  name: 'kind',
  description: 'Kind of profile.',
  values: ['cpu', 'off_cpu', 'memory'],
  fallback: 'cpu',
}
const spanOfTime = [
  number('since_ms', 'Start, in milliseconds before now; 0 for the whole window.'),
  number('until_ms', 'End, in milliseconds before now; 0: now.'),
]

type Row = (source: UiSource) => ApiOperation

const rows: readonly Row[] = [
  lines(
    'overview',
    'getOverview',
    'State of the host, its services and the agent, each second.',
    look.overviewLine,
    [seconds(900)],
    (source, { parameters }) => source.overview(parameters.seconds!),
  ),
  lines('map', 'getMap', 'Calls between services.', look.mapLine, [seconds(60)], (source, { parameters }) =>
    source.map(parameters.seconds!),
  ),
  lines(
    'service',
    'getService',
    'Requests, errors and dependencies of one service.',
    look.serviceLine,
    [{ name: 'name', description: '`service.name`.', fallback: '' }],
    (source, { texts }) => source.service(texts.name!),
  ),
  lines(
    'traces',
    'findTraces',
    'Traces in the window, and durations of requests.',
    look.tracesLine,
    [
      service,
      number('errors', '1 for failed traces only.', 1),
      number('min_ms', 'Minimum duration in milliseconds.'),
      number('max_ms', 'Maximum duration in milliseconds; 0 for no limit.'),
      q,
      ...spanOfTime,
      {
        name: 'sort',
        description: 'Order.',
        values: ['new', 'slow', 'errors'],
        fallback: 'new',
      },
      limit(50, 500),
    ],
    (source, { parameters, texts }) =>
      source.traces({
        service: texts.service!,
        errors: parameters.errors === 1,
        min_ms: parameters.min_ms!,
        max_ms: parameters.max_ms!,
        q: texts.q!,
        since_ms: parameters.since_ms!,
        until_ms: parameters.until_ms!,
        sort: texts.sort as TracesQuery['sort'],
        limit: parameters.limit!,
      }),
  ),
  document(
    'trace',
    'getTrace',
    'One trace.',
    look.traceDocument,
    [{ name: 'id', description: '32 hexadecimal digits.', fallback: '' }],
    (source, { texts }) => source.trace(texts.id!.toLowerCase()),
    'the trace is not in the window',
  ),
  document('metrics', 'listMetrics', 'Metrics of this host and of svc.', look.metricsDocument, [], source =>
    source.metrics(),
  ),
  lines(
    'series',
    'getSeries',
    'The series of one metric.',
    look.seriesLine,
    [{ name: 'name', description: 'Metric name, as in `/ui/api/metrics`.', fallback: '' }],
    (source, { texts }) => source.series(texts.name!),
    'unknown metric',
  ),
  lines(
    'logs',
    'followLogs',
    'Log records of the window, followed by new ones.',
    look.logsLine,
    [
      service,
      number('min_severity', 'Lowest OTLP SeverityNumber.', 24),
      q,
      { name: 'trace_id', description: '32 hexadecimal digits; empty for all.', fallback: '' },
      number('pid', 'Process ID; 0 for all.', 4_194_304),
      limit(200, 1000),
    ],
    (source, { parameters, texts }) =>
      source.logs({
        service: texts.service!,
        min_severity: parameters.min_severity!,
        q: texts.q!,
        trace_id: texts.trace_id!.toLowerCase(),
        pid: parameters.pid!,
        limit: parameters.limit!,
      }),
  ),
  lines(
    'profiles',
    'listProfilesOfWindow',
    'Profiles in the window.',
    look.profilesLine,
    [kind, service],
    (source, { texts }) => source.profiles(texts.kind as ProfileKind, texts.service!),
  ),
  document(
    'flame',
    'getFlame',
    'Profiles in the window as one tree.',
    look.flameDocument,
    [
      kind,
      service,
      ...spanOfTime,
      number('base_since_ms', 'Start of the profile to compare with, in milliseconds before now.'),
      number('base_until_ms', 'End of the profile to compare with, in milliseconds before now.'),
      limit(20_000, 200_000),
    ],
    (source, { parameters, texts }) =>
      source.flame({
        kind: texts.kind as ProfileKind,
        service: texts.service!,
        since_ms: parameters.since_ms!,
        until_ms: parameters.until_ms!,
        base_since_ms: parameters.base_since_ms!,
        base_until_ms: parameters.base_until_ms!,
        limit: parameters.limit!,
      }),
  ),
  lines('pipeline', 'followPipeline', 'Data flow and losses.', inside.pipelineLine, [], source =>
    source.pipeline(),
  ),
  lines(
    'tap',
    'tap',
    'Items as they leave the processors, starting now; empty without `follow`.',
    inside.tapLine,
    [
      {
        name: 'signal',
        description: 'Signal.',
        values: ['traces', 'metrics', 'logs', 'profiles'],
        fallback: 'traces',
      },
      service,
      number('errors', '1 for failed items only.', 1),
      number('min_ms', 'Minimum duration of spans in milliseconds.'),
      number('otlp', '1 to include the item as OTLP JSON.', 1),
    ],
    (source, { parameters, texts }) =>
      source.tap({
        signal: texts.signal as SignalName,
        service: texts.service!,
        errors: parameters.errors === 1,
        min_ms: parameters.min_ms!,
        otlp: parameters.otlp === 1,
      }),
  ),
  tryOperation,
  document('agent', 'getAgentPage', 'Configuration and state of svc.', inside.agentDocument, [], source =>
    source.agent(),
  ),
  document(
    'doctor',
    'runDoctor',
    'Runs checks of what works on this host.',
    inside.doctorDocument,
    [],
    source => source.doctor(),
  ),
  document(
    'explain',
    'explain',
    'Why a process is observed or not, and where its data went.',
    inside.explainDocument,
    [
      {
        name: 'target',
        description:
          'Process ID, port, or name of a service, executable, container or pod. `port:80` and `pid:80` resolve ambiguous numbers.',
        fallback: '',
      },
    ],
    (source, { texts }) => source.explain(texts.target!),
  ),
]

/** Operations of the page and the commands. */
export function uiOperations(source: UiSource): ApiOperation[] {
  return rows.map(row => row(source))
}

type Asked = Pick<ApiRequest, 'parameters' | 'texts'>

/** A document that can be followed. */
function lines<T>(
  name: string,
  id: string,
  summary: string,
  schema: Schema<T>,
  parameters: readonly Parameter[],
  open: (source: UiSource, asked: Asked) => Live<T> | undefined,
  missing?: string,
): Row {
  const path = `/ui/api/${name}` as const
  return source => ({
    ...common(path, id, summary, parameters),
    parameters: [...parameters, follow],
    outcomes: outcomesOf(linesType, schema, missing),
    handle: async request => {
      const live = open(source, request)
      if (live === undefined) return notThere(path, missing!)
      let body: Buffer
      try {
        body = Buffer.from(linesOf(await live.next()))
      } catch (error) {
        live.close?.()
        throw error
      }
      if (request.parameters.follow === 1) return goingOn(linesType, body, live)
      live.close?.()
      return answer(200, linesType, body)
    },
  })
}

/** A document that is read once. */
function document<T>(
  name: string,
  id: string,
  summary: string,
  schema: Schema<T>,
  parameters: readonly Parameter[],
  read: (source: UiSource, asked: Asked) => T | undefined | Promise<T>,
  missing?: string,
): Row {
  const path = `/ui/api/${name}` as const
  return source => ({
    ...common(path, id, summary, parameters),
    outcomes: outcomesOf('application/json', schema, missing),
    handle: async request => {
      const found = await read(source, request)
      return found === undefined ? notThere(path, missing!) : json(200, found)
    },
  })
}

function common(path: `/ui/${string}`, id: string, summary: string, parameters: readonly Parameter[]) {
  return { method: 'GET', path, id, tag: 'ui', summary, access: 'private', costly: true, parameters } as const
}

function outcomesOf(
  type: string,
  schema: Schema<unknown>,
  missing: string | undefined,
): ApiOperation['outcomes'] {
  return {
    200: { description: 'The document.', content: { [type]: schema } },
    ...(missing !== undefined && {
      404: { description: `Not found: ${missing}.`, content: { 'application/json': errorDocument } },
    }),
  }
}

function notThere(path: string, why: string): Answer {
  return failure(404, `cannot answer ${path}: ${why}`)
}
