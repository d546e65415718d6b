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
import { isPort } from './pod.ts'
import { PodJoin } from './pod-join.ts'
import { readTargetRef, type TargetRef } from './target-ref.ts'
import type { Joined, Labels, Role, WatchedGroup } from './watched.ts'

/** Kubernetes' own controller limits them to 1000. */
const maxAddresses = 10_000
const maxPorts = 1_000

interface Address {
  readonly ip: string
  readonly ready: boolean
  readonly hostname: string
  readonly node: string
  readonly ref: TargetRef | undefined
}

interface Subset {
  readonly ports: readonly { readonly number: number; readonly labels: Labels }[]
  /** Ready ones first. */
  readonly addresses: readonly Address[]
}

/** A target per port of each address of a service (core v1 `Endpoints`). */
export const endpointsRole: Role = {
  resource: 'endpoints',
  joins: ['pods', 'services'],
  hasNode: true,
  read(object, meta, withNode) {
    const named = objectName(object)
    return named && new Endpoints(object, named.key, named.namespace, meta, withNode)
  },
}

class Endpoints implements WatchedGroup {
  readonly key: string
  readonly refs: readonly string[]
  readonly #labels: Labels
  readonly #subsets: readonly Subset[]

  constructor(object: JsonObject, key: string, namespace: string, meta: MetaLabels, withNode: boolean) {
    this.key = key
    const labels = new Map<string, string>()
    if (namespace !== '') labels.set(namespaceLabel, meta.text(namespace))
    meta.addObject(labels, 'endpoints', object)
    this.#labels = labels
    this.#subsets = listOf(object.subsets, maxAddresses).map(subset => readSubset(objectOf(subset), meta))
    const refs = new Set([`services ${key}`])
    for (const { addresses } of this.#subsets)
      for (const { node, ref } of addresses) {
        if (ref !== undefined && ref.pod !== '') refs.add(`pods ${ref.pod}`)
        if (withNode && node !== '') refs.add(`nodes ${node}`)
      }
    this.refs = [...refs]
  }

  group(joined: Joined): TargetGroup {
    const labels = new Map([...this.#labels, ...(joined.service(this.key) ?? [])])
    const pods = new PodJoin(joined)
    for (const { ports, addresses } of this.#subsets)
      for (const port of ports)
        for (const address of addresses) {
          if (pods.isFull) break
          const target = targetOf(address, port.labels, port.number)
          for (const [name, value] of joined.node(address.node) ?? []) target.set(name, value)
          pods.add(target, address.ref?.pod ?? '', port.number)
        }
    return { source: `endpoints/${this.key}`, targets: pods.all(this.key), labels }
  }
}

function targetOf(
  { ip, ready, hostname, node, ref }: Address,
  port: Labels,
  number: number,
): Map<string, string> {
  const target = new Map([['__address__', hostPort(ip, number)], ...port])
  const set = (name: string, value: string) => {
    if (value !== '') target.set(`${metaPrefix}endpoint_${name}`, value)
  }
  set('ready', String(ready))
  set('address_target_kind', ref?.kind ?? '')
  set('address_target_name', ref?.name ?? '')
  set('node_name', node)
  set('hostname', hostname)
  return target
}

function readSubset(subset: JsonObject, meta: MetaLabels): Subset {
  const ports = []
  for (const entry of listOf(subset.ports, maxPorts)) {
    const { port, name, protocol } = objectOf(entry)
    if (!isPort(port)) continue
    const labels = new Map<string, string>()
    meta.set(labels, 'endpoint_port_name', textOf(name, 253))
    meta.set(labels, 'endpoint_port_protocol', textOf(protocol, 32))
    ports.push({ number: port, labels })
  }
  const read = (list: unknown, ready: boolean) =>
    listOf(list, maxAddresses)
      .filter(isObject)
      .map(each => ({
        ip: textOf(each.ip, 45),
        ready,
        hostname: textOf(each.hostname, 253),
        node: meta.text(textOf(each.nodeName, 253)),
        ref: readTargetRef(each.targetRef, meta),
      }))
      .filter(({ ip }) => ip !== '')
  return { ports, addresses: [...read(subset.addresses, true), ...read(subset.notReadyAddresses, false)] }
}
