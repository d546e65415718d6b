// Rights of an account for the roles of target discovery. test/deploy compares them with the actual requests.
import { endpointSliceRole } from '../../src/signals/metrics/scraping/sources/kubernetes/endpoint-slice.ts'
import { endpointsRole } from '../../src/signals/metrics/scraping/sources/kubernetes/endpoints.ts'
import { ingressRole } from '../../src/signals/metrics/scraping/sources/kubernetes/ingress.ts'
import { nodeRole } from '../../src/signals/metrics/scraping/sources/kubernetes/node.ts'
import { podRole } from '../../src/signals/metrics/scraping/sources/kubernetes/pod.ts'
import { serviceRole } from '../../src/signals/metrics/scraping/sources/kubernetes/service.ts'
import type { Resource, Role } from '../../src/signals/metrics/scraping/sources/kubernetes/watched.ts'

const roles: Readonly<Record<string, Role>> = {
  pod: podRole,
  service: serviceRole,
  endpoints: endpointsRole,
  endpointslice: endpointSliceRole,
  node: nodeRole,
  ingress: ingressRole,
}

/** API groups of resources outside the core. */
const groups: Partial<Readonly<Record<Resource, string>>> = {
  endpointslices: 'discovery.k8s.io',
  ingresses: 'networking.k8s.io',
}

/** `group/resource` by role. */
export function rightsOfRoles(): Readonly<Record<string, readonly string[]>> {
  const named = (resource: Resource) => `${groups[resource] ?? ''}/${resource}`
  return Object.fromEntries(
    Object.entries(roles).map(([name, { resource, joins }]) => [name, [resource, ...joins].map(named)]),
  )
}
