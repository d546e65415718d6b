/** Paths without a token: supervisors use them. */
export const probePaths = ['/healthz', '/livez', '/ready', '/readyz'] as const

/** Paths of the management API, without those below `/ui`, `/admin` and `/debug`: its operations can have no others. */
export const apiPaths = [
  ...probePaths,
  '/status',
  '/status/ebpf',
  '/status/export',
  '/status/discovery',
  '/status/logs',
  '/status/gpu',
  '/status/targets',
  '/status/processes',
  '/config',
  '/openapi.json',
  '/profiles',
  '/logs',
  '/ui',
] as const

/** A path that the management API may serve. */
export type ApiPath = (typeof apiPaths)[number] | `/ui/${string}` | `/admin/${string}` | `/debug/${string}`

const pages: ReadonlySet<string> = new Set(apiPaths)

/** True if the management API has a page at this path, or reserves it: the agent’s own metrics cannot use it. */
export function isApiPath(path: string): boolean {
  return pages.has(path) || isInternalPath(path) || path.startsWith('/ui/')
}

/** True if a path changes the agent or exposes its internals. */
export function isInternalPath(path: string): boolean {
  return /^\/(admin|debug|-)(\/|$)/.test(path)
}
