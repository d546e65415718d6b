const pages: ReadonlySet<string> = new Set([
  '/healthz',
  '/livez',
  '/ready',
  '/readyz',
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
])

/** True if the management API has a page at this path, or reserves it: the agent’s own metrics cannot use it. */
export function isApiPath(path: string): boolean {
  return pages.has(path) || isInternalPath(path) || path.startsWith('/ui/')
}

/** True if a path changes the agent or exposes its internals. */
export function isInternalPath(path: string): boolean {
  return /^\/(admin|debug|-)(\/|$)/.test(path)
}
