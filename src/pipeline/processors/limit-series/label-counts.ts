import { grouped } from '../../../foundation/lib/number-text.ts'
import type { Attributes } from '../../../foundation/model/attributes.ts'
import type { Resource } from '../../../foundation/model/resource.ts'
import { DistinctCount } from './distinct-count.ts'
import { ownCopy, type SeriesHash } from './series-hash.ts'

/** Few metrics have more labels; later ones are not counted. */
const mostLabels = 16

/** Approximate number of values of each attribute of one metric since counting began; takes at most 17 kB. */
export class LabelCounts {
  readonly #keys: string[] = []
  readonly #counts: DistinctCount[] = []
  readonly #resources = new DistinctCount()

  add(attributes: Attributes, resource: Resource, hash: SeriesHash): void {
    for (let i = 0; i < attributes.size; i++) {
      const count = this.#countOf(attributes.keys[i]!, i)
      if (count === undefined) continue
      hash.ofValue(attributes.values[i]!)
      count.add(hash.low, hash.high)
    }
    hash.ofResource(resource)
    this.#resources.add(hash.low, hash.high)
  }

  /** Label with the most values: `attribute user.id has about 48,000 values`; '' for none. */
  get worst(): string {
    let most = 1
    let key = ''
    for (let i = 0; i < this.#keys.length; i++) {
      const { estimate } = this.#counts[i]!
      if (estimate <= most) continue
      most = estimate
      key = this.#keys[i]!
    }
    const resources = this.#resources.estimate
    if (resources > most) return `about ${roughly(resources)} resources report it`
    return key === '' ? '' : `attribute ${key} has about ${roughly(most)} values`
  }

  /** Most series of a metric have their attributes in the same order, so that usually one comparison finds the key. */
  #countOf(key: string, likely: number): DistinctCount | undefined {
    if (this.#keys[likely] === key) return this.#counts[likely]
    const at = this.#keys.indexOf(key)
    if (at >= 0) return this.#counts[at]
    if (this.#keys.length >= mostLabels) return undefined
    const count = new DistinctCount()
    this.#keys.push(ownCopy(key))
    this.#counts.push(count)
    return count
  }
}

/** Rounds to two digits, the precision of the estimate. */
function roughly(value: number): string {
  return grouped(Number(value.toPrecision(2)))
}
