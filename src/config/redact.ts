import { hideOf } from '../foundation/schema/collections.ts'
import { leaves, show } from '../foundation/schema/tree.ts'
import type { LoadedConfig, Origin } from './load.ts'
import { type Config, schema } from './schema.ts'

/**
 * The whole configuration in the shape of a file, with durations and sizes as text. Secret keys, and every value that
 * contains a secret file, are `[REDACTED]`.
 */
export function redacted(config: Config, origins: ReadonlyMap<string, Origin>): unknown {
  return show(schema, config, (leaf, path) => hideOf(leaf, origins.get(path)?.secrets ?? []))
}

/** A key with its redacted value. */
export interface ShownKey {
  readonly key: string
  readonly value: unknown
  /** `default`, a place in the file, or the name of a variable or flag. */
  readonly origin: string
}

/** Every key with the source of its value, in the order of the schema. */
export function shownKeys({ config, origins }: Pick<LoadedConfig, 'config' | 'origins'>): ShownKey[] {
  return [...leaves(schema)].map(([key, leaf]) => {
    const origin = origins.get(key)
    const value = leaf.kind.show(at(config, key), hideOf(leaf, origin?.secrets ?? []))
    if (origin === undefined) return { key, value, origin: 'default' }
    const { name, line, column } = origin
    return { key, value, origin: line > 0 ? `${name}:${line}:${column}` : name }
  })
}

function at(config: unknown, path: string): unknown {
  return path.split('.').reduce((part, name) => (part as Record<string, unknown>)[name], config)
}

/** All texts that `redacted` hides, so that they can be hidden elsewhere, too. Never shown. */
export function secretValues({ config, origins }: Pick<LoadedConfig, 'config' | 'origins'>): Set<string> {
  const found = new Set<string>()
  collectHidden(config, redacted(config, origins), found)
  for (const { secrets } of origins.values()) for (const secret of secrets) found.add(secret)
  return found
}

function collectHidden(value: unknown, shown: unknown, into: Set<string>): void {
  if (typeof shown === 'string') {
    if (!shown.includes('[REDACTED]') || value === shown) return
    const text = String(value)
    into.add(text)
    // Also the credentials of a URL alone.
    for (const part of /^[a-z]+:\/\/([^/@]*)@/i.exec(text)?.[1]?.split(':') ?? []) into.add(part)
  } else if (typeof value === 'object' && value !== null && typeof shown === 'object' && shown !== null) {
    for (const [name, part] of Object.entries(shown))
      collectHidden((value as Record<string, unknown>)[name], part, into)
  }
}
