import type { Attributes } from '../../foundation/model/attributes.ts'
import { sameAttributes } from './same-attributes.ts'
import type { ServiceIdentity } from './service-identity.ts'

/**
 * What a process runs in: container, pod and machine. It is replaced as a whole when anything of it that is told changes
 * (that a container is healthy is not), so that identity says whether it did.
 */
export interface Surroundings {
  /** `container.*`, `k8s.*`, `cloud.*` and `host.*`. */
  readonly attributes: Attributes
  /** What they say of the service; stronger than what the process's program says of it. */
  readonly service: ServiceIdentity
  /** Of the pod, for selectors. */
  readonly podLabels: ReadonlyMap<string, string>
}

/** Whether they tell the same. */
export function sameSurroundings(a: Surroundings, b: Surroundings): boolean {
  const { name, namespace, version, annotated } = a.service
  return (
    sameAttributes(a.attributes, b.attributes) &&
    name === b.service.name &&
    namespace === b.service.namespace &&
    version === b.service.version &&
    sameEntries(annotated, b.service.annotated) &&
    sameEntries([...a.podLabels], [...b.podLabels])
  )
}

function sameEntries(
  a: readonly (readonly [string, string])[],
  b: readonly (readonly [string, string])[],
): boolean {
  return a.length === b.length && a.every(([key, value], i) => key === b[i]![0] && value === b[i]![1])
}
