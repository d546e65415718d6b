import { BoundedMap } from '../../../../../foundation/lib/bounded-map.ts'
import { type JsonObject, objectOf, textOf } from '../../../../../foundation/lib/json-fields.ts'
import { small } from '../../../../../foundation/lib/small-tables.ts'
import { Interning } from '../../../../../identity/discovery/kubernetes/interning.ts'
import { labelPart } from '../_labels.ts'

export const metaPrefix = '__meta_kubernetes_'
export const namespaceLabel = `${metaPrefix}namespace`

/** Kubernetes allows 253 characters for a prefix and 63 for a name. */
const maxName = 317
const maxEntries = 1_000
/** Longer values are documents, which rules do not use, and every pod would keep them in memory. */
const maxValue = 4_096
const maxNames = 16_384
/** Copy of the whole object, as of the last `kubectl apply`. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/** Name of an object in the API. */
export interface ObjectName {
  readonly name: string
  readonly namespace: string
  /** `namespace/name`, or the name alone. */
  readonly key: string
}

/** Undefined if it is not a Kubernetes object. */
export function objectName(object: JsonObject): ObjectName | undefined {
  const metadata = objectOf(object.metadata)
  const name = textOf(metadata.name, 253)
  const namespace = textOf(metadata.namespace, 253)
  if (name === '') return undefined
  return { name, namespace, key: namespace === '' ? name : `${namespace}/${name}` }
}

/** Labels of targets from objects. Texts that many objects share are kept in memory once. */
export class MetaLabels {
  readonly #interning = new Interning()
  readonly #names = small(new BoundedMap<string, string>(maxNames))

  text(text: string): string {
    return this.#interning.text(text)
  }

  /** Sets a label, unless it is empty. */
  set(labels: Map<string, string>, name: string, value: string): void {
    if (value !== '') labels.set(`${metaPrefix}${name}`, this.#interning.text(value))
  }

  /** Adds `…_name`, and the labels and annotations of an object of this role. */
  addObject(labels: Map<string, string>, role: string, object: JsonObject): void {
    const metadata = objectOf(object.metadata)
    this.set(labels, `${role}_name`, textOf(metadata.name, 253))
    this.addEntries(labels, `${role}_label`, metadata.labels)
    this.addEntries(labels, `${role}_annotation`, metadata.annotations)
  }

  /** Adds `<kind>_<name>` and `<kind>present_<name>` for each entry. */
  addEntries(labels: Map<string, string>, kind: string, entries: unknown, present = `${kind}present`): void {
    let left = maxEntries
    for (const [name, value] of Object.entries(objectOf(entries))) {
      if (name.length > maxName || typeof value !== 'string' || left-- <= 0) continue
      labels.set(this.#name(present, name), 'true')
      if (value === '' || value.length > maxValue || name === lastApplied) continue
      labels.set(this.#name(kind, name), this.#interning.text(value))
    }
  }

  #name(kind: string, name: string): string {
    const key = `${kind}_${name}`
    const known = this.#names.get(key)
    if (known !== undefined) return known
    const made = `${metaPrefix}${kind}_${labelPart(name)}`
    this.#names.set(key, made)
    return made
  }
}
