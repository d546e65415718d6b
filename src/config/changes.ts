import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type Branch, isBranch, join, type Key, leaves } from '../foundation/schema/tree.ts'
import type { LoadedConfig, Origin } from './load.ts'
import { type Config, schema } from './schema.ts'

/** Paths of keys with different values, in the order of the schema. Without the values, which may be secret. */
export interface ChangedKeys {
  /** Take effect immediately. */
  readonly live: readonly string[]
  /** Take effect after a restart. */
  readonly restart: readonly string[]
  /** Not supported by this version, or not with the new value. */
  readonly ignored: readonly string[]
}

/**
 * The keys whose effective values differ. If the switch of a branch requires a restart (`tls.enabled`), its other keys
 * wait for that restart too: a new certificate makes no sense with the old switch.
 */
export function changedKeys(before: LoadedConfig, after: LoadedConfig): ChangedKeys {
  const changed = { live: [], restart: [], ignored: [] }
  compare(schema, before.config, after.config, '', true, changed)
  return changed
}

function compare(
  root: Branch,
  before: unknown,
  after: unknown,
  path: string,
  built: boolean,
  changed: Record<keyof ChangedKeys, string[]>,
): void {
  const old = before as Readonly<Record<string, unknown>>
  const now = after as Readonly<Record<string, unknown>>
  const { enabled } = root.keys
  const waits =
    enabled !== undefined && !isBranch(enabled) && enabled.restart === true && old.enabled !== now.enabled
  for (const [name, node] of Object.entries(root.keys)) {
    const here = join(path, name)
    const exists = built && node.built !== false
    if (isBranch(node)) compare(node, old[name], now[name], here, exists, changed)
    else if (!isDeepStrictEqual(old[name], now[name]))
      changed[exists ? effectOf(node, now[name], waits) : 'ignored'].push(here)
  }
}

function effectOf(leaf: Key<unknown>, value: unknown, waits: boolean): keyof ChangedKeys {
  if (leaf.restart || waits) return 'restart'
  return leaf.kind.missing?.(value) === undefined ? 'live' : 'ignored'
}

/** The configuration `after`, with the values of `keys` in `before`: what runs until a restart applies them. */
export function keeping(before: LoadedConfig, after: LoadedConfig, keys: readonly string[]): LoadedConfig {
  if (keys.length === 0) return after
  const kept = new Set(keys)
  const origins = new Map<string, Origin>()
  for (const [path] of leaves(schema)) {
    const origin = (kept.has(path) ? before : after).origins.get(path)
    if (origin) origins.set(path, origin)
  }
  return { ...after, config: merged(schema, before.config, after.config, '', kept) as Config, origins }
}

function merged(
  root: Branch,
  before: unknown,
  after: unknown,
  path: string,
  kept: ReadonlySet<string>,
): unknown {
  const old = before as Readonly<Record<string, unknown>>
  const now = after as Readonly<Record<string, unknown>>
  return Object.fromEntries(
    Object.entries(root.keys).map(([name, node]) => {
      const here = join(path, name)
      if (isBranch(node)) return [name, merged(node, old[name], now[name], here, kept)]
      return [name, (kept.has(here) ? old : now)[name]]
    }),
  )
}

/**
 * For people: of the keys that got their value from one place in the file, only the first. A user who changes
 * `otlp.endpoint` did not change the endpoints of the four signals as well.
 */
export function asWritten(keys: readonly string[], before: LoadedConfig, after: LoadedConfig): string[] {
  const places = new Map<string, string>()
  const placeOf = (key: string) => {
    const now = after.origins.get(key)
    const origin = now ?? before.origins.get(key)
    return origin && `${now ? 'now' : 'before'} ${origin.name}:${origin.line}:${origin.column}`
  }
  for (const key of keys) {
    const place = placeOf(key)
    const known = place && places.get(place)
    // A derived key is deeper in the tree than its source.
    if (place && (known === undefined || key.length < known.length)) places.set(place, key)
  }
  return keys.filter(key => {
    const place = placeOf(key)
    return place === undefined || places.get(place) === key
  })
}

/** Keys that name a file whose content counts as part of the value, with the file's absolute path. */
export function contentFiles({ config }: LoadedConfig): Map<string, string> {
  const files = new Map<string, string>()
  for (const [key, leaf] of leaves(schema)) {
    if (!leaf.content) continue
    const path = key
      .split('.')
      .reduce((value, name) => (value as Record<string, unknown>)[name], config as unknown)
    if (path !== '') files.set(key, resolve(path as string))
  }
  return files
}
