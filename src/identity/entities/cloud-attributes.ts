import type { Attributes } from '../../foundation/model/attributes.ts'
import type { Cloud } from '../../foundation/model/entity.ts'

/** Adds attributes of the machine in its cloud (semantic conventions, cloud and host attributes). */
export function cloudAttributes(attributes: Attributes, cloud: Cloud | undefined): void {
  if (cloud === undefined) return
  const named: readonly (readonly [string, string])[] = [
    ['cloud.provider', cloud.provider],
    ['cloud.platform', cloud.platform],
    ['cloud.region', cloud.region],
    ['cloud.availability_zone', cloud.zone],
    ['cloud.account.id', cloud.account],
    ['cloud.resource_id', cloud.resourceId],
    ['host.id', cloud.instanceId],
    ['host.type', cloud.instanceType],
    ['host.image.id', cloud.imageId],
  ]
  for (const [key, value] of named) if (value !== '') attributes.set(key, value)
}
