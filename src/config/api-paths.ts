/** Paths of the management API that have a page, or will: the agent’s own metrics cannot stand there. */
export const apiPaths: ReadonlySet<string> = new Set([
  '/healthz',
  '/livez',
  '/ready',
  '/readyz',
  '/status',
  '/status/ebpf',
  '/status/export',
  '/status/discovery',
  '/config',
  '/openapi.json',
  '/ui',
])
