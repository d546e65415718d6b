import { realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Where Docker and Podman listen (dockerd(8), podman-system-service(1)), in the order in which they are asked. */
const usual = ['/run/docker.sock', '/var/run/docker.sock', '/run/podman/podman.sock']

/** The sockets to try, or why there is none. */
export interface FoundSockets {
  readonly paths: readonly string[]
  /** '' where there are some. */
  readonly reason: string
  /** '' where nothing is wrong: many hosts have no containers. */
  readonly mend: string
}

/**
 * The sockets that there are now. `endpoint` is a path or `unix://…`; '' for those of `$DOCKER_HOST` and of the usual
 * places, which are looked for below `rootfs`.
 */
export function findSockets(
  endpoint: string,
  rootfs: string,
  dockerHost: string = process.env.DOCKER_HOST ?? '',
): FoundSockets {
  if (endpoint === '') return usualSockets(rootfs, unixPath(dockerHost))
  const path = unixPath(endpoint)
  if (path === '')
    return {
      paths: [],
      reason: `${endpoint} is no Unix socket`,
      mend: 'set agent.discovery.docker.endpoint to a path, as unix:///run/docker.sock',
    }
  if (isThere(path)) return { paths: [path], reason: '', mend: '' }
  return {
    paths: [],
    reason: `there is no socket ${path}`,
    mend: 'start Docker or Podman, or correct agent.discovery.docker.endpoint',
  }
}

function usualSockets(rootfs: string, first: string): FoundSockets {
  const places = usual.map(path => join(rootfs, path))
  const seen = new Set<string>()
  const paths: string[] = []
  for (const path of first === '' ? places : [first, ...places]) {
    if (!isThere(path)) continue
    const real = realPath(path)
    if (!seen.has(real)) paths.push(path)
    seen.add(real)
  }
  if (paths.length > 0) return { paths, reason: '', mend: '' }
  return {
    paths,
    reason: 'no Docker or Podman socket is there',
    mend: '',
  }
}

/** The path of `unix:///run/docker.sock` or `/run/docker.sock`; '' of anything else. */
function unixPath(address: string): string {
  const path = address.startsWith('unix://') ? address.slice('unix://'.length) : address
  return path.startsWith('/') ? path : ''
}

/** What may not be looked at counts as there: the connection then tells what is refused. */
function isThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isSocket() === true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES'
  }
}

/** `/var/run` is a link to `/run` nearly everywhere. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path // It went away, or may not be looked at.
  }
}
