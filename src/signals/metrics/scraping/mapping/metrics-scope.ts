import { BoundedMap } from '../../../../foundation/lib/bounded-map.ts'
import { build } from '../../../../foundation/lib/build.ts'
import { small } from '../../../../foundation/lib/small-tables.ts'
import { Attributes } from '../../../../foundation/model/attributes.ts'
import type { Scope } from '../../../../foundation/model/resource.ts'

/** Labels that begin so tell the scope (OpenTelemetry specification, compatibility/prometheus_and_openmetrics). */
export const scopePrefix = 'otel_scope_'

/** Of metrics that name none: who read the page. */
export const metricsScope: Scope = { name: 'svc/prometheus', version: build().version }

/** Foreign pages name them. */
const mostScopes = 1024

/** By what was told of them: requests group metrics by scope, so the same must be one object while it is in use. */
const scopes = small(new BoundedMap<string, Scope>(mostScopes))

/** The scope that labels tell which begin with `otel_scope_`: name and value by turns, ordered by name, none of them ''. */
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
