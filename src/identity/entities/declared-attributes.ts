import { ownText } from '../../foundation/lib/own-text.ts'

/** What somebody names a service with: a process in its environment, or who annotates a pod. */
export type DeclaredAttributes = readonly (readonly [key: string, value: string])[]

/** Attributes that were told and are not taken, by why. */
export interface AttributeLosses {
  /** They name neither service nor deployment, and nobody has allowed them. */
  not_allowed: number
  /** More than one process may name, or than all together. */
  too_many: number
  /** The end of a key or value. */
  too_long: number
}

export type AttributeLoss = keyof AttributeLosses

/** Of one process or pod. */
const maxAttributes = 32
const maxKeyBytes = 128
export const maxDeclaredBytes = 256
const maxAllBytes = 4_096

/**
 * Whether a process may name it of itself: what its service is called and how it is deployed, but not which instance it
 * is, and of all else what `more` lists, `app.*` for all that begin with `app.`. A list of what is allowed, because each
 * receiver has names of its own by which it knows hosts, containers and instances (`dt.entity.host`, `instance`, `job`):
 * whoever may start a process must not be able to pose as another.
 */
export function mayDeclare(key: string, more: readonly string[]): boolean {
  if (key.startsWith('deployment.')) return true
  // Receivers fold keys: `service.instance_id` is one label with `service.instance.id` to Prometheus.
  if (key.startsWith('service.'))
    return !/^serviceinstance(id)?$/.test(key.toLowerCase().replace(/[^a-z0-9]/g, ''))
  return more.some(each => (each.endsWith('.*') ? key.startsWith(each.slice(0, -1)) : key === each))
}

/** What may be taken of that, each and all within their bounds; `lost` counts the rest. `more`: see `mayDeclare`. */
export function acceptedAttributes(
  told: DeclaredAttributes,
  more: readonly string[],
  lost: (why: AttributeLoss) => void,
): DeclaredAttributes {
  const kept: (readonly [string, string])[] = []
  let bytes = 0
  // What names the service comes first, wherever it stands.
  for (const pass of [true, false])
    for (const [key, value] of told) {
      if (/^(service|deployment)\./.test(key) !== pass) continue
      const length = Buffer.byteLength(key)
      if (!mayDeclare(key, more)) lost('not_allowed')
      else if (length > maxKeyBytes) lost('too_long')
      else if (kept.length >= maxAttributes || bytes + length >= maxAllBytes) lost('too_many')
      else {
        const own = ownText(value, Math.min(maxDeclaredBytes, maxAllBytes - bytes - length))
        if (own.length < value.length) lost('too_long')
        bytes += length + Buffer.byteLength(own)
        kept.push([ownText(key, maxKeyBytes), own])
      }
    }
  return kept
}
