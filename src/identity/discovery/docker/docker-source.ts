import { errorText } from '../../../foundation/lib/logger.ts'
import {
  type Fault,
  faultOf,
  type Runtime,
  RuntimeSource,
  type RuntimeSourceOptions,
} from '../_runtime-source.ts'
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
      faultOf: engineFault,
      startAgain,
    }
    super(runtime, options)
  }
}

const startAgain = 'start Docker or Podman again; their known containers are kept until then'

function engineFault({ name, socketPath }: EnginePlace, error: unknown, wasReached: boolean): Fault {
  const { code, message, isTls } = error instanceof EngineError ? error : new EngineError(errorText(error))
  if (isTls)
    return {
      reason: `cannot connect to the daemon at ${name} over TLS: ${message}`,
      hint: 'put ca.pem, cert.pem and key.pem of a client into the directory in DOCKER_CERT_PATH',
    }
  const isRemote = socketPath === ''
  return faultOf(name, code, message, wasReached, {
    denied: () => ({
      reason: `no permission to open ${name} (${code})`,
      hint: "run svc as root, or add its user to the socket's group (docker)",
    }),
    absent: isRemote
      ? 'start Docker, or correct DOCKER_HOST or agent.discovery.docker.endpoint'
      : 'start Docker or Podman, or delete the stale socket',
    daemon: 'the daemon',
    startAgain,
    strange: {
      reason: `the daemon at ${name} does not answer like Docker: ${message}`,
      hint: isRemote
        ? 'correct DOCKER_HOST or agent.discovery.docker.endpoint; for a daemon with TLS, set DOCKER_TLS_VERIFY and DOCKER_CERT_PATH'
        : 'check that "docker ps" or "podman ps" works on this host, and correct agent.discovery.docker.endpoint',
    },
  })
}
