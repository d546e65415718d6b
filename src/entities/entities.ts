import { Attributes } from '../model/attributes.ts'
import type { Cloud, Container, EntitySink, Pod } from '../model/entity.ts'
import { cloudAttributes } from './cloud-attributes.ts'
import { containerAttributes, podAttributes } from './container-attributes.ts'
import type { ContainerPlace } from './container-place.ts'
import { type ServiceIdentity, serviceIdentity } from './service-identity.ts'

/**
 * What a process runs in: container, pod and machine. It is replaced as a whole when anything of it changes, so that
 * identity says whether it did.
 */
export interface Surroundings {
  /** `container.*`, `k8s.*`, `cloud.*` and `host.*`. */
  readonly attributes: Attributes
  /** What they say of the service; stronger than what the process's program says of it. */
  readonly service: ServiceIdentity
}

export interface EntitiesOptions {
  /** Reads what the runtime keeps of a container in files, for one that nobody told of yet. Must not throw. */
  readonly look?: (id: string) => Container | undefined
  /** Labels of containers that become `container.label.*`. */
  readonly containerLabels?: readonly string[]
  /** Labels and annotations of pods that become `k8s.pod.label.*` and `k8s.pod.annotation.*`. */
  readonly podLabels?: readonly string[]
  readonly podAnnotations?: readonly string[]
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number
}

/** Containers that are remembered at most, those that ended included. */
const maxContainers = 16_384
const maxPods = 16_384
/** What is gone is still known for so long: its last telemetry is on the way. */
const lingerMs = 60_000
/** So long nobody asks again for a container that could not be found. */
const lookAgainMs = 1_000

/** All that is known of containers, pods and the machine. Each question is answered in constant time. */
export class Entities implements EntitySink {
  private readonly containers = new Map<string, Container>()
  private readonly pods = new Map<string, Pod>()
  /** Pods by the containers that they list. */
  private readonly podOf = new Map<string, string>()
  /** When what is gone is forgotten, in the order of the times. */
  private readonly leaving = new Map<string, number>()
  /** When a container that could not be found was last looked for. */
  private readonly missing = new Map<string, number>()
  private surroundingsOf = new Map<string, Surroundings>()
  private hostSurroundings: Surroundings | undefined
  private machine: Cloud | undefined
  private clusterUid = ''
  private clusterName = ''
  private options: EntitiesOptions
  private readonly now: () => number

  constructor(options: EntitiesOptions = {}) {
    this.options = options
    this.now = options.now ?? (() => performance.now())
  }

  /** Other labels and annotations from now on. */
  configure(options: EntitiesOptions): void {
    this.options = options
    this.refresh()
  }

  get cloudFound(): Cloud | undefined {
    return this.machine
  }

  /** Containers that are there now. */
  get containerCount(): number {
    let gone = 0
    for (const id of this.leaving.keys()) if (this.containers.has(id)) gone++
    return this.containers.size - gone
  }

  get podCount(): number {
    let gone = 0
    for (const uid of this.leaving.keys()) if (this.pods.has(uid)) gone++
    return this.pods.size - gone
  }

  containerOf(id: string): Container | undefined {
    const known = this.containers.get(id)
    if (known !== undefined || id === '' || this.options.look === undefined) return known
    const now = this.now()
    if (now - (this.missing.get(id) ?? Number.NEGATIVE_INFINITY) < lookAgainMs) return undefined
    const found = this.options.look(id)
    if (found === undefined) {
      this.missing.delete(id)
      this.missing.set(id, now)
      if (this.missing.size > maxContainers) this.missing.delete(this.missing.keys().next().value!)
    } else this.container(found)
    return found
  }

  podOfUid(uid: string): Pod | undefined {
    return this.pods.get(uid)
  }

  /** Containers that are there now. */
  *eachContainer(): IterableIterator<Container> {
    for (const container of this.containers.values()) if (!this.leaving.has(container.id)) yield container
  }

