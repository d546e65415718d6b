import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readForeign } from '../../lib/foreign-file.ts'
import { type JsonObject, objectOf, parseObject } from '../../lib/json-fields.ts'
import type { Container } from '../../model/entity.ts'
import { containerId, dockerContainer } from '../_docker-container.ts'
import { containerdContainer, crioContainer, podmanContainer } from '../_oci-container.ts'

export interface ContainerFilesOptions {
  /** Where the host's root is mounted: all other directories are below it, and what is told is as the host sees it. */
  readonly rootfs?: string
  /** `data-root` of Docker. */
  readonly dockerRoot?: string
  /** `graphroot` of Podman and CRI-O (containers-storage.conf(5)). */
  readonly storageRoots?: readonly string[]
  /** Where the containers of containerd have their bundles: a directory for each of its namespaces. */
  readonly bundleRoots?: readonly string[]
}

const dockerDefault = '/var/lib/docker'
const storageDefaults = ['/var/lib/containers/storage']
/** `state` of containerd, where distributions of Kubernetes have their own (k3s and RKE2, k0s, MicroK8s). */
const bundleDefaults = [
  '/run/containerd',
  '/run/k3s/containerd',
  '/run/k0s/containerd',
  '/var/snap/microk8s/common/run/containerd',
].map(state => `${state}/io.containerd.runtime.v2.task`)
/** Of the kubelet and of nerdctl. That of Docker, `moby`, has no names. */
const bundleNamespaces = ['k8s.io', 'default']
/** The drivers of containers/storage that keep a directory for each container. */
const storageDrivers = ['overlay', 'vfs', 'btrfs', 'zfs']
const maxBytes = 1024 * 1024

/**
 * Reads what container runtimes keep on disk of a container, at once: one that lives for 50 ms has gone before a daemon
 * is asked for it. Tens of microseconds, where there is none as well.
 */
export class ContainerFiles {
  private readonly rootfs: string
  private readonly storageRoots: readonly string[]
  private readonly bundleRoots: readonly string[]
  private dockerRoot: string

  constructor(options: ContainerFilesOptions = {}) {
    this.rootfs = options.rootfs ?? '/'
    this.dockerRoot = options.dockerRoot ?? dockerDefault
    this.storageRoots = options.storageRoots ?? storageDefaults
    this.bundleRoots = options.bundleRoots ?? bundleDefaults
  }

  /** As the daemon tells it. */
  setDockerRoot(dir: string): void {
    this.dockerRoot = dir
  }

  /** The container of this number; undefined where no runtime knows it, or its files cannot be read. Never throws. */
  find(id: string): Container | undefined {
    // What is no number of a container must not become a part of a path.
    if (!containerId.test(id)) return undefined
    return this.ofDocker(id) ?? this.ofContainerd(id) ?? this.ofStorage(id)
  }

  private ofDocker(id: string): Container | undefined {
    const dir = join(this.dockerRoot, 'containers', id)
    const description = this.object(join(dir, 'config.v2.json'))
    if (description === undefined) return undefined
    // Only the driver json-file makes it; the description has the path as soon as the container has started.
    const logPath = join(dir, `${id}-json.log`)
    // As the daemon answers: how it is run stands in a file of its own.
    const whole = { ...description, HostConfig: this.object(join(dir, 'hostconfig.json')) }
    return dockerContainer(id, 'docker', whole, this.isThere(logPath) ? logPath : '')
  }

  private ofContainerd(id: string): Container | undefined {
    for (const root of this.bundleRoots) {
      for (const namespace of bundleNamespaces) {
        const bundle = join(root, namespace, id)
        const annotations = this.annotations(join(bundle, 'config.json'))
        if (annotations === undefined) continue
        const pid = Number(this.bytes(join(bundle, 'init.pid'))?.toString('latin1'))
        return containerdContainer(id, annotations, Number.isSafeInteger(pid) && pid > 0 ? pid : 0)
      }
    }
    return undefined
  }

  private ofStorage(id: string): Container | undefined {
    for (const root of this.storageRoots) {
      for (const driver of storageDrivers) {
        const containers = join(root, `${driver}-containers`)
        const userdata = join(containers, id, 'userdata')
        const annotations = this.annotations(join(userdata, 'config.json'))
        if (annotations === undefined) continue
        if (annotations['io.container.manager'] === 'cri-o') return crioContainer(id, annotations)
        // Of the driver k8s-file; the journal, where logs go to by default, is no file.
        const logPath = join(userdata, 'ctr.log')
        return podmanContainer(id, this.listed(containers, id), this.isThere(logPath) ? logPath : '')
      }
    }
    return undefined
  }

  /** Containers that do not outlive their end stand in a list of their own since containers/storage 1.46. */
  private listed(containers: string, id: string): JsonObject | undefined {
    for (const list of ['containers.json', 'volatile-containers.json']) {
      const bytes = this.bytes(join(containers, list))
      const found = bytes && listEntry(bytes, id)
      if (found !== undefined) return found
    }
    return undefined
  }

  private annotations(path: string): JsonObject | undefined {
    const spec = this.object(path)
    return spec && objectOf(spec.annotations)
  }

  private object(path: string): JsonObject | undefined {
    const bytes = this.bytes(path)
    return bytes && parseObject(bytes)
  }

  private bytes(path: string): Buffer | undefined {
    const bytes = readForeign(path, maxBytes + 1, this.rootfs)
    return bytes === undefined || bytes.length > maxBytes ? undefined : bytes
  }

  private isThere(path: string): boolean {
    return existsSync(join(this.rootfs, path))
  }
}

/**
 * The entry of a container in a list as Go writes it, without reading all others: `[{"id":"…","names":[…],…},{"id":…}]`.
 * What looks like a beginning inside of a text has its quotes escaped.
 */
function listEntry(list: Buffer, id: string): JsonObject | undefined {
  const start = list.indexOf(`{"id":"${id}"`)
  if (start < 0) return undefined
  const next = list.indexOf(',{"id":"', start + 1)
  return parseObject(list.subarray(start, next < 0 ? list.lastIndexOf(0x5d) : next))
}
