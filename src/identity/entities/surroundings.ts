import type { Attributes } from '../../foundation/model/attributes.ts'
import { sameAttributes } from './same-attributes.ts'
import type { ServiceIdentity } from './service-identity.ts'

/**
 * Surroundings of a process: container, pod and machine. The object is replaced when a reported attribute changes (not
 * when only health changes), so identity shows whether anything changed.
 */
export interface Surroundings {
  /** `container.*`, `k8s.*`, `cloud.*` and `host.*`. */
  readonly attributes: Attributes
  /** Service name from the surroundings; overrides the name from the program. */
  readonly service: ServiceIdentity
  /** Labels of the pod, for selectors. */
  readonly podLabels: ReadonlyMap<string, string>
}

/** Whether both have the same content. */
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
