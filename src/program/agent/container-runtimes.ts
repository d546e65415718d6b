import { parseDockerAddress } from '../../foundation/lib/docker-address.ts'
import type { ContainerSink, RuntimeSourceOptions } from '../../identity/discovery/_runtime-source.ts'
import {
  ContainerdSource,
  isContainerdSocket,
} from '../../identity/discovery/containerd/containerd-source.ts'
import { DockerSource } from '../../identity/discovery/docker/docker-source.ts'
import { findEngines } from '../../identity/discovery/docker/engine-places.ts'

export interface ContainerRuntimesOptions extends RuntimeSourceOptions {
  /** `agent.discovery.docker.endpoint`: the only daemon to query; '': all of them. */
  readonly endpoint: string
  /** If absent, that of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** Follows Docker or Podman, and in addition containerd, which may run containers that those do not know. */
export class ContainerRuntimes {
  /** Undefined: the endpoint is containerd's. */
  readonly docker: DockerSource | undefined
  /** Undefined: the endpoint is Docker's or Podman's. */
  readonly containerd: ContainerdSource | undefined

  constructor(options: ContainerRuntimesOptions) {
    const { endpoint, env, rootfs = '/' } = options
    const address = parseDockerAddress(endpoint)
    const named = 'path' in address && isContainerdSocket(address.path) ? address.path : ''
    const docker = named === '' ? new DockerSource(options) : undefined
    this.docker = docker
    if (named === '' && endpoint !== '') return
    const isBeside = () => named === '' && findEngines('', rootfs, env).places.length > 0
    // Docker may use another containerd namespace than usual, and knows more about its containers.
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

  /** Whether a runtime reports this container, including its end. */
  knows(id: string): boolean {
    return (this.docker?.knows(id) || this.containerd?.knows(id)) ?? false
  }
}
