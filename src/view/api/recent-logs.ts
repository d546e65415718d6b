// GET /logs: the latest log records, or those of a span.

import type { RecentLog, RecentLogQuery } from '../../foundation/model/recent-log.ts'
import { type Answer, failure, json } from './answer.ts'
import type { ApiOperation, ApiRequest } from './operation.ts'
import { count, list, named, type Of, object, text, time } from './schema.ts'
import type { AgentView } from './types.ts'

const mostRecords = 1000

const recentLogsDocument = named(
  'RecentLogs',
  object('Latest log records, within a memory limit.', {
    records: list(
      'Records, newest first.',
      object('A record.', {
        time: time('Time of the record, or of its reading if the record has none.'),
        severity: text('OTLP name: `INFO`, `ERROR2`; empty if unknown.'),
        severity_number: count('OTLP SeverityNumber; 0 if unknown.'),
        body: text('Body, at most 4 KiB.'),
        trace_id: text('Trace ID; empty if the record has none.'),
        span_id: text('Span ID; empty if the record has none.'),
        pid: count('Process ID; 0 if unknown.'),
        container: text('`container.id`; empty outside containers.'),
        service: text('`service.name`; empty if there is none.'),
      }),
    ),
  }),
)

type Document = Of<typeof recentLogsDocument>

/** The operation that finds log records. */
export function recentLogs(view: AgentView): ApiOperation {
  return {
    method: 'GET',
    path: '/logs',
    id: 'findLogs',
    tag: 'telemetry',
    summary:
      'Latest log records that match all parameters. With `trace_id`, records without a trace match by `pid` or `container` and by `from` and `to`.',
    access: 'private',
    parameters: [
      { name: 'trace_id', description: '32 hexadecimal digits.', fallback: '' },
      { name: 'span_id', description: '16 hexadecimal digits.', fallback: '' },
      { name: 'pid', description: 'Process ID; 0 for all.', minimum: 0, maximum: 4_194_304, fallback: 0 },
      { name: 'container', description: 'Full `container.id`.', fallback: '' },
      { name: 'service', description: '`service.name`.', fallback: '' },
      { name: 'from', description: 'Earliest time: ISO 8601, with a time zone.', fallback: '' },
      { name: 'to', description: 'Latest time: ISO 8601, with a time zone.', fallback: '' },
      {
        name: 'min_severity',
        description: 'Lowest OTLP SeverityNumber.',
        minimum: 0,
        maximum: 24,
        fallback: 0,
      },
      {
        name: 'limit',
        description: 'Maximum number of records, newest first.',
        minimum: 1,
        maximum: mostRecords,
        fallback: 100,
      },
    ],
    outcomes: {
      200: { description: 'The records.', content: { 'application/json': recentLogsDocument } },
    },
    handle: request => find(view, request),
  }
}

function find(view: AgentView, request: ApiRequest): Answer {
  const query = queryOf(request)
  if ('status' in query) return query
  const document: Document = { records: view.recentLogs(query).map(recordOf) }
  return json(200, document)
}

function queryOf({ parameters, texts }: ApiRequest): RecentLogQuery | Answer {
  const { pid = 0, min_severity: minSeverity = 0, limit = 1 } = parameters
  const { container = '', service = '' } = texts
  const wrong = (parameter: string, why: string) =>
    failure(400, `cannot answer /logs: "${parameter}" must be ${why}`, { parameter })
  const traceId = (texts.trace_id ?? '').toLowerCase()
  if (!/^([0-9a-f]{32})?$/.test(traceId)) return wrong('trace_id', '32 hexadecimal digits')
  const spanId = (texts.span_id ?? '').toLowerCase()
  if (!/^([0-9a-f]{16})?$/.test(spanId)) return wrong('span_id', '16 hexadecimal digits')
  const fromUs = timeUsOf(texts.from ?? '')
  const toUs = timeUsOf(texts.to ?? '')
  const example = 'a time such as 2026-01-31T12:00:00.000Z'
  if (Number.isNaN(fromUs)) return wrong('from', example)
  if (Number.isNaN(toUs)) return wrong('to', example)
  return {
    limit,
    minSeverity,
    ...(traceId !== '' && { traceId }),
    ...(spanId !== '' && { spanId }),
    ...(pid > 0 && { pid }),
    ...(container !== '' && { containerId: container }),
    ...(service !== '' && { service }),
    ...(fromUs !== undefined && { fromUs }),
    ...(toUs !== undefined && { toUs }),
  }
}

const isoTime = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/

/** Microseconds since the Unix epoch; undefined for empty text, NaN for text that is not a time (RFC 3339). */
function timeUsOf(given: string): number | undefined {
  if (given === '') return undefined
  const [, seconds, fraction = '', zone] = isoTime.exec(given) ?? []
  return Date.parse(`${seconds}${zone}`) * 1000 + Number(fraction.slice(0, 6).padEnd(6, '0'))
}

const severities = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'] as const

/** The OTLP name of a SeverityNumber: `ERROR`, `ERROR2`. */
function severityName(severity: number): string {
  const name = severities[Math.floor((severity - 1) / 4)]
  if (name === undefined) return ''
  const step = (severity - 1) % 4
  return step === 0 ? name : `${name}${step + 1}`
}

function recordOf(found: RecentLog): Document['records'][number] {
  const { timeUs, severity, body, traceId, spanId, pid, containerId, service } = found
  return {
    time: isoOf(timeUs),
    severity: severityName(severity),
    severity_number: severity,
    body,
    trace_id: traceId,
    span_id: spanId,
    pid,
    container: containerId,
    service,
  }
}

/** With microseconds; null if the time cannot be written in this form. */
function isoOf(timeUs: number): string | null {
  const wholeMs = Math.floor(timeUs / 1000)
  // RFC 3339 has years of four digits.
  if (!(timeUs > 0 && timeUs < 253_402_300_800_000_000)) return null
  const us = Math.floor(timeUs - wholeMs * 1000)
  return `${new Date(wholeMs).toISOString().slice(0, -1)}${String(us).padStart(3, '0')}Z`
}
