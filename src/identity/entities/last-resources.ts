import type { Resource } from '../../foundation/model/resource.ts'
import { sameAttributes } from './same-attributes.ts'

const leastSweep = 1_024

/**
 * The last resource of each number, for as long as anybody keeps it. A process that lost its place in the table and comes
 * back has the one that it had: of two that are alike each would have its own series, which no receiver can keep apart.
 */
export class LastResources {
  readonly #last = new Map<number, WeakRef<Resource>>()
  #sweepAt = leastSweep

  /** The last one of this number where it tells the same; else this one, from now on. */
  same(pid: number, resource: Resource): Resource {
    const last = this.#last.get(pid)?.deref()
    if (last !== undefined && sameAttributes(last.attributes, resource.attributes)) return last
    if (this.#last.size >= this.#sweepAt) this.#sweep()
    this.#last.set(pid, new WeakRef(resource))
    return resource
  }

  #sweep(): void {
    for (const [pid, resource] of this.#last) if (resource.deref() === undefined) this.#last.delete(pid)
    this.#sweepAt = Math.max(leastSweep, 2 * this.#last.size)
  }
}
