import { hostPort } from '../../../../../foundation/lib/host-port.ts'
import { type JsonObject, listOf, objectOf, textOf } from '../../../../../foundation/lib/json-fields.ts'
import { labelPart } from '../_labels.ts'
import { type MetaLabels, metaPrefix, objectName } from './meta-labels.ts'
import { isPort } from './pod.ts'
import type { Labels, Role, Watched } from './watched.ts'

const maxAddresses = 100
/** Preferred address types of a node, in order. */
const order = ['InternalIP', 'InternalDNS', 'ExternalIP', 'ExternalDNS', 'LegacyHostIP', 'Hostname']

/** Labels of a node for joining with its pods. */
export interface NodeLabels extends Watched {
  readonly labels: Labels
}

export function readNodeLabels(object: JsonObject, meta: MetaLabels): NodeLabels | undefined {
  const named = objectName(object)
  if (named === undefined) return undefined
  const labels = new Map<string, string>()
  meta.set(labels, 'node_name', named.name)
  meta.addEntries(labels, 'node_label', objectOf(object.metadata).labels)
  return { key: named.name, labels }
}

/** A target per node (core v1 `Node`): its kubelet. */
export const nodeRole: Role = {
  resource: 'nodes',
  joins: [],
  hasNode: false,
  read(object, meta) {
    const named = objectName(object)
    if (named === undefined) return undefined
    const { name } = named
    const labels = new Map<string, string>()
    meta.set(labels, 'node_provider_id', textOf(objectOf(object.spec).providerID))
    meta.addObject(labels, 'node', object)
    const target = targetOf(object, name)
    const group = target && { source: `node/${name}`, targets: [target], labels }
    return { key: name, refs: [], group: () => group }
  },
}

function targetOf(object: JsonObject, name: string): Labels | undefined {
  const status = objectOf(object.status)
  const addresses = new Map<string, string>()
  for (const entry of listOf(status.addresses, maxAddresses)) {
    const { type, address } = objectOf(entry)
    const [kind, text] = [textOf(type, 64), textOf(address, 253)]
    if (kind !== '' && text !== '' && !addresses.has(kind)) addresses.set(kind, text)
  }
  const first = order.find(kind => addresses.has(kind))
  if (first === undefined) return undefined
  const endpoint = objectOf(objectOf(status.daemonEndpoints).kubeletEndpoint)
  const port = isPort(endpoint.Port) ? endpoint.Port : 0
  const target = new Map([
    ['__address__', hostPort(addresses.get(first)!, port)],
    ['instance', name],
  ])
  for (const [kind, address] of addresses) target.set(`${metaPrefix}node_address_${labelPart(kind)}`, address)
  return target
}
