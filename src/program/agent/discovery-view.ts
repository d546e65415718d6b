// The document about services, containers, cluster and cloud.

import type { ProcessTable } from '../../identity/entities/process-table.ts'
import type { DiscoveryDocument } from '../../view/api/types.ts'
import type { Discovery } from './discovery.ts'

const maxContainers = 1_000

/** Reads all processes. */
export async function discoveryDocument(
  discovery: Discovery,
  processes: ProcessTable,
): Promise<DiscoveryDocument> {
  const services = await processes.liveServices()
  const { entities } = discovery
  const docker = discovery.runtimes?.docker?.state
  const containerd = discovery.runtimes?.containerd?.state
  const kubernetes = discovery.kubernetes?.state
  const cloud = discovery.cloud?.state
  const found = entities.cloudFound
  return {
    kubernetes: {
      enabled: kubernetes !== undefined,
      connected: kubernetes?.connected ?? false,
      cluster: kubernetes?.cluster ?? '',
      namespace: kubernetes?.namespace ?? '',
      pods_watched: kubernetes?.podsWatched ?? 0,
      services_watched: kubernetes?.servicesWatched ?? 0,
      node: kubernetes?.node ?? '',
      reason: kubernetes?.reason ?? '',
    },
    docker: {
      enabled: docker !== undefined,
      connected: docker?.connected ?? false,
      containers: entities.containerCount,
      runtime: docker?.runtime ?? '',
      version: docker?.version ?? '',
      endpoint: docker?.endpoint ?? '',
      reason: docker?.reason ?? '',
    },
    containerd: {
      enabled: containerd !== undefined,
      connected: containerd?.connected ?? false,
      containers: containerd?.containers ?? 0,
      version: containerd?.version ?? '',
      endpoint: containerd?.endpoint ?? '',
      reason: containerd?.reason ?? '',
    },
    cloud: {
      provider: found?.provider ?? '',
      region: found?.region ?? '',
      instance_id: found?.instanceId ?? '',
      instance_name: found?.instanceName ?? '',
      zone: found?.zone ?? '',
      account: found?.account ?? '',
      instance_type: found?.instanceType ?? '',
      reason: cloud?.reason ?? '',
    },
    discovered_services: services,
    containers: containersOf(discovery),
  }
}

function containersOf({ entities, shownLabels }: Discovery): DiscoveryDocument['containers'] {
  const shown = new Set(shownLabels)
  return [...entities.eachContainer()].slice(0, maxContainers).map(container => ({
    id: container.id,
    name: container.name,
    image: container.image,
    runtime: container.runtime,
    state: container.state,
    health: container.health,
    pod: container.podUid,
    service: entities.surroundings({ id: container.id, runtime: '', podUid: '' }).service.name,
    labels: Object.fromEntries([...container.labels].filter(([label]) => shown.has(label))),
  }))
}
