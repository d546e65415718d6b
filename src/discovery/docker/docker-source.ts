import { errorText } from '../../lib/logger.ts'
import { type Fault, type Runtime, RuntimeSource, type RuntimeSourceOptions } from '../_runtime-source.ts'
import { EngineError, type EnginePlace } from './engine-client.ts'
import { findEngines } from './engine-places.ts'
import { EngineSession } from './engine-session.ts'

export interface DockerSourceOptions extends RuntimeSourceOptions {
  /** Address in the form of the Docker client; '': `$DOCKER_HOST`, or the first of Docker and Podman that responds. */
  readonly endpoint: string
  /** Environment; that of this process if omitted. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** Reports the containers of Docker, or of Podman by its Docker-compatible API. */
export class DockerSource extends RuntimeSource<EnginePlace> {
  constructor(options: DockerSourceOptions) {
    const { endpoint, rootfs = '/', env } = options
    const runtime: Runtime<EnginePlace> = {
      find: () => findEngines(endpoint, rootfs, env),
      open: (place, session) => new EngineSession(place, session),
      faultOf,
      startAgain,
    }
    super(runtime, options)
  }
}

const startAgain = 'start Docker or Podman again; their known containers are kept until then'

function faultOf(place: EnginePlace, error: unknown, wasReached: boolean): Fault {
  const { name } = place
  const { code, message, isTls } = error instanceof EngineError ? error : new EngineError(errorText(error))
  if (isTls)
    return {
      reason: `cannot connect to the daemon at ${name} over TLS: ${message}`,
      hint: 'put ca.pem, cert.pem and key.pem of a client into the directory in DOCKER_CERT_PATH',
    }
  if (code === 'EACCES' || code === 'EPERM')
    return {
      reason: `no permission to open ${name} (${code})`,
      hint: "run svc as root, or add its user to the socket's group (docker)",
    }
  if (code === 'ECONNREFUSED' || code === 'ENOENT')
    return {
      reason: `nothing listens on ${name} (${code})`,
      hint: wasReached
        ? startAgain
        : place.socketPath === ''
          ? 'start Docker, or correct DOCKER_HOST or agent.discovery.docker.endpoint'
          : 'start Docker or Podman, or delete the stale socket',
    }
  if (wasReached) return { reason: `lost the daemon at ${name}: ${message}`, hint: startAgain }
  if (place.socketPath === '')
    return {
      reason: `the daemon at ${name} does not answer like Docker: ${message}`,
      hint: 'correct DOCKER_HOST or agent.discovery.docker.endpoint; for a daemon with TLS, set DOCKER_TLS_VERIFY and DOCKER_CERT_PATH',
    }
  return {
    reason: `the daemon at ${name} does not answer like Docker: ${message}`,
    hint: 'check that "docker ps" or "podman ps" works on this host, and correct agent.discovery.docker.endpoint',
  }
}
