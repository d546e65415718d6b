import { Attributes } from '../../foundation/model/attributes.ts'
import type { Cloud, Container, EntitySink, Pod } from '../../foundation/model/entity.ts'
import { entityBytes } from '../../foundation/model/entity-bytes.ts'
import { cloudAttributes } from './cloud-attributes.ts'
import { containerAttributes, podAttributes } from './container-attributes.ts'
import type { ContainerPlace } from './container-place.ts'
import type { AttributeLosses } from './declared-attributes.ts'
import { serviceIdentity } from './service-identity.ts'
import { type Surroundings, sameSurroundings } from './surroundings.ts'

export type { Surroundings } from './surroundings.ts'

/** Cached description and its inputs. */
interface Described {
  readonly surroundings: Surroundings
  readonly container: Container | undefined
  readonly pod: Pod | undefined
  /** Version of machine, cluster and options. */
  readonly generation: number
}

export interface EntitiesOptions {
  /** Reads an unreported container from the runtime's files. Must not throw. */
  readonly look?: (id: string) => Container | undefined
  /** Called for each new container. Must not throw. */
  readonly onContainer?: (container: Container) => void
  /** Container labels that become `container.label.*`. */
  readonly containerLabels?: readonly string[]
  /** Pod labels and annotations that become `k8s.pod.label.*` and `k8s.pod.annotation.*`. */
  readonly podLabels?: readonly string[]
  readonly podAnnotations?: readonly string[]
  /** Attributes that annotations may set beside those of service and deployment (`mayDeclare`). */
  readonly allowedKeys?: readonly string[]
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number
}

/** Maximum containers, including ended ones. */
const maxContainers = 16_384
const maxPods = 16_384
/** How long removed entries are kept for telemetry in flight. */
const lingerMs = 60_000
/** Minimum interval of searches for a container that was not found. */
const lookAgainMs = 1_000
/** A container, a pod or a cached description, without texts. */
const entryBytes = 1_024
/** Overhead of a text. */
const textBytes = 24

/** Known containers, pods and the machine. All lookups take constant time. */
export class Entities implements EntitySink {
  /** Resource annotations dropped since the start, by reason, counted at each read of a pod. */
  readonly lost: AttributeLosses = { not_allowed: 0, too_many: 0, too_long: 0 }
  readonly #containers = new Map<string, Container>()
  readonly #pods = new Map<string, Pod>()
  /** Pods by the ids of their containers. */
  readonly #podOf = new Map<string, string>()
  /** Expiry times of removed entries, in ascending order. */
  readonly #leaving = new Map<string, number>()
  /** Time of the last search for each container that was not found. */
  readonly #missing = new Map<string, number>()
  readonly #described = new Map<string, Described>()
  #generation = 0
  /** Approximate memory of containers and pods. */
  #held = 0
  #machine: Cloud | undefined
  #clusterUid = ''
  #clusterName = ''
  #options: EntitiesOptions
  readonly #now: () => number

  constructor(options: EntitiesOptions = {}) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  /** Sets the labels and annotations to report. */
  configure(options: EntitiesOptions): void {
    this.#options = options
    this.#refresh()
  }

  get cloudFound(): Cloud | undefined {
    return this.#machine
  }

  /** Approximate memory. */
  get bytes(): number {
    return (
      this.#held + this.#described.size * entryBytes + (this.#missing.size + this.#podOf.size) * textBytes * 4
    )
  }

