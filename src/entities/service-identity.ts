import type { Container, Pod } from '../model/entity.ts'

/** `service.*` as container and pod tell it. Texts that they do not tell are ''. */
export interface ServiceIdentity {
  readonly name: string
  readonly namespace: string
  readonly version: string
  /** What pods are annotated with for resources (`resource.opentelemetry.io/…`), the three above left out. */
  readonly annotated: readonly (readonly [string, string])[]
}

const prefix = 'resource.opentelemetry.io/'
/** In the order in which a workload is named (semantic conventions, Kubernetes attributes). */
const workloads = ['Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet', 'CronJob', 'Job']
const maxAnnotated = 64

/**
 * Which service a container is, by the labels and annotations that people put there: first those of Kubernetes, by the
 * rules of the semantic conventions, then those of Compose and Swarm, then the container's name where somebody chose it.
 */
export function serviceIdentity(container: Container | undefined, pod: Pod | undefined): ServiceIdentity {
  return pod === undefined ? ofContainer(container) : ofPod(container, pod)
}

function ofPod(
  container: Container | undefined,
  { labels, annotations, owners, name, namespace }: Pod,
): ServiceIdentity {
  const annotated: (readonly [string, string])[] = []
  for (const [key, value] of annotations) {
    const attribute = key.slice(prefix.length)
    if (key.startsWith(prefix) && attribute !== '' && annotated.length < maxAnnotated)
      annotated.push([attribute, value])
  }
  const given = new Map(annotated)
  const workload = workloads
    .map(kind => owners.find(owner => owner.kind === kind)?.name)
    .find(found => found !== undefined)
  return {
    name:
      given.get('service.name') ||
      labels.get('app.kubernetes.io/instance') ||
      labels.get('app.kubernetes.io/name') ||
      workload ||
      name ||
      container?.name ||
      '',
    namespace: given.get('service.namespace') || namespace,
    version: given.get('service.version') || labels.get('app.kubernetes.io/version') || '',
    annotated: annotated.filter(([key]) => !/^service\.(name|namespace|version)$/.test(key)),
  }
}

function ofContainer(container: Container | undefined): ServiceIdentity {
  const label = (key: string) => container?.labels.get(key) ?? ''
  const chosen = container === undefined || generated.test(container.name) ? '' : container.name
  return {
    name:
      label('com.docker.compose.service') ||
      label('com.docker.swarm.service.name') ||
      label('io.kubernetes.container.name') ||
      chosen,
    namespace:
      label('com.docker.compose.project') ||
      label('com.docker.stack.namespace') ||
      label('io.kubernetes.pod.namespace'),
    version: label('org.opencontainers.image.version'),
    annotated: [],
  }
}

/** A name that Docker or Podman made up: an adjective and a person (`clever_hopper`, `clever_hopper3`). */
const generated = /^[a-z]+_[a-z]+\d?$/
