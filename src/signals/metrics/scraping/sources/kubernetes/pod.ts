import { hostPort } from '../../../../../foundation/lib/host-port.ts'
import {
  isObject,
  type JsonObject,
  listOf,
  objectOf,
  textOf,
} from '../../../../../foundation/lib/json-fields.ts'
import type { TargetGroup } from '../../scrape-job.ts'
import { type MetaLabels, metaPrefix, namespaceLabel, objectName } from './meta-labels.ts'
import type { ContainerPort, Joined, JoinedPod, Labels, PodContainer, Role, WatchedGroup } from './watched.ts'

const maxContainers = 1_000
const maxPorts = 10_000

/** A pod (core v1 `Pod`): a target per port of each container. */
class Pod implements WatchedGroup, JoinedPod {
  readonly key: string
  readonly refs: readonly string[]
  readonly ip: string
  readonly labels: Labels
  readonly containers: readonly PodContainer[]
  readonly #node: string

  constructor(object: JsonObject, key: string, namespace: string, meta: MetaLabels, withNode: boolean) {
    const { status, spec } = object
    this.key = key
    this.ip = textOf(objectOf(status).podIP, 45)
    this.#node = meta.text(textOf(objectOf(spec).nodeName, 253))
    this.refs = withNode && this.#node !== '' ? [`nodes ${this.#node}`] : []
    this.labels = podLabels(object, namespace, meta)
    this.containers = readContainers(object, meta)
  }

  group(joined: Joined): TargetGroup | undefined {
    // It has no address while it starts, and after it was evicted.
    if (this.ip === '') return undefined
    // Without labels of a node, all targets share one map.
    const node = this.refs.length > 0 ? joined.node(this.#node) : undefined
    const labels = node === undefined ? this.labels : new Map([...this.labels, ...node])
    const targets: Labels[] = []
    for (const container of this.containers) {
      if (container.ports.length === 0) targets.push(new Map([['__address__', this.ip], ...container.labels]))
      for (const port of container.ports) targets.push(this.target(container, port))
    }
    return { source: `pod/${this.key}`, targets, labels }
  }

  target(container: PodContainer, port: ContainerPort): Map<string, string> {
    const target = new Map([['__address__', hostPort(this.ip, port.number)]])
    addPort(target, container, port)
    return target
  }
}

/** Adds the labels of a container and of one of its ports. */
export function addPort(target: Map<string, string>, { labels }: PodContainer, port: ContainerPort): void {
  for (const [name, value] of labels) target.set(name, value)
  target.set(`${metaPrefix}pod_container_port_number`, String(port.number))
  if (port.name !== '') target.set(`${metaPrefix}pod_container_port_name`, port.name)
  if (port.protocol !== '') target.set(`${metaPrefix}pod_container_port_protocol`, port.protocol)
}

export function readPod(object: JsonObject, meta: MetaLabels, withNode = false): Pod | undefined {
  const named = objectName(object)
  return named && new Pod(object, named.key, named.namespace, meta, withNode)
}

export const podRole: Role = { resource: 'pods', joins: [], hasNode: true, read: readPod }

function podLabels(object: JsonObject, namespace: string, meta: MetaLabels): Labels {
  const metadata = objectOf(object.metadata)
  const status = objectOf(object.status)
  const labels = new Map<string, string>()
  const set = (name: string, value: string) => meta.set(labels, `pod_${name}`, value)
  if (namespace !== '') labels.set(namespaceLabel, meta.text(namespace))
  set('ip', textOf(status.podIP, 45))
  set('ready', readiness(status))
  set('phase', textOf(status.phase, 32))
  set('node_name', textOf(objectOf(object.spec).nodeName, 253))
  set('host_ip', textOf(status.hostIP, 45))
  set('uid', textOf(metadata.uid, 128))
  const owners = listOf(metadata.ownerReferences).map(objectOf)
  const controller = objectOf(owners.find(owner => owner.controller === true))
  set('controller_kind', textOf(controller.kind, 253))
  set('controller_name', textOf(controller.name, 253))
  meta.addObject(labels, 'pod', object)
  return labels
}

function readiness(status: JsonObject): string {
  const ready = listOf(status.conditions).find(each => objectOf(each).type === 'Ready')
  return textOf(objectOf(ready).status, 32).toLowerCase() || 'unknown'
}

function readContainers({ spec, status }: JsonObject, meta: MetaLabels): readonly PodContainer[] {
  const read = (isInit: boolean): PodContainer[] => {
    const declared = listOf(objectOf(spec)[isInit ? 'initContainers' : 'containers'], maxContainers)
    const running = objectOf(status)[isInit ? 'initContainerStatuses' : 'containerStatuses']
    const ids = new Map(
      listOf(running, maxContainers)
        .filter(isObject)
        .map(each => [textOf(each.name, 253), textOf(each.containerID, 512)]),
    )
    return declared.filter(isObject).map(container => {
      const labels = new Map<string, string>()
      const name = textOf(container.name, 253)
      meta.set(labels, 'pod_container_name', name)
      meta.set(labels, 'pod_container_id', ids.get(name) ?? '')
      meta.set(labels, 'pod_container_image', textOf(container.image, 1024))
      meta.set(labels, 'pod_container_init', String(isInit))
      return { labels, ports: readPorts(container, meta) }
    })
  }
  return [...read(false), ...read(true)]
}

function readPorts({ ports }: JsonObject, meta: MetaLabels): readonly ContainerPort[] {
  const read: ContainerPort[] = []
  for (const port of listOf(ports, maxPorts)) {
    const { containerPort, name, protocol } = objectOf(port)
    if (!isPort(containerPort)) continue
    // TCP is Kubernetes' default protocol, and part of the label.
    read.push({
      number: containerPort,
      name: meta.text(textOf(name, 253)),
      protocol: meta.text(textOf(protocol, 32)),
    })
  }
  return read
}

export function isPort(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 65_535
}
