// What is known of containers, cluster and cloud, of logs and of GPUs, as documents.

import type { DiscoveryDocument, GpuDocument, LogsDocument } from '../api/types.ts'
import type { Parts } from './parts.ts'

const maxContainers = 1_000
const maxFollowed = 100

export async function discoveryDocument(parts: Parts): Promise<DiscoveryDocument> {
  const { discovery, processes } = parts
  const shown = new Set(parts.loaded().config.agent.discovery.docker.labels)
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
    containers: [...entities.eachContainer()].slice(0, maxContainers).map(container => ({
      id: container.id,
      name: container.name,
      image: container.image,
      runtime: container.runtime,
      state: container.state,
      health: container.health,
      pod: container.podUid,
      service: entities.surroundings({ id: container.id, runtime: '', podUid: '' }).service.name,
      // The others may hold secrets.
      labels: Object.fromEntries([...container.labels].filter(([label]) => shown.has(label))),
    })),
  }
}

export function logsDocument({ logs }: Parts): LogsDocument {
  const { status } = logs
  return {
    enabled: status.enabled,
    records: Object.fromEntries(status.records),
    files: status.files,
    behind_bytes: status.behindBytes,
    read_bytes: status.readBytes,
    paused: status.paused,
    truncations: status.truncations,
    lost_rotations: status.lostRotations,
    left_out_files: status.leftOut.files,
    left_out_directories: status.leftOut.directories,
    places_taken: status.losses.taken,
    cut_texts: status.cutTexts,
    journal: status.journal,
    followed: status.followed.slice(0, maxFollowed),
  }
}

export function gpuDocument({ gpu }: Parts): GpuDocument {
  const state = gpu.source?.state
  return {
    enabled: state?.on ?? false,
    reason: state?.reason ?? '',
    driver: state?.driver ?? '',
    devices: (state?.devices ?? []).map(({ index, uuid, name, reason }) => ({ index, uuid, name, reason })),
  }
}
