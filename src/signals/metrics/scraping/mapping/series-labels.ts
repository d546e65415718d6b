import { decimal } from '../../../../foundation/lib/scanner.ts'
import { Attributes } from '../../../../foundation/model/attributes.ts'
import type { Scope } from '../../../../foundation/model/resource.ts'
import type { Identity } from './mapped-family.ts'
import { metricsScope, scopeOf, scopePrefix } from './metrics-scope.ts'

/** Properties shared by all points of a metric, besides its name. One object per family and content. */
export interface Origin {
  readonly identity: Identity
  readonly scope: Scope
}

/** Labels of a series, split by their use. */
export interface SeriesLabels {
  readonly origin: Origin
  /** Ordered by name, so that the order on the page does not matter. */
  readonly attributes: Attributes
  /** Equal for equal attributes only. */
  readonly key: string
  /** Value of the special label; undefined if missing. */
  readonly special: string | undefined
}

/** Maximum characters of scope labels, as many scopes are cached. Above it, the labels stay attributes. */
const longestScope = 1024

/** Splits the labels of a family's series. */
export class LabelSorter {
  readonly #origins = new Map<Scope, Map<string, Map<string, Origin>>>()
  #last: Origin | undefined
  readonly #names: string[] = []
  readonly #scopeNames: string[] = []

  /** Removes the label `special` from the attributes, `''` for none. A label with an empty value counts as missing. */
  sort(labels: ReadonlyMap<string, string>, special: string): SeriesLabels {
    const names = this.#names
    names.length = 0
    let job = ''
    let instance = ''
    let specialValue: string | undefined
    const scopeNames = this.#scopeNames
    scopeNames.length = 0
    let scopeLength = 0
    let isOrdered = true
    for (const [name, value] of labels) {
      if (value === '') continue
      if (name === 'job') job = value
      else if (name === 'instance') instance = value
      else if (name === special) specialValue = value
      else if (name.startsWith(scopePrefix) && name.length > scopePrefix.length) {
        scopeNames.push(name)
        scopeLength += name.length + value.length
      } else {
        isOrdered &&= names.length === 0 || names[names.length - 1]! < name
        names.push(name)
      }
    }
    if (scopeLength > longestScope) {
      names.push(...scopeNames.splice(0))
      isOrdered = false
    }
    if (!isOrdered) names.sort()
    const attributes = new Attributes()
    let key = ''
    for (const name of names) {
      const value = labels.get(name)!
      attributes.add(name, value)
      key += `${name.length}:${name}${value.length}:${value}`
    }
    const scope =
      scopeNames.length === 0
        ? metricsScope
        : scopeOf(scopeNames.sort().flatMap(name => [name, labels.get(name)!]))
    return { origin: this.#origin(scope, job, instance), attributes, key, special: specialValue }
  }

  #origin(scope: Scope, job: string, instance: string): Origin {
    const last = this.#last
    if (last?.scope === scope && last.identity.job === job && last.identity.instance === instance) return last
    const jobs = entry(this.#origins, scope, () => new Map<string, Map<string, Origin>>())
    const instances = entry(jobs, job, () => new Map<string, Origin>())
    this.#last = entry(instances, instance, () => ({ identity: { job, instance }, scope }))
    return this.#last
  }
}

/** Values by origin and name, in the order of creation. */
export class ByName<T> {
  readonly #things = new Map<Origin, Map<string, T>>()
  readonly #make: () => T
  #origin: Origin | undefined
  #name = ''
  #thing: T | undefined

  constructor(make: () => T) {
    this.#make = make
  }

  find(origin: Origin, name: string): T | undefined {
    return this.#things.get(origin)?.get(name)
  }

  of(origin: Origin, name: string): T {
    // Adjacent series mostly belong to one metric.
    if (this.#thing !== undefined && origin === this.#origin && name === this.#name) return this.#thing
    const named = entry(this.#things, origin, () => new Map<string, T>())
    this.#thing = entry(named, name, this.#make)
    this.#origin = origin
    this.#name = name
    return this.#thing
  }

  forEach(visit: (thing: T, origin: Origin, name: string) => void): void {
    for (const [origin, named] of this.#things) for (const [name, thing] of named) visit(thing, origin, name)
  }
}

/** Value of a key, created if missing. */
export function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key)
  if (value === undefined) {
    value = make()
    map.set(key, value)
  }
  return value
}

const infinity = /^([-+]?)inf(?:inity)?$/i
/** No valid number is longer. */
const longestNumber = 64

/** Number in a label such as `le`; NaN if invalid. */
export function numberOf(text: string | undefined): number {
  if (text === undefined || text.length > longestNumber) return Number.NaN
  const infinite = infinity.exec(text)
  if (infinite === null) return decimal(text)
  return infinite[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
}
