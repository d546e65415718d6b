import type { Attributes } from '../../foundation/model/attributes.ts'
import type { Container, Pod } from '../../foundation/model/entity.ts'
import type { ContainerPlace } from './container-place.ts'

/** Adds attributes of a container (semantic conventions, container attributes). */
export function containerAttributes(
  attributes: Attributes,
  place: ContainerPlace,
  container: Container | undefined,
  labels: readonly string[],
): void {
  if (place.id === '') return
  attributes.set('container.id', place.id)
  const runtime = container?.runtime || place.runtime
  if (runtime !== '') attributes.set('container.runtime.name', runtime)
  if (container === undefined) return
  if (container.name !== '') attributes.set('container.name', container.name)
  image(attributes, container.image)
  if (container.imageId !== '') attributes.set('container.image.id', container.imageId)
  for (const label of labels) {
    const value = container.labels.get(label)
    if (value !== undefined) attributes.set(`container.label.${label}`, value)
  }
}

/** Adds attributes of a pod (semantic conventions, k8s attributes). */
export function podAttributes(
  attributes: Attributes,
  place: ContainerPlace,
  container: Container | undefined,
  pod: Pod | undefined,
  labels: readonly string[],
  annotations: readonly string[],
): void {
  const uid = pod?.uid || place.podUid || container?.podUid || ''
  if (uid === '') return
  attributes.set('k8s.pod.uid', uid)
  const inPod = pod?.containers.find(({ id }) => id !== '' && id === place.id)
  const name = inPod?.name ?? container?.podContainer ?? ''
  if (name !== '') attributes.set('k8s.container.name', name)
  if (inPod !== undefined) {
    attributes.set('k8s.container.restart_count', inPod.restarts)
    if (container === undefined || container.image === '') image(attributes, inPod.image)
  }
  if (pod === undefined) {
    // Labels that the kubelet gives to the runtime (k8s.io/kubernetes, pkg/kubelet/types/labels.go).
    const [podName, namespace] = [container?.labels.get(podNameLabel), container?.labels.get(namespaceLabel)]
    if (podName) attributes.set('k8s.pod.name', podName)
    if (namespace) attributes.set('k8s.namespace.name', namespace)
    return
  }
  attributes.set('k8s.pod.name', pod.name)
  attributes.set('k8s.namespace.name', pod.namespace)
  if (pod.node !== '') attributes.set('k8s.node.name', pod.node)
  if (pod.startUs !== 0) attributes.set('k8s.pod.start_time', new Date(pod.startUs / 1000).toISOString())
  for (const { kind, name: owner, uid: ownerUid } of pod.owners) {
    const key = ownerKinds.get(kind)
    if (key === undefined) continue
    attributes.set(`k8s.${key}.name`, owner)
    if (ownerUid !== '') attributes.set(`k8s.${key}.uid`, ownerUid)
  }
  for (const label of labels) {
    const value = pod.labels.get(label)
    if (value !== undefined) attributes.set(`k8s.pod.label.${label}`, value)
  }
  for (const annotation of annotations) {
    const value = pod.annotations.get(annotation)
    if (value !== undefined) attributes.set(`k8s.pod.annotation.${annotation}`, value)
  }
}

/** Owner kinds of the semantic conventions, by attribute name. */
const ownerKinds: ReadonlyMap<string, string> = new Map(
  ['Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet', 'CronJob', 'Job'].map(kind => [
    kind,
    kind.toLowerCase(),
  ]),
)

const podNameLabel = 'io.kubernetes.pod.name'
export const namespaceLabel = 'io.kubernetes.pod.namespace'

/** Tag of an image if it identifies a version; '' for none, and for moving tags. */
export function imageTag(reference: string): string {
  const { tag } = parseReference(reference)
  return tag === 'latest' ? '' : tag
}

function image(attributes: Attributes, reference: string): void {
  const { name, tag, digest } = parseReference(reference)
  if (name !== '') attributes.set('container.image.name', name)
  if (tag !== '') attributes.set('container.image.tags', [tag])
  if (name !== '' && digest !== '') attributes.set('container.image.repo_digests', [`${name}@${digest}`])
}

/** Splits `host:5000/shop/cart:1.2@sha256:…`. An image without a name has only a digest: `sha256:…`. */
function parseReference(reference: string): { name: string; tag: string; digest: string } {
  const at = reference.indexOf('@')
  const named = at < 0 ? reference : reference.slice(0, at)
  const digest = at < 0 ? '' : reference.slice(at + 1)
  const colon = named.lastIndexOf(':')
  const name = colon > named.lastIndexOf('/') ? named.slice(0, colon) : named
  return name === 'sha256'
    ? { name: '', tag: '', digest: named }
    : { name, tag: named.slice(name.length + 1), digest }
}
