import { type JsonObject, listOf, objectOf, textOf } from '../../../foundation/lib/json-fields.ts'
import { isSameMap } from '../../../foundation/lib/same-map.ts'
import type { Owner, Pod, PodContainer } from '../../../foundation/model/entity.ts'
import type { Interning } from './interning.ts'

/** Labels with the service name (semantic conventions, "Kubernetes attributes"). */
const serviceLabels: readonly string[] = [
  'app.kubernetes.io/name',
  'app.kubernetes.io/instance',
  'app.kubernetes.io/version',
]
const resourcePrefix = 'resource.opentelemetry.io/'
const maxKept = 64
const maxValue = 1024
const maxAddresses = 16
const noTexts: ReadonlyMap<string, string> = new Map()

/** A pod as read, and the data needed to find its owners. */
export interface PodReading {
  /** Its owners are only its controller, without owners above. */
  readonly pod: Pod
  /** `pod-template-hash`; '' for a pod without a Deployment. */
  readonly templateHash: string
}

/** Reads pods (Kubernetes API, core v1 `Pod`). */
export class PodReader {
  readonly #labels: ReadonlySet<string>
  readonly #annotations: ReadonlySet<string>
  readonly #interning: Interning

  constructor(labels: readonly string[], annotations: readonly string[], interning: Interning) {
    this.#labels = new Set([...serviceLabels, ...labels])
    this.#annotations = new Set(annotations)
    this.#interning = interning
  }

  /** Undefined if it is not a pod. */
  read(object: JsonObject): PodReading | undefined {
    const interning = this.#interning
    const metadata = objectOf(object.metadata)
    const spec = objectOf(object.spec)
    const status = objectOf(object.status)
    const uid = textOf(metadata.uid, 128)
    const name = textOf(metadata.name, 253)
    if (uid === '' || name === '') return undefined
    const owner = controllerOf(metadata)
    return {
      pod: {
        uid,
        name,
        namespace: interning.text(textOf(metadata.namespace, 253)),
        node: interning.text(textOf(spec.nodeName, 253)),
        startUs: microseconds(status.startTime),
        addresses: addressesOf(spec, status),
        labels: this.#chosen(metadata.labels, key => this.#labels.has(key)),
        annotations: this.#chosen(
          metadata.annotations,
          key => key.startsWith(resourcePrefix) || this.#annotations.has(key),
        ),
        owners: owner === undefined ? [] : [interning.owner(owner)],
        containers: this.#containers(spec, status),
      },
      templateHash: textOf(objectOf(metadata.labels)['pod-template-hash'], 63),
    }
  }

  #chosen(texts: unknown, isChosen: (key: string) => boolean): ReadonlyMap<string, string> {
    let kept: Map<string, string> | undefined
    for (const [key, value] of Object.entries(objectOf(texts))) {
      if (!isChosen(key) || typeof value !== 'string') continue
      kept ??= new Map()
      kept.set(this.#interning.text(key), this.#interning.text(value.length > maxValue ? cut(value) : value))
      if (kept.size === maxKept) break
    }
    return kept ?? noTexts
  }

  #containers(spec: JsonObject, status: JsonObject): PodContainer[] {
    const made = new Map<string, JsonObject>()
    for (const list of ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'])
      for (const each of listOf(status[list])) made.set(textOf(objectOf(each).name, 63), objectOf(each))
    const containers: PodContainer[] = []
    for (const list of ['containers', 'initContainers', 'ephemeralContainers'])
      for (const each of listOf(spec[list])) {
        const { name, image } = objectOf(each)
        const state = objectOf(made.get(textOf(name, 63)))
        if (textOf(name, 63) === '') continue
        containers.push({
          name: this.#interning.text(textOf(name, 63)),
          id: containerId(state.containerID),
          image: this.#interning.text(textOf(image) || textOf(state.image)),
          restarts: countOf(state.restartCount),
        })
      }
    return containers
  }
}

/** Whether two readings of a pod are equal, owners excluded. */
export function isSamePod(one: Pod, other: Pod): boolean {
  return (
    one.uid === other.uid &&
    one.name === other.name &&
    one.namespace === other.namespace &&
    one.node === other.node &&
    one.startUs === other.startUs &&
    isSameList(one.addresses, other.addresses, (a, b) => a === b) &&
    isSameMap(one.labels, other.labels) &&
    isSameMap(one.annotations, other.annotations) &&
    isSameList(
      one.containers,
      other.containers,
      (a, b) => a.name === b.name && a.id === b.id && a.image === b.image && a.restarts === b.restarts,
    )
  )
}

export function isSameOwners(some: readonly Owner[], others: readonly Owner[]): boolean {
  return isSameList(some, others, (a, b) => a.kind === b.kind && a.name === b.name && a.uid === b.uid)
}

/** Controller of an object: the owner that manages it. */
export function controllerOf(metadata: JsonObject): Owner | undefined {
  for (const each of listOf(metadata.ownerReferences)) {
    const { controller, kind, name, uid } = objectOf(each)
    const owner = { kind: textOf(kind, 63), name: textOf(name, 253), uid: textOf(uid, 128) }
    if (controller === true && owner.kind !== '' && owner.name !== '') return owner
  }
  return undefined
}

/** Addresses of a pod; none if it uses the host network, or if it has ended and another may have them. */
function addressesOf(spec: JsonObject, status: JsonObject): readonly string[] {
  if (spec.hostNetwork === true || status.phase === 'Succeeded' || status.phase === 'Failed') return []
  const addresses = listOf(status.podIPs, maxAddresses).map(each => textOf(objectOf(each).ip, 45))
  const all = [textOf(status.podIP, 45), ...addresses].filter(address => address !== '')
  return [...new Set(all)]
}

/** Container ID without the runtime prefix (`containerd://…`). */
function containerId(value: unknown): string {
  const found = /^[a-z0-9-]{1,32}:\/\/([0-9a-f]{1,128})$/.exec(textOf(value))?.[1]
  // A copy: a substring would keep the whole text in memory.
  return found === undefined ? '' : Buffer.from(found, 'latin1').toString('latin1')
}

function countOf(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 0
}

function cut(text: string): string {
  return Buffer.from(text.slice(0, maxValue), 'utf16le').toString('utf16le')
}

/** Microseconds since the epoch; 0 if it is not a time. */
function microseconds(value: unknown): number {
  const at = Date.parse(textOf(value, 64))
  return Number.isFinite(at) && at > 0 ? at * 1000 : 0
}

function isSameList<T>(some: readonly T[], others: readonly T[], same: (a: T, b: T) => boolean): boolean {
  return some.length === others.length && some.every((each, i) => same(each, others[i]!))
}
