import { type Branch, isBranch, join, type Key, leaves } from '../foundation/schema/tree.ts'
import type { Origin } from './load.ts'
import { type Config, schema } from './schema.ts'

/** A feature that is enabled but does not exist in this version. */
export interface NotBuilt {
  /** The key that enables it. */
  readonly key: string
  readonly why: string
  /** Enabled explicitly, rather than by default. */
  readonly explicit: boolean
}

/**
 * Enabled features that are not built. A whole branch is one feature. In mode `collector`, agent features count only if
 * explicitly enabled.
 */
export function notBuiltFeatures(config: Config, origins: ReadonlyMap<string, Origin>): NotBuilt[] {
  const found: NotBuilt[] = []
  walk(schema, config, '', origins, found)
  return found.filter(
    feature => config.mode === 'agent' || feature.explicit || !feature.key.startsWith('agent.'),
  )
}

function walk(
  root: Branch,
  config: unknown,
  path: string,
  origins: ReadonlyMap<string, Origin>,
  found: NotBuilt[],
): void {
  for (const [name, node] of Object.entries(root.keys)) {
    const key = join(path, name)
    const value = (config as Record<string, unknown>)[name]
    if (isBranch(node)) {
      const { enabled } = value as { enabled?: boolean }
      if (node.built === false) {
        const explicit = [...leaves(node, key)].some(([leaf]) => origins.has(leaf))
        if (enabled ?? (explicit || switched(value)))
          found.push({ key, why: why(node.description), explicit })
      } else if (enabled !== false) walk(node, value, key, origins, found)
    } else {
      const missing = node.kind.missing?.(value)
      const explicit = origins.has(key)
      if (missing !== undefined)
        found.push({ key: `${key}: ${missing}`, why: why(node.description), explicit })
      else if (node.built === false && isOn(node, value))
        found.push({ key, why: why(node.description), explicit })
    }
  }
}

/** A switch is enabled if true, any other key if it differs from the default. */
function isOn(leaf: Key<unknown>, value: unknown): boolean {
  return typeof value === 'boolean' ? value : JSON.stringify(value) !== JSON.stringify(leaf.default)
}

/** True if any `enabled` below is true. */
function switched(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([name, each]) => (name === 'enabled' && each === true) || switched(each))
}

function why(description: string): string {
  return `not built in this version: ${description}`
}
