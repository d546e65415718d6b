// The paths of the management API and what answers them.

import type { IncomingHttpHeaders } from 'node:http'
import { type Answer, answer, failure, json } from './answer.ts'
import { healthDocument, readinessDocument } from './documents.ts'
import type { AgentView, Health } from './types.ts'

/** A request whose body was read already. */
export interface ApiRequest {
  /** Without query. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
}

export type Handler = (request: ApiRequest) => Answer
/** Path → method → handler. HEAD is answered by GET's handler. */
export type Routes = ReadonlyMap<string, Readonly<Partial<Record<'GET' | 'POST', Handler>>>>

/** Paths that need no token, for they are what a supervisor asks. */
export const probePaths = ['/healthz', '/livez', '/ready', '/readyz'] as const

const notBuilt = /^\/(?:status\/discovery$|debug\/|admin\/|openapi\.json$|ui(?:\/|$))/

/** All routes. `metricsPath` is where the metrics page stands; `health` judges the agent and its event loop. */
export function routes(view: AgentView, metricsPath: string, health: () => Health): Routes {
  const all = new Map<string, Partial<Record<'GET' | 'POST', Handler>>>()
  const get = (path: string, handler: Handler) => {
    if (!/^\/[^?#\s]*$/.test(path))
      throw new Error(`cannot serve the metrics at "${path}": a path starts with /`)
    if (all.has(path)) throw new Error(`cannot serve the metrics at ${path}: that path has another page`)
    all.set(path, { GET: handler })
  }
  const healthy = json(200, { status: 'ok' })
  const live = () => {
    const now = health()
    return now.healthy ? healthy : json(503, healthDocument(now))
  }
  const ready = () => {
    const document = readinessDocument(view.readiness())
    return json(document.status === 'ready' ? 200 : 503, document)
  }
  get('/healthz', live)
  get('/livez', live)
  get('/ready', ready)
  get('/readyz', ready)
  get('/status', () => json(200, view.status()))
  get('/status/ebpf', () => json(200, view.ebpf()))
  get('/status/export', () => json(200, view.exporting()))
  get('/config', () => json(200, view.config()))
  get(metricsPath, ({ headers }) => {
    const openMetrics = prefersOpenMetrics(headers.accept)
    const type = openMetrics
      ? 'application/openmetrics-text; version=1.0.0; charset=utf-8'
      : 'text/plain; version=0.0.4'
    return answer(200, type, Buffer.from(view.registry.write(openMetrics)))
  })
  return all
}

/** What a path without a route answers. */
export function notFound(path: string): Answer {
  const why = notBuilt.test(path) ? 'it is not built in this version' : 'there is no such path'
  return failure(404, `cannot answer ${path}: ${why}`, { path })
}

/** True when an Accept header ranks OpenMetrics 1.0 at least as high as plain text (RFC 9110 §12.5.1). */
export function prefersOpenMetrics(accept: string | undefined): boolean {
  if (!accept?.includes('application/openmetrics-text')) return false
  let openMetrics = 0
  let plain = 0
  for (const range of accept.split(',')) {
    const [type, ...parameters] = range.split(';').map(part => part.trim().toLowerCase())
    const weight = Number(parameters.find(parameter => parameter.startsWith('q='))?.slice(2) ?? 1)
    const version = parameters.find(parameter => parameter.startsWith('version='))?.slice(8) ?? '1.0.0'
    if (type === 'application/openmetrics-text' && version === '1.0.0')
      openMetrics = Math.max(openMetrics, weight)
    if (type === 'text/plain') plain = Math.max(plain, weight)
  }
  return openMetrics > 0 && openMetrics >= plain
}
