// Log records of the window, followed by new ones.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { Turn } from '../../foundation/lib/turn.ts'
import type { NumberedLog, RecentLogQuery } from '../../foundation/model/recent-log.ts'
import type { LogSearch } from '../../signals/logs/log-search.ts'
import type { LogsLine } from '../../view/api/ui/documents.ts'
import type { Live, LogsQuery } from '../../view/api/ui/source.ts'
import type { DocumentContext } from './document-context.ts'

type Shown = Extract<LogsLine, { kind: 'records' }>['records']

const lookMs = 1000
const columns = 60
/** Maximum number of new records per line. */
const mostAtATime = 200
/** Time slice before yielding, in milliseconds. */
const sliceMs = 2
const mostServices = 200
const levels = ['unknown', 'trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const

/** A line with the history, then one for each batch of new records. */
export function logs(parts: DocumentContext, query: LogsQuery): Live<LogsLine> {
  const { recent } = parts.logs
  const wanted = queryOf(query)
  let last: number | undefined
  return {
    everyMs: lookMs,
    next: async () => {
      const afterId = last
      last = recent.lastId
      if (afterId === undefined) return [await past(parts, wanted)]
      if (afterId === last) return []
      const search = await searched(recent.search({ ...wanted, limit: mostAtATime, afterId }))
      const records = await shown(parts, search.found)
      const skipped = search.matched - search.found.length + lost(parts, query, afterId)
      return search.matched === 0 && skipped === 0 ? [] : [{ kind: 'records', records, skipped }]
    },
  }
}

/** Records overwritten before they were read. Whether they match is known only if all records match. */
function lost({ logs }: DocumentContext, query: LogsQuery, afterId: number): number {
  const { service, q, trace_id, pid, min_severity } = query
  const fitsAll = service === '' && q === '' && trace_id === '' && pid === 0 && min_severity === 0
  return fitsAll ? Math.max(0, logs.recent.firstId - afterId - 1) : 0
}

async function past(parts: DocumentContext, query: RecentLogQuery): Promise<LogsLine> {
  const { windowMs } = parts.window
  const stepMs = Math.ceil(windowMs / columns)
  // Columns end at whole steps, so that they do not move between updates.
  const endMs = (Math.floor(Date.now() / stepMs) + 1) * stepMs
  const fromMs = endMs - columns * stepMs
  const { recent } = parts.logs
  const search = await searched(
    recent.search({ ...query, histogram: { fromUs: fromMs * 1000, stepUs: stepMs * 1000, columns } }),
  )
  return {
    kind: 'start',
    histogram: {
      from_ms: fromMs,
      step_ms: stepMs,
      levels: levels.map((level, i) => ({
        level,
        counts: [...search.counts.subarray(i * columns, (i + 1) * columns)],
      })),
    },
    records: await shown(parts, search.found),
    services: recent.services().slice(0, mostServices),
    no_data_reason: recent.size > 0 ? '' : reasonFor(parts),
  }
}

async function searched(search: LogSearch): Promise<LogSearch> {
  while (!search.goOn(performance.now() + sliceMs)) await nextTurn()
  return search
}

/** Oldest first. */
async function shown({ shown: textOf }: DocumentContext, found: readonly NumberedLog[]): Promise<Shown> {
  const records: Shown[number][] = []
  const turn = new Turn(sliceMs)
  for (let i = found.length - 1; i >= 0; i--) {
    const { id, timeUs, severity, body, service, pid, containerId, traceId, spanId } = found[i]!
    records.push({
      id,
      time_ms: timeUs / 1000,
      severity,
      body: textOf(body),
      service,
      pid,
      container: containerId,
      trace_id: traceId,
      span_id: spanId,
    })
    if (turn.isOver) await turn.next()
  }
  return records
}

function queryOf({ service, min_severity, q, trace_id, pid, limit }: LogsQuery): RecentLogQuery {
  return {
    limit,
    minSeverity: min_severity,
    ...(service !== '' && { service }),
    ...(q !== '' && { text: q }),
    ...(trace_id !== '' && { traceId: trace_id }),
    ...(pid > 0 && { pid }),
  }
}

/** Why there are no records. */
function reasonFor({ loaded, logs }: DocumentContext): string {
  const { mode, agent } = loaded().config
  const { enabled, container_logs, journald, paths } = agent.logs
  if (mode !== 'agent') return 'In mode collector, svc reads no logs of its host: set mode: agent.'
  if (!enabled) return 'Log collection is off: set agent.logs.enabled: true.'
  const [fault] = logs.faults
  if (fault !== undefined) return `Log collection is degraded: ${fault.reason}; ${fault.hint}.`
  const { counts } = logs
  if (!counts.enabled) return 'Log collection has not started yet: try again in a moment.'
  if (!container_logs && !journald && paths.length === 0)
    return 'No log source is configured: set agent.logs.container_logs: true, agent.logs.journald: true, or agent.logs.paths.'
  if (counts.files > 0) return `Following ${followed(counts.files)}; nothing was written since svc started.`
  if (journald) return 'Following the journal; nothing was written since svc started.'
  const others = 'set agent.logs.paths to files of this host, or agent.logs.journald: true.'
  return paths.length > 0
    ? `No file matches agent.logs.paths${container_logs ? ', and no container writes logs' : ''}: check the paths with ls, or set agent.logs.journald: true.`
    : `No container on this host writes logs. For other logs, ${others}`
}

function followed(files: number): string {
  return files === 1 ? 'one file' : `${files} files`
}
