import { hostPort } from '../../../../../foundation/lib/host-port.ts'
import {
  isObject,
  type JsonObject,
  listOf,
  objectOf,
  textOf,
} from '../../../../../foundation/lib/json-fields.ts'
import type { TargetGroup } from '../../scrape-job.ts'
import { type MetaLabels, namespaceLabel, objectName } from './meta-labels.ts'
import { isPort } from './pod.ts'
import { PodJoin } from './pod-join.ts'
import { readTargetRef } from './target-ref.ts'
import type { Joined, Labels, Role, WatchedGroup } from './watched.ts'

/** Limits of the API: 1000 endpoints with 100 addresses, and 20000 ports. */
const maxEndpoints = 1_000
const maxAddresses = 100
const maxPorts = 20_000
/** Label with the name of the slice's service (well-known labels of Kubernetes). */
const serviceName = 'kubernetes.io/service-name'

interface Endpoint {
  readonly addresses: readonly string[]
  readonly labels: Labels
  /** Name of the node whose labels are added; '' for none. */
  readonly node: string
  /** Key of its pod; '' for none. */
  readonly pod: string
}

/** A target per port of each address of a slice (discovery.k8s.io/v1 `EndpointSlice`). */
export const endpointSliceRole: Role = {
  resource: 'endpointslices',
  joins: ['pods', 'services'],
  hasNode: true,
  read(object, meta, withNode) {
    const named = objectName(object)
    return named && new EndpointSlice(object, named.key, named.namespace, meta, withNode)
  },
}

class EndpointSlice implements WatchedGroup {
  readonly key: string
  readonly refs: readonly string[]
  readonly #labels: Labels
  /** Key of its service; '' for none. */
  readonly #service: string
  readonly #ports: readonly { readonly number: number | undefined; readonly labels: Labels }[]
  readonly #endpoints: readonly Endpoint[]

  constructor(object: JsonObject, key: string, namespace: string, meta: MetaLabels, withNode: boolean) {
    this.key = key
    const labels = new Map<string, string>()
    if (namespace !== '') labels.set(namespaceLabel, meta.text(namespace))
    meta.set(labels, 'endpointslice_address_type', textOf(object.addressType, 64))
    meta.addObject(labels, 'endpointslice', object)
    this.#labels = labels
    const service = textOf(objectOf(objectOf(object.metadata).labels)[serviceName], 253)
    this.#service = service === '' ? '' : `${namespace}/${service}`
    this.#ports = readPorts(object, meta)
    this.#endpoints = listOf(object.endpoints, maxEndpoints)
      .filter(isObject)
      .map(endpoint => readEndpoint(endpoint, meta))
    const refs = new Set<string>()
    if (this.#service !== '') refs.add(`services ${this.#service}`)
    for (const { pod, node } of this.#endpoints) {
      if (pod !== '') refs.add(`pods ${pod}`)
      if (withNode && node !== '') refs.add(`nodes ${node}`)
    }
    this.refs = [...refs]
  }

  group(joined: Joined): TargetGroup {
    const labels = new Map([...this.#labels, ...(joined.service(this.#service) ?? [])])
    const pods = new PodJoin(joined)
    for (const endpoint of this.#endpoints)
      for (const port of this.#ports)
        for (const address of endpoint.addresses) {
          if (pods.isFull) break
          const place = port.number === undefined ? address : hostPort(address, port.number)
          const target = new Map([['__address__', place], ...port.labels, ...endpoint.labels])
          for (const [name, value] of joined.node(endpoint.node) ?? []) target.set(name, value)
          pods.add(target, endpoint.pod, port.number)
        }
    return { source: `endpointslice/${this.key}`, targets: pods.all(this.key), labels }
  }
}

function readPorts(object: JsonObject, meta: MetaLabels) {
  return listOf(object.ports, maxPorts)
    .filter(isObject)
    .map(({ name, protocol, port, appProtocol }) => {
      const number = isPort(port) ? port : undefined
      const labels = new Map<string, string>()
      meta.set(labels, 'endpointslice_port_name', textOf(name, 253))
      meta.set(labels, 'endpointslice_port_protocol', textOf(protocol, 32))
      meta.set(labels, 'endpointslice_port', number === undefined ? '' : String(number))
      meta.set(labels, 'endpointslice_port_app_protocol', textOf(appProtocol, 253))
      return { number, labels }
    })
}

function readEndpoint(endpoint: JsonObject, meta: MetaLabels): Endpoint {
  const labels = new Map<string, string>()
  const set = (name: string, value: string) => meta.set(labels, `endpointslice_${name}`, value)
  const conditions = objectOf(endpoint.conditions)
  for (const name of ['ready', 'serving', 'terminating']) {
    const value = conditions[name]
    if (typeof value === 'boolean') set(`endpoint_conditions_${name}`, String(value))
  }
  const ref = readTargetRef(endpoint.targetRef, meta)
  const node = textOf(endpoint.nodeName, 253)
  set('endpoint_hostname', textOf(endpoint.hostname, 253))
  set('endpoint_node_name', node)
  set('endpoint_zone', textOf(endpoint.zone, 253))
  set('address_target_kind', ref?.kind ?? '')
  set('address_target_name', ref?.name ?? '')
  const topology = 'endpointslice_endpoint_topology'
  meta.addEntries(labels, topology, endpoint.deprecatedTopology, `${topology}_present`)
  return {
    addresses: listOf(endpoint.addresses, maxAddresses)
      .map(each => textOf(each, 253))
      .filter(each => each !== ''),
    labels,
    node: ref?.kind === 'Node' ? ref.name : node,
    pod: ref?.pod ?? '',
  }
}
