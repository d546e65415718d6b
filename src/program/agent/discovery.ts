// Discovery of the host, its containers and its cluster, wired to the description of processes.

import type { Config } from '../../config/index.ts'
import { ByteRoom } from '../../foundation/lib/byte-room.ts'
import { type Change, change } from '../../foundation/lib/change.ts'
import type { Logger } from '../../foundation/lib/logger.ts'
import type { MemoryGovernor } from '../../foundation/lib/memory-governor.ts'
import { clouds } from '../../identity/discovery/index.ts'
import { KubernetesSource } from '../../identity/discovery/kubernetes/kubernetes-source.ts'
import { CloudSource } from '../../identity/entities/cloud-source.ts'
import { noPlace } from '../../identity/entities/container-place.ts'
import { Entities, type EntitiesOptions } from '../../identity/entities/entities.ts'
import { ContainerLookup } from './container-lookup.ts'
import { ContainerRuntimes } from './container-runtimes.ts'
import { HostEntity, hostResource } from './host-resource.ts'
import type { Fault } from './subsystem.ts'

export interface DiscoveryOptions {
  readonly config: Config
  readonly log: Logger
  /** Called for each new container. */
  readonly onContainer: () => void
  readonly governor?: MemoryGovernor
}

/** Queries container runtimes, Kubernetes and the cloud while the configuration enables it. */
export class Discovery {
  readonly entities: Entities
  readonly host: HostEntity
  /** Undefined if disabled; so are the next two. */
  runtimes: ContainerRuntimes | undefined
  kubernetes: KubernetesSource | undefined
  cloud: CloudSource | undefined
  readonly #log: Logger
  readonly #onContainer: () => void
  readonly #lookup: ContainerLookup
  /** Bounds what runtimes and the cloud report: it is kept for as long as they have it. */
  readonly #room: ByteRoom
  #config: Config
  #stopped = false

