import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readForeign } from '../../../foundation/lib/foreign-file.ts'
import { type JsonObject, objectOf, parseObject } from '../../../foundation/lib/json-fields.ts'
import type { Container } from '../../../foundation/model/entity.ts'
import { containerId, dockerContainer } from '../_docker-container.ts'
import { containerdContainer, crioContainer, podmanContainer } from '../_oci-container.ts'

export interface ContainerFilesOptions {
  /** Mount point of the host's root: all other directories are below it, and reported paths are those of the host. */
  readonly rootfs?: string
  /** `data-root` of Docker. */
  readonly dockerRoot?: string
  /** `graphroot` of Podman and CRI-O (containers-storage.conf(5)). */
  readonly storageRoots?: readonly string[]
  /** Bundle directories of containerd, with a subdirectory for each of its namespaces. */
  readonly bundleRoots?: readonly string[]
}

const dockerDefault = '/var/lib/docker'
const storageDefaults = ['/var/lib/containers/storage']
/** `state` of containerd, and of Kubernetes distributions with their own (k3s and RKE2, k0s, MicroK8s). */
const bundleDefaults = [
  '/run/containerd',
  '/run/k3s/containerd',
  '/run/k0s/containerd',
  '/var/snap/microk8s/common/run/containerd',
].map(state => `${state}/io.containerd.runtime.v2.task`)
/** Namespaces of the kubelet and of nerdctl. `moby`, that of Docker, has no names. */
const bundleNamespaces = ['k8s.io', 'default']
/** Drivers of containers/storage with a directory for each container. */
const storageDrivers = ['overlay', 'vfs', 'btrfs', 'zfs']
const maxBytes = 1024 * 1024

/**
 * Reads the files of container runtimes synchronously: a container that lives for 50 ms is gone before a daemon
 * can be queried. Takes tens of microseconds, also for an unknown container.
 */
export class ContainerFiles {
  readonly #rootfs: string
  readonly #storageRoots: readonly string[]
  readonly #bundleRoots: readonly string[]
  #dockerRoot: string

  constructor(options: ContainerFilesOptions = {}) {
    this.#rootfs = options.rootfs ?? '/'
    this.#dockerRoot = options.dockerRoot ?? dockerDefault
    this.#storageRoots = options.storageRoots ?? storageDefaults
    this.#bundleRoots = options.bundleRoots ?? bundleDefaults
  }

  /** Data directory as reported by the daemon. */
  setDockerRoot(dir: string): void {
    this.#dockerRoot = dir
  }

  /** Container of this ID; undefined if no runtime has it, or if its files cannot be read. Never throws. */
  find(id: string): Container | undefined {
    // Anything but a container ID must not become part of a path.
    if (!containerId.test(id)) return undefined
    return this.#ofDocker(id) ?? this.#ofContainerd(id) ?? this.#ofStorage(id)
  }

  #ofDocker(id: string): Container | undefined {
    const dir = join(this.#dockerRoot, 'containers', id)
    const description = this.#object(join(dir, 'config.v2.json'))
    if (description === undefined) return undefined
    // Written only by the driver json-file; the description has the path once the container has started.
    const logPath = join(dir, `${id}-json.log`)
    // Same form as the daemon's response: the host configuration is in a separate file.
    const whole = { ...description, HostConfig: this.#object(join(dir, 'hostconfig.json')) }
    return dockerContainer(id, 'docker', whole, this.#isThere(logPath) ? logPath : '')
  }

  #ofContainerd(id: string): Container | undefined {
    for (const root of this.#bundleRoots) {
      for (const namespace of bundleNamespaces) {
        const bundle = join(root, namespace, id)
        const annotations = this.#annotations(join(bundle, 'config.json'))
        if (annotations === undefined) continue
        const pid = Number(this.#bytes(join(bundle, 'init.pid'))?.toString('latin1'))
        return containerdContainer(id, annotations, Number.isSafeInteger(pid) && pid > 0 ? pid : 0)
      }
    }
    return undefined
  }

  #ofStorage(id: string): Container | undefined {
    for (const root of this.#storageRoots) {
      for (const driver of storageDrivers) {
        const containers = join(root, `${driver}-containers`)
        const userdata = join(containers, id, 'userdata')
        const annotations = this.#annotations(join(userdata, 'config.json'))
        if (annotations === undefined) continue
        if (annotations['io.container.manager'] === 'cri-o') return crioContainer(id, annotations)
        // Written by the driver k8s-file; the default driver, journald, has no file.
        const logPath = join(userdata, 'ctr.log')
        return podmanContainer(id, this.#listed(containers, id), this.#isThere(logPath) ? logPath : '')
      }
    }
    return undefined
  }

  /** Volatile containers are in a separate list since containers/storage 1.46. */
  #listed(containers: string, id: string): JsonObject | undefined {
    for (const list of ['containers.json', 'volatile-containers.json']) {
      const bytes = this.#bytes(join(containers, list))
      const found = bytes && listEntry(bytes, id)
      if (found !== undefined) return found
    }
    return undefined
  }

  #annotations(path: string): JsonObject | undefined {
    const spec = this.#object(path)
    return spec && objectOf(spec.annotations)
  }

  #object(path: string): JsonObject | undefined {
    const bytes = this.#bytes(path)
    return bytes && parseObject(bytes)
  }

  #bytes(path: string): Buffer | undefined {
    const bytes = readForeign(path, maxBytes + 1, this.#rootfs)
    return bytes === undefined || bytes.length > maxBytes ? undefined : bytes
  }

  #isThere(path: string): boolean {
    return existsSync(join(this.#rootfs, path))
  }
}

/**
 * Entry of a container in a list as Go writes it, without parsing the others: `[{"id":"…","names":[…],…},{"id":…}]`.
 * Inside a string, the same bytes would have escaped quotes.
 */
function listEntry(list: Buffer, id: string): JsonObject | undefined {
  const start = list.indexOf(`{"id":"${id}"`)
  if (start < 0) return undefined
  const next = list.indexOf(',{"id":"', start + 1)
  return parseObject(list.subarray(start, next < 0 ? list.lastIndexOf(0x5d) : next))
}
