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

/** Whether the management API has a page there, or will: the agent’s own metrics cannot stand at such a path. */
export function isApiPath(path: string): boolean {
  return pages.has(path) || isInternalPath(path) || path.startsWith('/ui/')
}

/** Whether a path is there to change the agent or to look inside it. */
export function isInternalPath(path: string): boolean {
  return /^\/(admin|debug|-)(\/|$)/.test(path)
}
