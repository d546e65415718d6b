import type { Owner } from '../lib/fair-share.ts'
import { Attributes, type AttributeValue } from './attributes.ts'

/** Who made the telemetry: one instance per observed entity, compared by identity. Its attributes never change. */
export interface Resource {
  readonly attributes: Attributes
  /** Whose share of a table it takes places of. Undefined: `hostOwner`. */
  readonly owner?: Owner | undefined
}

/** Whoever has no process of this host: the host itself. */
export const hostOwner: Owner = { group: '', user: '' }

/** The instrumentation scope: the part of svc that made the telemetry, or of an application that told it. */
export interface Scope {
  readonly name: string
  readonly version: string
  readonly attributes?: Attributes | undefined
  /** Of the conventions that its telemetry follows; without it those of this file. */
  readonly schemaUrl?: string | undefined
}

const identities = new WeakMap<Scope, string>()

/** The same for scopes that are one to a receiver, and for no others: name, version and attributes, whatever their order. */
export function scopeIdentity(scope: Scope): string {
  let identity = identities.get(scope)
  if (identity === undefined) {
    const { name, version, attributes } = scope
    const told: string[] = []
    for (let i = 0; attributes !== undefined && i < attributes.size; i++)
      told.push(JSON.stringify([attributes.keys[i], attributes.values[i]]))
    identity = JSON.stringify([name, version, ...told.sort()])
    identities.set(scope, identity)
  }
  return identity
}

/** Semantic conventions that all names follow. */
export const schemaUrl = 'https://opentelemetry.io/schemas/1.44.0'

/** Makes a resource of plain attributes. */
export function resource(attributes: Readonly<Record<string, AttributeValue>>, owner?: Owner): Resource {
  return { attributes: Attributes.of(attributes), owner }
}
