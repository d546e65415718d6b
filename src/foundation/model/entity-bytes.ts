import type { Container, Pod } from './entity.ts'

/** Estimates: an entity with its texts, a text besides its characters, and a container of a pod. */
const entryBytes = 1_024
const textBytes = 24
const containerBytes = 256

/** Approximate memory of a container or pod. */
export function entityBytes(entity: Container | Pod | undefined): number {
  if (entity === undefined) return 0
  let bytes = entryBytes
  const texts = 'annotations' in entity ? [entity.labels, entity.annotations] : [entity.labels]
  for (const map of texts)
    for (const [key, value] of map) bytes += 2 * textBytes + key.length + 2 * value.length
  return 'containers' in entity ? bytes + entity.containers.length * containerBytes : bytes
}
