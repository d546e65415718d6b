import { createHash } from 'node:crypto'
import { Attributes } from '../../../foundation/model/attributes.ts'
import type { Resource } from '../../../foundation/model/resource.ts'

/** Of a process's own attributes those that its service keeps: another user's service of the same name is another one. */
const kept = new Set(['process.owner', 'process.real_user.id'])

/** Whom a process works for: its resource without what tells it from other processes of its service and user. */
export function serviceResource({ attributes, owner }: Resource): Resource {
  const service = new Attributes()
  for (let i = 0; i < attributes.size; i++)
    if (isOfService(attributes.keys[i]!)) service.add(attributes.keys[i]!, attributes.values[i]!)
  return { attributes: service, owner }
}

/** The same for processes whose service is one to a receiver, and for no others. Short, as many are kept. */
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
