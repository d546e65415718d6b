import type { Resource } from '../model/resource.ts'
import type { Identity, TargetInfo } from './mapping/mapped-family.ts'
import { targetResource } from './mapping/target-resource.ts'
import type { Target } from './target.ts'

/** Whom the series of a target are about: itself, and others whose labels `job` and `instance` it keeps. */
export class ResourceTable {
  /** That of the target. */
  readonly own: Resource
  readonly #target: Target
  readonly #infos: readonly TargetInfo[]
  readonly #learned: string
  readonly #resources = new Map<string, Resource>()

  /** `infos`: what the series `target_info` of its page say. */
  constructor(target: Target, infos: readonly TargetInfo[] = []) {
    this.#target = target
    this.#infos = infos
    this.#learned = textOf(infos)
    this.own = targetResource(target, infos)
  }

  /** The same object for the same identity. */
  of(identity: Identity): Resource {
    const { labels } = this.#target
    if (identity.job === labels.get('job') && identity.instance === labels.get('instance')) return this.own
    const key = JSON.stringify([identity.job, identity.instance])
    let resource = this.#resources.get(key)
    if (resource === undefined) {
      resource = targetResource(this.#target, this.#infos, identity)
      this.#resources.set(key, resource)
    }
    return resource
  }

  /** Whether it was made of the same. */
  isFor(infos: readonly TargetInfo[]): boolean {
    return this.#learned === textOf(infos)
  }
}

function textOf(infos: readonly TargetInfo[]): string {
  return JSON.stringify(infos.map(({ identity, labels }) => [identity, labels.toObject()]))
}
