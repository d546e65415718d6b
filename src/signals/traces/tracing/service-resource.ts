import { createHash } from 'node:crypto'
import { Attributes } from '../../../foundation/model/attributes.ts'
import type { Resource } from '../../../foundation/model/resource.ts'

/** Attributes of a process that its service keeps: another user's service of the same name is a different one. */
const kept = new Set(['process.owner', 'process.real_user.id'])

/**
 * The service of a process: its resource without the attributes that differ between processes of one service and user.
 */
export function serviceResource({ attributes, owner }: Resource): Resource {
  const service = new Attributes()
  for (let i = 0; i < attributes.size; i++)
    if (isOfService(attributes.keys[i]!)) service.add(attributes.keys[i]!, attributes.values[i]!)
  return { attributes: service, owner }
}

/** Equal exactly for processes that a receiver sees as one service. Short, as many are kept. */
export function serviceKey({ attributes }: Resource): string {
  const hash = createHash('sha1')
  for (let i = 0; i < attributes.size; i++)
    if (isOfService(attributes.keys[i]!))
      hash.update(JSON.stringify([attributes.keys[i], attributes.values[i]]))
  return hash.digest('base64')
}

function isOfService(key: string): boolean {
  return key !== 'service.instance.id' && (!key.startsWith('process.') || kept.has(key))
}
