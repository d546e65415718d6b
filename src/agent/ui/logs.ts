// Log records of the window, and those that come.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { LogsLine } from '../../api/ui/documents.ts'
import type { Live, LogsQuery } from '../../api/ui/source.ts'
import { Turn } from '../../lib/turn.ts'
import type { LogSearch } from '../../logs/log-search.ts'
import type { NumberedLog, RecentLogQuery } from '../../model/recent-log.ts'
import type { UiParts } from './parts.ts'

type Shown = Extract<LogsLine, { kind: 'records' }>['records']

const lookMs = 1000
const columns = 60
/** Records of a look that are shown. */
const mostAtATime = 200
/** Work that is done before others have their turn. */
const sliceMs = 2
const mostServices = 200
const levels = ['unknown', 'trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const

/** A line with the past, then one whenever there are new records. */
export function logs(parts: UiParts, query: LogsQuery): Live<LogsLine> {
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

/** Records that were overwritten before anybody looked. Whether they fitted is known only where all do. */
function lost({ logs }: UiParts, query: LogsQuery, afterId: number): number {
  const { service, q, trace_id, pid, min_severity } = query
  const fitsAll = service === '' && q === '' && trace_id === '' && pid === 0 && min_severity === 0
  return fitsAll ? Math.max(0, logs.recent.firstId - afterId - 1) : 0
}

async function past(parts: UiParts, query: RecentLogQuery): Promise<LogsLine> {
  const { windowMs } = parts.window
  const stepMs = Math.ceil(windowMs / columns)
  // Columns end with whole steps, so that they stand still from one look to the next.
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
    off: recent.size > 0 ? '' : reasonFor(parts),
  }
}

async function searched(search: LogSearch): Promise<LogSearch> {
  while (!search.goOn(performance.now() + sliceMs)) await nextTurn()
  return search
}

/** The oldest first. */
async function shown({ shown: textOf }: UiParts, found: readonly NumberedLog[]): Promise<Shown> {
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

/** Why there are none. */
function reasonFor({ loaded, logs }: UiParts): string {
  const { mode, agent } = loaded().config
  const { enabled, container_logs, journald, paths } = agent.logs
  if (mode !== 'agent') return 'A collector reads no logs of its host: set mode: agent there.'
  if (!enabled) return 'Logs are switched off: set agent.logs.enabled: true.'
  const [fault] = logs.faults
  if (fault !== undefined) return `Logs are not read as they should be: ${fault.reason}; ${fault.hint}.`
  const { status } = logs
  if (!status.enabled) return 'Logs are not read yet: look again in a moment.'
  if (!container_logs && !journald && paths.length === 0)
    return 'There is nothing to read: set agent.logs.container_logs: true, agent.logs.journald: true, or agent.logs.paths.'
  if (status.files > 0)
    return `${followed(status.files)} followed, and nothing was written there since svc began.`
  if (journald) return 'The journal is followed, and nothing was written there since svc began.'
  const others = 'set agent.logs.paths to files of this host, or agent.logs.journald: true.'
  return paths.length > 0
    ? `No file is there that agent.logs.paths names${container_logs ? ', and no log of a container' : ''}: ls shows what is; or set agent.logs.journald: true.`
    : `No container writes logs on this host. For others, ${others}`
}

function followed(files: number): string {
  return files === 1 ? 'One file is' : `${files} files are`
}
