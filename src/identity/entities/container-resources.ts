import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import { Attributes } from '../../foundation/model/attributes.ts'
import type { Resource } from '../../foundation/model/resource.ts'
import type { ContainerPlace } from './container-place.ts'
import type { Entities } from './entities.ts'
import { addSurroundings, hostAttributes, withAdded } from './process-resource.ts'
import type { ProcessTable } from './process-table.ts'
import { sameAttributes } from './same-attributes.ts'
import type { Surroundings } from './surroundings.ts'

export interface ContainerResourcesOptions {
  readonly entities: Pick<Entities, 'surroundings' | 'containerOf' | 'podOfUid'>
  readonly processes: Pick<ProcessTable, 'running' | 'about'>
  /** Resource for data from outside containers. */
  readonly host: () => Resource
  readonly maxContainers?: number
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number
}

interface Known {
  resource: Resource
  surroundings: Surroundings
  /** Last known resource of the container's first process. */
  main: Resource | undefined
  checkedMs: number
  /** A runtime or a cluster reported the container. */
  isNamed: boolean
}

const checkEveryMs = 1_000
/** Approximate size of a container's resource. */
const resourceBytes = 3_072

/**
 * Resources of containers, for data without a process, such as their logs. The service is that of the first process,
 * with its OpenTelemetry variables, also after it has ended.
 */
export class ContainerResources {
  readonly #options: ContainerResourcesOptions
  readonly #now: () => number
  readonly #known: BoundedMap<string, Known>

  constructor(options: ContainerResourcesOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
    this.#known = new BoundedMap(options.maxContainers ?? 4_096)
  }

  /**
   * The same object until its attributes change. Checks at most once per second once the container is identified; until
   * then at each call, so that the first logs of a new container get its name.
   */
  of(place: ContainerPlace): Resource {
    const key = place.id || place.podUid
    if (key === '') return this.#options.host()
    const now = this.#now()
    const known = this.#known.get(key)
    if (known?.isNamed && now - known.checkedMs < checkEveryMs) return known.resource
    const surroundings = this.#options.entities.surroundings(place)
    const main = this.#mainOf(place) ?? known?.main
    if (known === undefined) {
      const resource = this.#describe(surroundings, main)
      this.#known.set(key, { resource, surroundings, main, checkedMs: now, isNamed: this.#isNamed(place) })
      return resource
    }
    known.checkedMs = now
    known.isNamed = this.#isNamed(place)
    if (surroundings === known.surroundings && main === known.main) return known.resource
    known.surroundings = surroundings
    known.main = main
    const made = this.#describe(surroundings, main)
    if (!sameAttributes(made.attributes, known.resource.attributes)) known.resource = made
    return known.resource
  }

  /** Approximate memory. */
  get bytes(): number {
    return this.#known.size * resourceBytes
  }

  /** Removes all resources; they are created again on demand. Returns the approximate memory freed. */
  shed(): number {
    const { bytes } = this
    this.#known.clear()
    return bytes
  }

  #isNamed({ id, podUid }: ContainerPlace): boolean {
    const { entities } = this.#options
    return entities.containerOf(id) !== undefined || entities.podOfUid(podUid) !== undefined
  }

  #mainOf(place: ContainerPlace): Resource | undefined {
    const pid = this.#options.entities.containerOf(place.id)?.pid ?? 0
    if (pid === 0) return undefined
    const resource = this.#options.processes.running(pid)
    // Its number may have been reused.
    return resource?.attributes.get('container.id') === place.id ? resource : undefined
  }

  #describe(surroundings: Surroundings, main: Resource | undefined): Resource {
    const attributes = new Attributes()
    attributes.add('service.name', fallbackName(surroundings))
    hostAttributes(attributes, this.#options.processes.about)
    addSurroundings(attributes, surroundings)
    for (let i = 0; i < (main?.attributes.size ?? 0); i++) {
      const key = main!.attributes.keys[i]!
      // The surroundings may be newer than the process's copy of them.
      if (!ofProcess.test(key) && !surroundingKey.test(key)) attributes.set(key, main!.attributes.values[i]!)
    }
    return withAdded(attributes, this.#options.processes.about)
  }
}

const ofProcess = /^(process\.|telemetry\.sdk\.language$|service\.instance\.id$)/
const surroundingKey = /^(container|cloud|host|k8s)\./

/** Name by image, if neither the process nor any other source names the service. */
function fallbackName({ attributes }: Surroundings): string {
  const image = String(attributes.get('container.image.name') ?? '')
  return (
    image.slice(image.lastIndexOf('/') + 1) || String(attributes.get('container.name') ?? '') || 'unknown'
  )
}
