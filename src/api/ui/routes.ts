// The operations below `/ui/api/`.

import { type Answer, answer, failure, goingOn, json } from '../answer.ts'
import { linesOf, linesType } from '../follow.ts'
import type { ApiRequest, Operation, Parameter } from '../operation.ts'
import type { Schema } from '../schema.ts'
import { errorDocument } from '../schemas.ts'
import * as inside from './inside-shapes.ts'
import * as look from './look-shapes.ts'
import type { Live, ProfileKind, SignalName, TracesQuery, UiSource } from './source.ts'
import { tryOperation } from './try-route.ts'

const follow: Parameter = {
  name: 'follow',
  description: '1: the answer goes on until the client ends it.',
  minimum: 0,
  maximum: 1,
  fallback: 0,
}
const seconds = (fallback: number): Parameter => ({
  name: 'seconds',
  description: 'How far to look back.',
  minimum: 10,
  maximum: 86_400,
  fallback,
})
const service: Parameter = { name: 'service', description: '`service.name`; empty: all.', fallback: '' }
const q: Parameter = { name: 'q', description: 'Text to be found, without regard to case.', fallback: '' }
const limit = (fallback: number, maximum: number): Parameter => ({
  name: 'limit',
  description: 'At most so many.',
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
  description: 'What is profiled.',
  values: ['cpu', 'off_cpu', 'memory'],
  fallback: 'cpu',
}
const spanOfTime = [
  number('since_ms', 'Milliseconds back from now where it begins; 0: the whole window.'),
  number('until_ms', 'The same where it ends; 0: now.'),
]

/** What the page and the commands ask for. */
export function uiOperations(source: UiSource): Operation[] {
  return [
    lines(
      'overview',
      'getOverview',
      'The host, its services and the agent, each second.',
      look.overviewLine,
      [seconds(900)],
      ({ parameters }) => source.overview(parameters.seconds!),
    ),
    lines('map', 'getMap', 'Who asks whom.', look.mapLine, [seconds(60)], ({ parameters }) =>
      source.map(parameters.seconds!),
    ),
    lines(
      'service',
      'getService',
      'One service.',
      look.serviceLine,
      [{ name: 'name', description: '`service.name`.', fallback: '' }],
      ({ texts }) => source.service(texts.name!),
    ),
    lines(
      'traces',
      'findTraces',
      'Traces of the window, and how long spans took.',
      look.tracesLine,
      [
        service,
        number('errors', '1: only those that failed.', 1),
        number('min_ms', 'Only those that took as long.'),
        number('max_ms', 'Only those that took no longer; 0: no bound.'),
        q,
        ...spanOfTime,
        {
          name: 'sort',
          description: 'What comes first.',
          values: ['new', 'slow', 'errors'],
          fallback: 'new',
        },
        limit(50, 500),
      ],
      ({ parameters, texts }) =>
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
      ({ texts }) => source.trace(texts.id!.toLowerCase()),
      'there is no such trace in the window',
    ),
    document('metrics', 'listMetrics', 'What is measured here.', look.metricsDocument, [], () =>
      source.metrics(),
    ),
    lines(
      'series',
      'getSeries',
      'The series of one metric.',
      look.seriesLine,
      [{ name: 'name', description: 'As `/ui/api/metrics` names it.', fallback: '' }],
      ({ texts }) => source.series(texts.name!),
      'there is no such metric',
    ),
    lines(
      'logs',
      'followLogs',
      'Log records of the window, and those that come.',
      look.logsLine,
      [
        service,
        number('min_severity', 'OTLP SeverityNumber.', 24),
        q,
        { name: 'trace_id', description: '32 hexadecimal digits; empty: any.', fallback: '' },
        number('pid', 'Of this process; 0: any.', 4_194_304),
        limit(200, 1000),
      ],
      ({ parameters, texts }) =>
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
      'Profiles of the window.',
      look.profilesLine,
      [kind, service],
      ({ texts }) => source.profiles(texts.kind as ProfileKind, texts.service!),
    ),
    document(
      'flame',
      'getFlame',
      'Profiles of the window as one tree.',
      look.flameDocument,
      [
        kind,
        service,
        ...spanOfTime,
        number('base_since_ms', 'Where that begins which it is compared with.'),
        number('base_until_ms', 'Where that ends.'),
        limit(20_000, 200_000),
      ],
      ({ parameters, texts }) =>
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
    lines(
      'pipeline',
      'followPipeline',
      'Where data goes, and where it is lost.',
      inside.pipelineLine,
      [],
      () => source.pipeline(),
    ),
    lines(
      'tap',
      'tap',
      'Items as they leave the processors, from now on; without `follow` there are none.',
      inside.tapLine,
      [
        {
          name: 'signal',
          description: 'Of which.',
          values: ['traces', 'metrics', 'logs', 'profiles'],
          fallback: 'traces',
        },
        service,
        number('errors', '1: only what failed.', 1),
        number('min_ms', 'Only spans that took as long.'),
        number('otlp', '1: with the item in the JSON form of OTLP.', 1),
      ],
      ({ parameters, texts }) =>
        source.tap({
          signal: texts.signal as SignalName,
          service: texts.service!,
          errors: parameters.errors === 1,
          min_ms: parameters.min_ms!,
          otlp: parameters.otlp === 1,
        }),
    ),
    tryOperation(source),
    document('agent', 'getAgentPage', 'How svc is set up.', inside.agentDocument, [], () => source.agent()),
    document(
      'doctor',
      'runDoctor',
      'What this host can and cannot do. Tries it.',
      inside.doctorDocument,
      [],
      () => source.doctor(),
    ),
    document(
      'explain',
      'explain',
      'Why something is observed or not, and where its data went.',
      inside.explainDocument,
      [
        {
          name: 'target',
          description:
            'The number of a process, a port, or the name of a service, an executable, a container or a pod; `port:80` and `pid:80` tell two that look alike apart.',
          fallback: '',
        },
      ],
      ({ texts }) => source.explain(texts.target!),
    ),
  ]
}

type Asked = Pick<ApiRequest, 'parameters' | 'texts'>

/** A document that may go on. */
function lines<T>(
  name: string,
  id: string,
  summary: string,
  schema: Schema<T>,
  parameters: readonly Parameter[],
  open: (asked: Asked) => Live<T> | undefined,
  missing?: string,
): Operation {
  const path = `/ui/api/${name}`
  return {
    ...common(path, id, summary, parameters),
    parameters: [...parameters, follow],
    outcomes: outcomesOf(linesType, schema, missing),
    handle: async request => {
      const live = open(request)
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
  }
}

/** A document that is what it is. */
function document<T>(
  name: string,
  id: string,
  summary: string,
  schema: Schema<T>,
  parameters: readonly Parameter[],
  read: (asked: Asked) => T | undefined | Promise<T>,
  missing?: string,
): Operation {
  const path = `/ui/api/${name}`
  return {
    ...common(path, id, summary, parameters),
    outcomes: outcomesOf('application/json', schema, missing),
    handle: async request => {
      const found = await read(request)
      return found === undefined ? notThere(path, missing!) : json(200, found)
    },
  }
}

function common(path: string, id: string, summary: string, parameters: readonly Parameter[]) {
  return { method: 'GET', path, id, tag: 'ui', summary, access: 'private', costly: true, parameters } as const
}

function outcomesOf(
  type: string,
  schema: Schema<unknown>,
  missing: string | undefined,
): Operation['outcomes'] {
  return {
    200: { description: 'The document.', content: { [type]: schema } },
    ...(missing !== undefined && {
      404: { description: `No: ${missing}.`, content: { 'application/json': errorDocument } },
    }),
  }
}

function notThere(path: string, why: string): Answer {
  return failure(404, `cannot answer ${path}: ${why}`)
}
