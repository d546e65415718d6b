import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import type { Resource } from '../../../foundation/model/resource.ts'
import type { Identity, TargetInfo } from './mapping/mapped-family.ts'
import { targetResource } from './mapping/target-resource.ts'
import type { Target } from './target.ts'

/** Pages contain the identities. */
const mostResources = 10_000
/**
 * Approximate memory of a resource, and of each character of `target_info` data: as text, as attributes, and in
 * resources.
 */
const resourceCost = 1500
const learnedCost = 6

/**
 * Resources of a target's series: the target itself, and others identified by the labels `job` and `instance` of the
 * page.
 */
export class ResourceTable {
  /** Approximate memory, in bytes. */
  get bytes(): number {
    return this.#learned.length * learnedCost + this.#resources.size * resourceCost
  }

  /** Resource of the target itself. */
  readonly own: Resource
  readonly #target: Target
  /** By identity; the first series of each counts. */
  readonly #infos = new Map<string, TargetInfo>()
  readonly #learned: string
  readonly #resources = new BoundedMap<string, Resource>(mostResources)

  /** `infos`: from the `target_info` series of the page. */
  constructor(target: Target, infos: readonly TargetInfo[] = []) {
    this.#target = target
    this.#learned = textOf(infos)
    for (const info of infos) {
      const key = this.#keyOf(info.identity)
      if (!this.#infos.has(key)) this.#infos.set(key, info)
    }
    this.own = targetResource(target, this.#infosOf(this.#keyOf({ job: '', instance: '' })))
  }

  /** Resource for an identity. The same object each time, unless more than 10,000 others were requested since. */
  of(identity: Identity): Resource {
    const { labels } = this.#target
    if (identity.job === (labels.get('job') ?? '') && identity.instance === (labels.get('instance') ?? ''))
      return this.own
    const key = JSON.stringify([identity.job, identity.instance])
    let resource = this.#resources.get(key)
    if (resource === undefined) {
      resource = targetResource(this.#target, this.#infosOf(this.#keyOf(identity)), identity)
      this.#resources.set(key, resource)
    }
    return resource
  }

  /** Whether the table was made from equal data. */
  isFor(infos: readonly TargetInfo[]): boolean {
    return this.#learned === textOf(infos)
  }

  #infosOf(key: string): readonly TargetInfo[] {
    const info = this.#infos.get(key)
    return info === undefined ? [] : [info]
  }

  /** A missing job or instance is that of the target. */
  #keyOf({ job, instance }: Identity): string {
    const { labels } = this.#target
    return JSON.stringify([job || labels.get('job'), instance || labels.get('instance')])
  }
}

function textOf(infos: readonly TargetInfo[]): string {
  return JSON.stringify(infos.map(({ identity, labels }) => [identity, labels.toObject()]))
}
