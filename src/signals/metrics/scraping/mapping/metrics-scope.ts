import { BoundedMap } from '../../../../foundation/lib/bounded-map.ts'
import { build } from '../../../../foundation/lib/build.ts'
import { small } from '../../../../foundation/lib/small-tables.ts'
import { Attributes } from '../../../../foundation/model/attributes.ts'
import type { Scope } from '../../../../foundation/model/resource.ts'

/** Prefix of labels of the scope (OpenTelemetry specification, compatibility/prometheus_and_openmetrics). */
export const scopePrefix = 'otel_scope_'

/** Scope of metrics without their own: the reader of the page. */
export const metricsScope: Scope = { name: 'svc/prometheus', version: build().version }

/** Foreign pages contain the scopes. */
const mostScopes = 1024

/** Cached by content: requests group metrics by scope object, so equal scopes must be one object while in use. */
const scopes = small(new BoundedMap<string, Scope>(mostScopes))

/**
 * Scope from the labels with the prefix `otel_scope_`: alternating names and values, ordered by name, without empty
 * values.
 */
export function scopeOf(labels: readonly string[]): Scope {
  const key = JSON.stringify(labels)
  let scope = scopes.get(key)
  if (scope === undefined) {
    scope = made(labels)
    scopes.set(key, scope)
  }
  return scope
}

function made(labels: readonly string[]): Scope {
  const attributes = new Attributes()
  const fields = new Map<string, string>()
  for (let i = 0; i < labels.length; i += 2) {
    const name = labels[i]!.slice(scopePrefix.length)
    if (name === 'name' || name === 'version' || name === 'schema_url') fields.set(name, labels[i + 1]!)
    else attributes.add(name, labels[i + 1]!)
  }
  const isNamed = fields.has('name') || fields.has('version')
  const { name, version } = isNamed
    ? { name: fields.get('name') ?? '', version: fields.get('version') ?? '' }
    : metricsScope
  const schemaUrl = fields.get('schema_url')
  return {
    name,
    version,
    ...(attributes.size > 0 && { attributes }),
    ...(schemaUrl !== undefined && { schemaUrl }),
  }
}