  /** Removes expired and removed entries, and cached descriptions. Returns the approximate memory freed. */
  shed(): number {
    const { bytes } = this
    for (const id of [...this.#leaving.keys()]) this.#forget(id)
    this.#described.clear()
    this.#missing.clear()
    return bytes - this.bytes
  }

  /** Number of running containers. */
  get containerCount(): number {
    let gone = 0
    for (const id of this.#leaving.keys()) if (this.#containers.has(id)) gone++
    return this.#containers.size - gone
  }

  get podCount(): number {
    let gone = 0
    for (const uid of this.#leaving.keys()) if (this.#pods.has(uid)) gone++
    return this.#pods.size - gone
  }

  containerOf(id: string): Container | undefined {
    const known = this.#containers.get(id)
    if (known !== undefined || id === '' || this.#options.look === undefined) return known
    const now = this.#now()
    if (now - (this.#missing.get(id) ?? Number.NEGATIVE_INFINITY) < lookAgainMs) return undefined
    const found = this.#options.look(id)
    if (found === undefined) {
      this.#missing.delete(id)
      this.#missing.set(id, now)
      if (this.#missing.size > maxContainers) this.#missing.delete(this.#missing.keys().next().value!)
    } else this.container(found)
    return found
  }

  podOfUid(uid: string): Pod | undefined {
    return this.#pods.get(uid)
  }

  /** Containers that are not removed. */
  *eachContainer(): IterableIterator<Container> {
    for (const container of this.#containers.values()) if (!this.#leaving.has(container.id)) yield container
  }

  /** Surroundings of a place; the same object until they change. */
  surroundings(place: ContainerPlace): Surroundings {
    const nearest = this.#nearestKnown(place)
    const container = this.containerOf(nearest.id)
    const pod = this.#podAt(nearest, container)
    const key = nearest.id || nearest.podUid
    const known = this.#described.get(key)
    const generation = this.#generation
    if (known !== undefined && known.generation === generation) {
      if (known.container === container && known.pod === pod) return known.surroundings
    }
    const made = this.#describe(nearest, container, pod)
    const surroundings =
      known !== undefined && sameSurroundings(known.surroundings, made) ? known.surroundings : made
    this.#described.set(key, { surroundings, container, pod, generation })
    bound(this.#described, 2 * maxContainers)
    return surroundings
  }

  container(container: Container): void {
    const { id } = container
    this.#missing.delete(id)
    this.#leaving.delete(id)
    const before = this.#containers.get(id)
    const isNew = before === undefined
    this.#held += entityBytes(container) - entityBytes(before)
    this.#containers.set(id, container)
    this.#leave()
    if (this.#containers.size > maxContainers) this.#forget(this.#oldest(this.#containers))
    if (isNew) this.#options.onContainer?.(container)
  }

  containerGone(id: string): void {
    if (this.#containers.has(id) && !this.#leaving.has(id)) this.#leaving.set(id, this.#now() + lingerMs)
    this.#leave()
  }

  pod(pod: Pod): void {
    this.#leaving.delete(pod.uid)
    const before = this.#pods.get(pod.uid)
    if (before !== undefined) this.#unlist(before)
    this.#held += entityBytes(pod) - entityBytes(before)
    this.#pods.set(pod.uid, pod)
    for (const { id } of pod.containers) if (id !== '') this.#podOf.set(id, pod.uid)
    this.#leave()
    if (this.#pods.size > maxPods) this.#forget(this.#oldest(this.#pods))
    bound(this.#podOf, 4 * maxPods)
  }

  podGone(uid: string): void {
    if (this.#pods.has(uid) && !this.#leaving.has(uid)) this.#leaving.set(uid, this.#now() + lingerMs)
    this.#leave()
  }

  cloud(cloud: Cloud | undefined): void {
    if (JSON.stringify(cloud) === JSON.stringify(this.#machine)) return
    this.#machine = cloud
    this.#refresh()
  }

  cluster(uid: string, name: string): void {
    if (uid === this.#clusterUid && name === this.#clusterName) return
    this.#clusterUid = uid
    this.#clusterName = name
    this.#refresh()
  }

  /** Invalidates all descriptions. */
  #refresh(): void {
    this.#generation++
  }

  /**
   * A container created inside another may be known only to the inner runtime; the outer container is then the nearest
   * known.
   */
  #nearestKnown(place: ContainerPlace): ContainerPlace {
    let at: ContainerPlace | undefined = place.outer === undefined ? undefined : place
    for (; at !== undefined; at = at.outer) {
      const container = this.containerOf(at.id)
      if (container !== undefined || this.#podAt(at, undefined) !== undefined) return at
    }
    return place
  }

  #podAt(place: ContainerPlace, container: Container | undefined): Pod | undefined {
    const uid = place.podUid || container?.podUid || ''
    return this.#pods.get(uid) ?? this.#pods.get(this.#podOf.get(place.id) ?? '')
  }

  #describe(place: ContainerPlace, container: Container | undefined, pod: Pod | undefined): Surroundings {
    const attributes = new Attributes()
    const { containerLabels = [], podLabels = [], podAnnotations = [], allowedKeys = [] } = this.#options
    containerAttributes(attributes, place, container, containerLabels)
    podAttributes(attributes, place, container, pod, podLabels, podAnnotations)
    const inCluster = place.podUid !== '' || pod !== undefined
    if (inCluster && this.#clusterUid !== '') attributes.set('k8s.cluster.uid', this.#clusterUid)
    if (inCluster && this.#clusterName !== '') attributes.set('k8s.cluster.name', this.#clusterName)
    cloudAttributes(attributes, this.#machine)
    const service = serviceIdentity(place, container, pod, allowedKeys, why => this.lost[why]++)
    return { attributes, service, podLabels: pod?.labels ?? noLabels }
  }

  /** Removes the links from a pod's containers to it. */
  #unlist(pod: Pod): void {
    for (const { id } of pod.containers) if (this.#podOf.get(id) === pod.uid) this.#podOf.delete(id)
  }

  /** Removes expired entries. */
  #leave(): void {
    const now = this.#now()
    for (const [id, untilMs] of this.#leaving) {
      if (untilMs > now) return
      this.#forget(id)
    }
  }

  #forget(id: string): void {
    this.#leaving.delete(id)
    this.#described.delete(id)
    this.#held -= entityBytes(this.#containers.get(id)) + entityBytes(this.#pods.get(id))
    this.#containers.delete(id)
    const pod = this.#pods.get(id)
    if (pod === undefined) return
    this.#pods.delete(id)
    this.#unlist(pod)
  }

  /** Prefers removed entries. */
  #oldest(among: ReadonlyMap<string, unknown>): string {
    for (const id of this.#leaving.keys()) if (among.has(id)) return id
    return among.keys().next().value!
  }
}

const noLabels: ReadonlyMap<string, string> = new Map()

/** Evicts the oldest entry of a full map. */
function bound(map: Map<string, unknown>, most: number): void {
  if (map.size > most) map.delete(map.keys().next().value!)
}