  constructor({ config, log, onContainer, governor }: DiscoveryOptions) {
    const { rootfs } = config.agent.nodeexporter.path
    this.#config = config
    this.#log = log
    this.#onContainer = onContainer
    this.#room = new ByteRoom(governor?.limitOf())
    governor?.register({
      name: 'containers, pods and services',
      kind: 'intake',
      bytes: () => this.#room.bytes,
      shed: () => 0,
    })
    this.entities = new Entities(this.#entitiesOptions())
    this.#lookup = new ContainerLookup({
      rootfs,
      sink: this.entities,
      room: this.#room,
      isFollowed: id => this.runtimes?.knows(id) ?? false,
      intervalMs: () => this.#config.agent.discovery.interval,
    })
    this.host = new HostEntity(hostResource(rootfs, config.resource.attributes), () =>
      this.entities.surroundings(noPlace),
    )
  }

  /** Container labels that may be shown: others may contain secrets. */
  get shownLabels(): readonly string[] {
    return this.#config.agent.discovery.docker.labels
  }

  /** Starts the queries in the background; nothing waits for their results. */
  start(): void {
    this.#lookup.start()
    this.#startRuntimes()
    this.#startKubernetes()
    this.#startCloud()
  }

  /** Enabled sources that do not answer. An absent source is no fault. */
  get faults(): readonly Fault[] {
    const { runtimes, kubernetes, cloud } = this
    const named = [
      ['discovery: Docker', runtimes?.docker?.state],
      // Names and images are known without it, from its files.
      ['discovery: containerd', runtimes?.containerd?.state, true],
      ['discovery: Kubernetes', kubernetes?.state],
      ['discovery: cloud', cloud?.state],
    ] as const
    const left = this.#room.leftOut === 0 ? [] : [leftOutFault(this.#room)]
    const silent = named.flatMap(([subsystem, state, isPart = false]): Fault[] => {
      if (state === undefined || state.reason === '' || state.hint === '') return []
      const { reason, hint } = state
      // An incomplete answer does not make the agent unready.
      if (state.connected || isPart) return [{ subsystem: `about ${subsystem}`, reason, hint }]
      return [{ subsystem, reason, hint, fails: 'discovery' }]
    })
    return [...silent, ...left]
  }

  /** Applies a reload. */
  prepare(config: Config): Change {
    return change(() => {
      const before = this.#config
      this.#config = config
      if (this.#stopped) return
      this.entities.configure(this.#entitiesOptions())
      const differs = (of: (config: Config) => unknown) =>
        JSON.stringify(of(before)) !== JSON.stringify(of(config))
      const isOn = ({ agent }: Config) => agent.discovery.enabled
      if (
        differs(each => [
          isOn(each),
          each.agent.discovery.detect_docker,
          each.agent.discovery.interval,
          each.agent.discovery.docker.endpoint,
        ])
      )
        this.#startRuntimes()
      if (
        differs(each => [
          isOn(each),
          each.agent.discovery.detect_kubernetes,
          each.agent.discovery.kubernetes,
          selectedLabels(each),
        ])
      )
        this.#startKubernetes()
      if (!this.#looks) this.#lookup.clear()
      if (differs(each => [isOn(each), each.agent.discovery.detect_cloud, each.cloud])) this.#startCloud()
    })
  }

  stop(): void {
    this.#stopped = true
    this.#lookup.stop()
    this.runtimes?.stop()
    this.kubernetes?.stop()
    this.cloud?.stop()
  }

  #entitiesOptions(): EntitiesOptions {
    const { docker, kubernetes, process_attributes } = this.#config.agent.discovery
    return {
      containerLabels: docker.labels,
      podLabels: kubernetes.labels,
      podAnnotations: kubernetes.annotations,
      allowedKeys: process_attributes,
      look: id => this.#look(id),
      onContainer: () => this.#onContainer(),
    }
  }

  /** Whether the files of container runtimes are read. */
  get #looks(): boolean {
    const { mode, agent } = this.#config
    return mode === 'agent' && agent.discovery.enabled && agent.discovery.detect_docker
  }

  #look(id: string) {
    if (!this.#looks) return undefined
    const { rootDir } = this.runtimes?.docker?.state ?? {}
    if (rootDir) this.#lookup.files.setDockerRoot(rootDir)
    return this.#lookup.find(id)
  }

  #startRuntimes(): void {
    const { discovery, nodeexporter } = this.#config.agent
    this.runtimes?.stop()
    this.runtimes = undefined
    if (!this.#looks) return
    this.runtimes = new ContainerRuntimes({
      endpoint: discovery.docker.endpoint,
      sink: this.entities,
      room: this.#room,
      log: this.#log,
      rootfs: nodeexporter.path.rootfs,
      refreshMs: discovery.interval,
    })
    this.runtimes.start()
  }

  #startKubernetes(): void {
    const { discovery } = this.#config.agent
    this.kubernetes?.stop()
    this.kubernetes = undefined
    if (this.#config.mode !== 'agent' || !discovery.enabled || !discovery.detect_kubernetes) return
    const { kubeconfig, node_name, namespaces, labels, annotations } = discovery.kubernetes
    this.kubernetes = new KubernetesSource({
      kubeconfig,
      nodeName: node_name,
      namespaces,
      labels: [...labels, ...selectedLabels(this.#config)],
      annotations,
      sink: this.entities,
      room: this.#room,
      warn: this.#warn('Kubernetes'),
    })
    this.kubernetes.start()
  }

  #startCloud(): void {
    const { cloud, agent } = this.#config
    this.cloud?.stop()
    this.cloud = undefined
    this.entities.cloud(undefined)
    if (!agent.discovery.enabled || !agent.discovery.detect_cloud) return
    const { refresh_interval, ...settings } = cloud
    this.cloud = new CloudSource({
      providers: clouds,
      settings,
      refreshMs: refresh_interval,
      sysfs: agent.nodeexporter.path.sysfs,
      sink: this.entities,
      warn: this.#warn('the cloud'),
    })
    void this.cloud.start()
  }

  #warn(source: string) {
    return (reason: string, hint: string) => this.#log.warn(`cannot query ${source}`, { reason, hint })
  }
}

/** Pod labels that select processes. */
function selectedLabels({ discovery }: Config): string[] {
  return [...discovery.instrument, ...discovery.exclude].flatMap(each => Object.keys(each.k8s_pod_labels))
}

function leftOutFault({ leftOut, limitBytes }: ByteRoom): Fault {
  return {
    subsystem: 'about discovery: memory',
    reason: `containers, pods or services left out ${leftOut} times: the limit for all of them is ${limitBytes} bytes`,
    hint: 'raise limits.memory',
  }
}