  /** What runs at a place; the same object for as long as nothing of it changes. */
  surroundings(place: ContainerPlace): Surroundings {
    if (place.id === '' && place.podUid === '') return this.ofHost()
    const container = this.containerOf(place.id)
    const key = place.id === '' ? place.podUid : place.id
    const known = this.surroundingsOf.get(key)
    if (known !== undefined) return known
    if (this.surroundingsOf.size >= maxContainers) this.surroundingsOf.clear()
    const pod = this.pods.get(place.podUid || container?.podUid || this.podOf.get(place.id) || '')
    const made = this.describe(place, container, pod)
    this.surroundingsOf.set(key, made)
    return made
  }

  container(container: Container): void {
    const { id } = container
    this.missing.delete(id)
    this.leaving.delete(id)
    this.containers.set(id, container)
    this.surroundingsOf.delete(id)
    this.leave()
    bound(this.containers, maxContainers)
  }

  containerGone(id: string): void {
    if (this.containers.has(id) && !this.leaving.has(id)) this.leaving.set(id, this.now() + lingerMs)
    this.leave()
  }

  pod(pod: Pod): void {
    this.leaving.delete(pod.uid)
    this.forgetSurroundings(this.pods.get(pod.uid))
    this.pods.set(pod.uid, pod)
    this.forgetSurroundings(pod)
    for (const { id } of pod.containers) if (id !== '') this.podOf.set(id, pod.uid)
    this.leave()
    bound(this.pods, maxPods)
    bound(this.podOf, 4 * maxPods)
  }

  podGone(uid: string): void {
    if (this.pods.has(uid) && !this.leaving.has(uid)) this.leaving.set(uid, this.now() + lingerMs)
    this.leave()
  }

  cloud(cloud: Cloud | undefined): void {
    if (JSON.stringify(cloud) === JSON.stringify(this.machine)) return
    this.machine = cloud
    this.refresh()
  }

  cluster(uid: string, name: string): void {
    if (uid === this.clusterUid && name === this.clusterName) return
    this.clusterUid = uid
    this.clusterName = name
    this.refresh()
  }

  /** Everything is described anew. */
  private refresh(): void {
    this.surroundingsOf = new Map()
    this.hostSurroundings = undefined
  }

  private ofHost(): Surroundings {
    this.hostSurroundings ??= this.describe({ id: '', runtime: '', podUid: '' }, undefined, undefined)
    return this.hostSurroundings
  }

  private describe(
    place: ContainerPlace,
    container: Container | undefined,
    pod: Pod | undefined,
  ): Surroundings {
    const attributes = new Attributes()
    const { containerLabels = [], podLabels = [], podAnnotations = [] } = this.options
    containerAttributes(attributes, place, container, containerLabels)
    podAttributes(attributes, place, container, pod, podLabels, podAnnotations)
    const inCluster = place.podUid !== '' || pod !== undefined
    if (inCluster && this.clusterUid !== '') attributes.set('k8s.cluster.uid', this.clusterUid)
    if (inCluster && this.clusterName !== '') attributes.set('k8s.cluster.name', this.clusterName)
    cloudAttributes(attributes, this.machine)
    return { attributes, service: serviceIdentity(container, pod) }
  }

  private forgetSurroundings(pod: Pod | undefined): void {
    if (pod === undefined) return
    this.surroundingsOf.delete(pod.uid)
    for (const { id } of pod.containers) this.surroundingsOf.delete(id)
  }

  /** Forgets what has been gone for long enough. */
  private leave(): void {
    const now = this.now()
    for (const [id, untilMs] of this.leaving) {
      if (untilMs > now) return
      this.leaving.delete(id)
      this.containers.delete(id)
      this.surroundingsOf.delete(id)
      const pod = this.pods.get(id)
      if (pod === undefined) continue
      this.pods.delete(id)
      this.forgetSurroundings(pod)
      for (const { id: container } of pod.containers)
        if (this.podOf.get(container) === id) this.podOf.delete(container)
    }
  }
}

/** The oldest goes where there are too many. */
function bound(map: Map<string, unknown>, most: number): void {
  if (map.size > most) map.delete(map.keys().next().value!)
}
