import type { Resource } from '../../foundation/model/resource.ts'
import { sameAttributes } from './same-attributes.ts'

const leastSweep = 1_024

/**
 * Last resource by process number, while it is referenced. A process that was evicted from the table gets the same
 * resource again: two equal resources would have separate series, which receivers cannot distinguish.
 */
export class LastResources {
  readonly #last = new Map<number, WeakRef<Resource>>()
  #sweepAt = leastSweep

  /** Returns the last resource of this number if its attributes are equal; otherwise stores and returns this one. */
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
