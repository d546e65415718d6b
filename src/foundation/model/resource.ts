import type { Owner } from '../lib/fair-share.ts'
import { Attributes, type AttributeValue } from './attributes.ts'

/** The origin of telemetry: one instance per observed entity, compared by identity. Its attributes never change. */
export interface Resource {
  readonly attributes: Attributes
  /** The owner that its table entries count towards. Undefined: `hostOwner`. */
  readonly owner?: Owner | undefined
}

/** Owner of resources without a process on this host: the host itself. */
export const hostOwner: Owner = { group: '', user: '' }

/** The service of one side of a call: its `service.name`, or the name that stands for it. */
export function serviceName(side: Resource | string): string {
  return typeof side === 'string' ? side : String(side.attributes.get('service.name') ?? '')
}

/** The instrumentation scope: the part of svc that made the telemetry, or the scope reported by an application. */
export interface Scope {
  readonly name: string
  readonly version: string
  readonly attributes?: Attributes | undefined
  /** Semantic conventions that its telemetry follows; undefined: those of this file. */
  readonly schemaUrl?: string | undefined
}

const identities = new WeakMap<Scope, string>()

/** Equal for exactly the scopes that a receiver considers the same: same name, version and attributes in any order. */
export function scopeIdentity(scope: Scope): string {
  let identity = identities.get(scope)
  if (identity === undefined) {
    const { name, version, attributes } = scope
    const pairs: string[] = []
    for (let i = 0; attributes !== undefined && i < attributes.size; i++)
      pairs.push(JSON.stringify([attributes.keys[i], attributes.values[i]]))
    identity = JSON.stringify([name, version, ...pairs.sort()])
    identities.set(scope, identity)
  }
  return identity
}

/** Semantic conventions that all names in svc follow. */
export const schemaUrl = 'https://opentelemetry.io/schemas/1.44.0'

/** Makes a resource from plain attributes. */
export function resource(attributes: Readonly<Record<string, AttributeValue>>, owner?: Owner): Resource {
  return { attributes: Attributes.of(attributes), owner }
}
