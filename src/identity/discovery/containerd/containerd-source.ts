import { join } from 'node:path'
import { errorCode } from '../../../foundation/lib/error-code.ts'
import { errorText } from '../../../foundation/lib/logger.ts'
import {
  type Fault,
  type FoundPlaces,
  faultOf,
  type Place,
  type Runtime,
  RuntimeSource,
  type RuntimeSourceOptions,
  type RuntimeState,
} from '../_runtime-source.ts'
import { socketExists } from '../_socket.ts'
import { ContainerdSession } from './containerd-session.ts'

export interface ContainerdSourceOptions extends RuntimeSourceOptions {
  /** Path of the only socket to use; '': all usual ones below `rootfs`. */
  readonly socketPath: string
  /** Whether another runtime responds, which may run all containers: a socket without permission is then no fault. */
  readonly isBeside: () => boolean
}

/** Sockets of containerd, and of Kubernetes distributions with their own (k3s and RKE2, k0s, MicroK8s). */
const usual = [
  '/run/containerd/containerd.sock',
  '/run/k3s/containerd/containerd.sock',
  '/run/k0s/containerd.sock',
  '/var/snap/microk8s/common/run/containerd.sock',
]

/** Whether a path is a containerd socket, by its usual file name. */
export function isContainerdSocket(path: string): boolean {
  return path.endsWith('/containerd.sock')
}

/**
 * Reports the containers of every containerd of this host: a Kubernetes distribution may run its own beside the host's.
 */
export class ContainerdSource {
  readonly #sources: readonly RuntimeSource<Place>[]

  constructor(options: ContainerdSourceOptions) {
    const { socketPath, rootfs = '/', isBeside } = options
    const paths = socketPath === '' ? usual.map(path => join(rootfs, path)) : [socketPath]
    this.#sources = paths.map(path => {
      const runtime: Runtime<Place> = {
        find: () => findSocket(path, socketPath !== ''),
        open: (place, session) => new ContainerdSession(place.name, session),
        faultOf: ({ name }, error, wasReached) => containerdFault(name, error, wasReached, isBeside),
        startAgain,
      }
      return new RuntimeSource(runtime, options)
    })
  }

  start(): void {
    for (const source of this.#sources) source.start()
  }

  stop(): void {
    for (const source of this.#sources) source.stop()
  }

  knows(id: string): boolean {
    return this.#sources.some(source => source.knows(id))
  }

  /** State of all of them together. */
  get state(): RuntimeState {
    const states = this.#sources.map(({ state }) => state)
    const answering = states.filter(({ connected }) => connected)
    const faulty =
      states.find(({ hint }) => hint !== '') ??
      states.find(({ reason }) => reason !== '' && reason !== noSocket)
    const isNowhere = states.every(({ reason }) => reason === noSocket)
    return {
      connected: answering.length > 0,
      reason: faulty?.reason ?? (isNowhere ? noSocket : ''),
      hint: faulty?.hint ?? '',
      runtime: 'containerd',
      version: answering[0]?.version ?? '',
      endpoint: answering.map(({ endpoint }) => endpoint).join(', '),
      rootDir: '',
      containers: states.reduce((sum, { containers }) => sum + containers, 0),
    }
  }
}

function findSocket(path: string, isMeant: boolean): FoundPlaces<Place> {
  if (socketExists(path)) return { places: [{ name: path, isMeant }], reason: '', hint: '' }
  return {
    places: [],
    reason: isMeant ? `socket ${path} not found` : noSocket,
    hint: isMeant ? 'start containerd, or correct agent.discovery.docker.endpoint' : '',
  }
}

const noSocket = 'no containerd socket found'
const startAgain = 'start containerd again; its known containers are kept until then'

function containerdFault(path: string, error: unknown, wasReached: boolean, isBeside: () => boolean): Fault {
  const code = errorCode(error)
  const text = errorText(error)
  return faultOf(path, code, text, wasReached, {
    denied: () => ({
      reason: `no permission to open ${path} (${code}); container names are read from files instead`,
      hint: isBeside()
        ? ''
        : 'run svc as root, or give the socket to the group of its user: gid under [grpc] in /etc/containerd/config.toml',
    }),
    absent: 'start containerd, or delete the stale socket',
    daemon: 'containerd',
    startAgain,
    strange: {
      reason: `${path} does not answer like containerd: ${text}`,
      hint: `check that "ctr --address ${path} version" works on this host`,
    },
  })
}
