import { ownText } from '../../foundation/lib/own-text.ts'

/** Attributes set by a process's environment or by pod annotations. */
export type DeclaredAttributes = readonly (readonly [key: string, value: string])[]

/** Dropped attributes by reason. */
export interface AttributeLosses {
  /** Neither of service nor deployment, and not allowed by configuration. */
  not_allowed: number
  /** Over the limit of one process, or of all. */
  too_many: number
  /** Truncated key or value. */
  too_long: number
}

export type AttributeLoss = keyof AttributeLosses

/** Maximum attributes of one process or pod. */
const maxAttributes = 32
const maxKeyBytes = 128
export const maxDeclaredBytes = 256
const maxAllBytes = 4_096

/**
 * Whether a process may set the attribute about itself: its service name and deployment but not its instance, and
 * whatever `more` lists (`app.*` for all with the prefix `app.`). An allow-list, because receivers identify hosts,
 * containers and instances by names of their own (`dt.entity.host`, `instance`, `job`), and a user who may start a
 * process must not be able to pose as another.
 */
export function mayDeclare(key: string, more: readonly string[]): boolean {
  if (key.startsWith('deployment.')) return true
  // Receivers normalise keys: to Prometheus, `service.instance_id` and `service.instance.id` are the same label.
  if (key.startsWith('service.'))
    return !/^serviceinstance(id)?$/.test(key.toLowerCase().replace(/[^a-z0-9]/g, ''))
  return more.some(each => (each.endsWith('.*') ? key.startsWith(each.slice(0, -1)) : key === each))
}

/** Attributes that are allowed and within the limits; `lost` counts the rest. `more`: see `mayDeclare`. */
export function acceptedAttributes(
  told: DeclaredAttributes,
  more: readonly string[],
  lost: (why: AttributeLoss) => void,
): DeclaredAttributes {
  const kept: (readonly [string, string])[] = []
  let bytes = 0
  // Service attributes first, wherever they are in the list.
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
