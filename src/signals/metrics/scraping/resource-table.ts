import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import type { Resource } from '../../../foundation/model/resource.ts'
import type { Identity, TargetInfo } from './mapping/mapped-family.ts'
import { targetResource } from './mapping/target-resource.ts'
import type { Target } from './target.ts'

/** Pages name them. */
const mostResources = 10_000
/** Of a resource, and of each character of what `target_info` says: as text, as attributes, and in resources. */
const resourceCost = 1500
const learnedCost = 6

/** Whom the series of a target are about: itself, and others whose labels `job` and `instance` it keeps. */
export class ResourceTable {
  /** About what it takes. */
  get bytes(): number {
    return this.#learned.length * learnedCost + this.#resources.size * resourceCost
  }

  /** That of the target. */
  readonly own: Resource
  readonly #target: Target
  /** By whom they are about; the first of each counts. */
  readonly #infos = new Map<string, TargetInfo>()
  readonly #learned: string
  readonly #resources = new BoundedMap<string, Resource>(mostResources)

  /** `infos`: what the series `target_info` of its page say. */
  constructor(target: Target, infos: readonly TargetInfo[] = []) {
    this.#target = target
    this.#learned = textOf(infos)
    for (const info of infos) {
      const key = this.#keyOf(info.identity)
      if (!this.#infos.has(key)) this.#infos.set(key, info)
    }
    this.own = targetResource(target, this.#infosOf(this.#keyOf({ job: '', instance: '' })))
  }

  /** The same object for the same identity, as long as no more than 10,000 others were asked for. */
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

  /** Whether it was made of the same. */
  isFor(infos: readonly TargetInfo[]): boolean {
    return this.#learned === textOf(infos)
  }

  #infosOf(key: string): readonly TargetInfo[] {
    const info = this.#infos.get(key)
    return info === undefined ? [] : [info]
  }

  /** Who has no job or instance is the target's. */
  #keyOf({ job, instance }: Identity): string {
    const { labels } = this.#target
    return JSON.stringify([job || labels.get('job'), instance || labels.get('instance')])
  }
}

function textOf(infos: readonly TargetInfo[]): string {
  return JSON.stringify(infos.map(({ identity, labels }) => [identity, labels.toObject()]))
}
