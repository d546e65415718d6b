import { ownText } from '../../foundation/lib/own-text.ts'
import type { Container, Pod } from '../../foundation/model/entity.ts'
import { imageTag, namespaceLabel } from './container-attributes.ts'
import type { ContainerPlace } from './container-place.ts'
import {
  type AttributeLoss,
  acceptedAttributes,
  type DeclaredAttributes,
  maxDeclaredBytes,
} from './declared-attributes.ts'

/** `service.*` as given by container and pod; '' where missing. */
export interface ServiceIdentity {
  readonly name: string
  readonly namespace: string
  readonly version: string
  /** Resource annotations of the pod (`resource.opentelemetry.io/…`), without the three above. */
  readonly annotated: DeclaredAttributes
}

const prefix = 'resource.opentelemetry.io/'
/** Order in which workloads name the service (semantic conventions, Kubernetes attributes). */
const workloads = ['Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet', 'CronJob', 'Job']

/**
 * Service of a container, by labels and annotations: first those of Kubernetes, by the rules of the semantic
 * conventions, then those of Compose and Swarm, then the container's name unless it is generated. `allowedKeys`: see
 * `mayDeclare`; `lost` counts resource annotations that are dropped.
 */
export function serviceIdentity(
  place: ContainerPlace,
  container: Container | undefined,
  pod: Pod | undefined,
  allowedKeys: readonly string[],
  lost: (why: AttributeLoss) => void,
): ServiceIdentity {
  const given =
    pod === undefined
      ? ofContainer(container)
      : ofPod(container, place.id, pod, annotatedOf(pod, allowedKeys, lost))
  return {
    name: ownText(given.name, maxDeclaredBytes),
    namespace: ownText(given.namespace, maxDeclaredBytes),
    version: ownText(given.version, maxDeclaredBytes),
    annotated: given.annotated,
  }
}

/** The same limits apply to pod annotations as to process environments. */
function annotatedOf(
  { annotations }: Pod,
  allowedKeys: readonly string[],
  lost: (why: AttributeLoss) => void,
): DeclaredAttributes {
  const found: (readonly [string, string])[] = []
  for (const [key, value] of annotations)
    if (key.startsWith(prefix)) found.push([key.slice(prefix.length), value])
  return acceptedAttributes(found, allowedKeys, lost)
}

function ofPod(
  container: Container | undefined,
  id: string,
  pod: Pod,
  annotated: DeclaredAttributes,
): ServiceIdentity {
  const { labels, owners, name, namespace, containers } = pod
  const listed = containers.find(each => each.id !== '' && each.id === id)
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
      container?.podContainer ||
      '',
    namespace: given.get('service.namespace') || namespace,
    version:
      given.get('service.version') ||
      labels.get('app.kubernetes.io/version') ||
      imageTag(container?.image || listed?.image || ''),
    annotated: annotated.filter(([key]) => !/^service\.(name|namespace|version)$/.test(key)),
  }
}

function ofContainer(container: Container | undefined): ServiceIdentity {
  const label = (key: string) => container?.labels.get(key) ?? ''
  const chosen = container === undefined || isGenerated(container) ? '' : container.name
  return {
    name:
      label('com.docker.compose.service') ||
      label('com.docker.swarm.service.name') ||
      label('io.kubernetes.container.name') ||
      chosen,
    namespace:
      label('com.docker.compose.project') || label('com.docker.stack.namespace') || label(namespaceLabel),
    version: label('org.opencontainers.image.version'),
    annotated: [],
  }
}

/**
 * Whether the runtime generated the name: Docker and Podman from an adjective and a person (`clever_hopper`,
 * `clever_hopper3`), nerdctl from the image and the id (`nginx-7d482`).
 */
function isGenerated({ name, id }: Container): boolean {
  if (name.endsWith(`-${id.slice(0, 5)}`)) return true
  return adjectives.has(/^([a-z]+)_[a-z]+\d?$/.exec(name)?.[1] ?? '') || /^[0-9a-f]{12,64}$/.test(name)
}

/** From moby/pkg/namesgenerator, which Podman copied. */
const adjectives = new Set(
  `admiring adoring affectionate agitated amazing angry awesome beautiful blissful bold boring brave busy charming clever
  compassionate competent condescending confident cool cranky crazy dazzling determined distracted dreamy eager ecstatic
  elastic elated elegant eloquent epic exciting fervent festive flamboyant focused friendly frosty funny gallant gifted
  goofy gracious great happy hardcore heuristic hopeful hungry infallible inspiring intelligent interesting jolly jovial
  keen kind laughing loving lucid magical modest musing mystifying naughty nervous nice nifty nostalgic objective
  optimistic peaceful pedantic pensive practical priceless quirky quizzical recursing relaxed reverent romantic sad
  serene sharp silly sleepy stoic strange stupefied suspicious sweet tender thirsty trusting unruffled upbeat vibrant
  vigilant vigorous wizardly wonderful xenodochial youthful zealous zen`.split(/\s+/),
)
