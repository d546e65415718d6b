import { parseDockerAddress } from '../../foundation/lib/docker-address.ts'
import type { ContainerSink, RuntimeSourceOptions } from '../../identity/discovery/_runtime-source.ts'
import {
  ContainerdSource,
  isContainerdSocket,
} from '../../identity/discovery/containerd/containerd-source.ts'
import { DockerSource } from '../../identity/discovery/docker/docker-source.ts'
import { findEngines } from '../../identity/discovery/docker/engine-places.ts'

export interface ContainerRuntimesOptions extends RuntimeSourceOptions {
  /** `agent.discovery.docker.endpoint`: the one daemon to ask; '': all that there are. */
  readonly endpoint: string
  /** Left out: this process's. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** Follows Docker or Podman, and beside it containerd, which may run what neither of them knows. */
export class ContainerRuntimes {
  /** Undefined: the endpoint is one of containerd. */
  readonly docker: DockerSource | undefined
  /** Undefined: the endpoint is another. */
  readonly containerd: ContainerdSource | undefined

  constructor(options: ContainerRuntimesOptions) {
    const { endpoint, env, rootfs = '/' } = options
    const address = parseDockerAddress(endpoint)
    const named = 'path' in address && isContainerdSocket(address.path) ? address.path : ''
    const docker = named === '' ? new DockerSource(options) : undefined
    this.docker = docker
    if (named === '' && endpoint !== '') return
    const isBeside = () => named === '' && findEngines('', rootfs, env).places.length > 0
    // Docker may run its own in another namespace than usual, and knows more of them.
    const sink: ContainerSink = {
      container: container => docker?.knows(container.id) || options.sink.container(container),
      containerGone: id => docker?.knows(id) || options.sink.containerGone(id),
    }
    this.containerd = new ContainerdSource({ ...options, sink, socketPath: named, isBeside })
  }

  start(): void {
    this.docker?.start()
    this.containerd?.start()
  }

  stop(): void {
    this.docker?.stop()
    this.containerd?.stop()
  }

  /** One of them tells of this container, and when it goes. */
  knows(id: string): boolean {
    return (this.docker?.knows(id) || this.containerd?.knows(id)) ?? false
  }
}
