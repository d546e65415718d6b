import { hostPort } from '../../../../../foundation/lib/host-port.ts'
import { type JsonObject, listOf, objectOf, textOf } from '../../../../../foundation/lib/json-fields.ts'
import type { TargetGroup } from '../../scrape-job.ts'
import { type MetaLabels, namespaceLabel, objectName } from './meta-labels.ts'
import { isPort } from './pod.ts'
import type { Labels, Role, Watched, WatchedGroup } from './watched.ts'

const maxPorts = 10_000

/** Labels of a service for joining with its endpoints. */
export interface ServiceLabels extends Watched {
  readonly labels: Labels
}

export function readServiceLabels(object: JsonObject, meta: MetaLabels): ServiceLabels | undefined {
  const named = objectName(object)
  if (named === undefined) return undefined
  const labels = new Map<string, string>()
  if (named.namespace !== '') labels.set(namespaceLabel, meta.text(named.namespace))
  meta.addObject(labels, 'service', object)
  return { key: named.key, labels }
}

/** A target per port of each service (core v1 `Service`), by its name in the cluster. */
export const serviceRole: Role = {
  resource: 'services',
  joins: [],
  hasNode: false,
  read(object, meta) {
    const named = objectName(object)
    const read = readServiceLabels(object, meta)
    if (named === undefined || read === undefined) return undefined
    const host = `${named.name}.${named.namespace}.svc`
    const { key, labels } = read
    const group: TargetGroup = { source: `svc/${key}`, targets: targetsOf(object, host, meta), labels }
    return { key, refs: [], group: () => group } satisfies WatchedGroup
  },
}

function targetsOf(object: JsonObject, host: string, meta: MetaLabels): readonly Labels[] {
  const spec = objectOf(object.spec)
  const type = textOf(spec.type, 64)
  const targets: Labels[] = []
  for (const entry of listOf(spec.ports, maxPorts)) {
    const { port, name, protocol } = objectOf(entry)
    if (!isPort(port)) continue
    const target = new Map([['__address__', hostPort(host, port)]])
    const set = (label: string, value: string) => meta.set(target, `service_${label}`, value)
    set('port_name', textOf(name, 253))
    set('port_number', String(port))
    set('port_protocol', textOf(protocol, 32))
    set('type', type)
    if (type === 'ExternalName') set('external_name', textOf(spec.externalName, 253))
    else set('cluster_ip', textOf(spec.clusterIP, 45))
    if (type === 'LoadBalancer') set('loadbalancer_ip', textOf(spec.loadBalancerIP, 45))
    targets.push(target)
  }
  return targets
}
