import { errorText } from '../../lib/logger.ts'
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
  /** As the client of Docker takes it; '': that of `$DOCKER_HOST`, Docker's or Podman's, whichever answers first. */
  readonly endpoint: string
  /** Left out: this process's. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** Follows the containers of Docker, or of Podman by its socket that speaks as Docker's does. */
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

const startAgain = 'start Docker or Podman again; what is known of their containers is kept until then'

function engineFault({ name, socketPath }: EnginePlace, error: unknown, wasReached: boolean): Fault {
  const { code, message, isTls } = error instanceof EngineError ? error : new EngineError(errorText(error))
  if (isTls)
    return {
      reason: `the daemon at ${name} cannot be asked over TLS: ${message}`,
      hint: 'put ca.pem, cert.pem and key.pem of a client into the directory that DOCKER_CERT_PATH names',
    }
  const isRemote = socketPath === ''
  return faultOf(name, code, message, wasReached, {
    denied: {
      reason: `this process may not open ${name} (${code})`,
      hint: 'run svc as root, or add its user to the group of the socket (docker)',
    },
    absent: isRemote
      ? 'start Docker, or correct DOCKER_HOST or agent.discovery.docker.endpoint'
      : 'start Docker or Podman, or delete the socket that it left behind',
    daemon: 'the daemon',
    startAgain,
    strange: {
      reason: `the daemon at ${name} does not answer as Docker does: ${message}`,
      hint: isRemote
        ? 'correct DOCKER_HOST or agent.discovery.docker.endpoint; of a daemon with TLS set DOCKER_TLS_VERIFY and DOCKER_CERT_PATH'
        : 'see whether "docker ps" or "podman ps" answers on this host, and correct agent.discovery.docker.endpoint',
    },
  })
}
