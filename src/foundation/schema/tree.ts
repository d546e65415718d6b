import { nearest } from '../lib/nearest.ts'
import { hiding, type Report } from './problem.ts'
import { describe, type Entry, isBroken, type Mapping, type Place, secretsIn, type Value } from './value.ts'

/** Redacts a value before it is shown. */
export type Hide = (shown: string | number | boolean) => string | number | boolean

/** The type of a key's values. Everything that differs between types is here, so no other code checks types. */
export interface Kind<T> {
  /** Ends the sentence "expected …", and is the type on the reference page. */
  readonly expects: string
  /** The same as a JSON Schema (2020-12). */
  readonly json: Readonly<Record<string, unknown>>
  /** Converts a value to its type. Reports problems and returns undefined. */
  read(value: Value, key: string, report: Report): T | undefined
  /** The value as in a file. */
  show(value: T, hide: Hide): unknown
  /** The unimplemented feature that this value requests, if any. */
  missing?(value: T): string | undefined
}

/** One setting. */
export interface Key<T> {
  readonly kind: Kind<T>
  readonly default: T
  readonly description: string
  /** The default on the reference page, if it depends on the machine. */
  readonly defaultText?: string
  /** Never shown. */
  readonly secret?: boolean
  /** A new value takes effect after a restart. */
  readonly restart?: boolean
  /** Path of a file whose content counts as part of the value: new content is a change of the key. */
  readonly content?: boolean
  /** Mandatory (only for keys of list items). */
  readonly required?: boolean
  /** False: accepted, but without effect in this version. */
  readonly built?: boolean
}

/** A group of keys. With a key `enabled`, it may also be written as a plain boolean. */
export interface Branch<K extends Keys = Keys> {
  readonly keys: K
  readonly description: string
  readonly built?: boolean
  /** Alternative names of this branch's keys. */
  readonly spellings?: Readonly<Record<string, string>>
  /** Names under which some keys of this branch may be grouped: `svc: {mode: agent}` for `mode: agent`. */
  readonly groups?: Readonly<Record<string, readonly string[]>>
}

export interface Keys {
  readonly [name: string]: Key<unknown> | Branch
}

/** The TypeScript type of a schema. */
export type Infer<N> =
  N extends Key<infer T> ? T : N extends Branch<infer K> ? { readonly [P in keyof K]: Infer<K[P]> } : never

export function key<T>(
  kind: Kind<T>,
  fallback: NoInfer<T>,
  description: string,
  options: Omit<Key<T>, 'kind' | 'default' | 'description'> = {},
): Key<T> {
  return { kind, default: fallback, description, ...options }
}

export function branch<const K extends Keys>(
  description: string,
  keys: K,
  options: Omit<Branch, 'keys' | 'description'> = {},
): Branch<K> {
  return { keys, description, ...options }
}

export function isBranch(node: Key<unknown> | Branch): node is Branch {
  return 'keys' in node
}

/** The key at a path such as `agent.log.level`. Throws where there is none: the paths are those of our own tables. */
export function keyAt(tree: Branch, path: string): Key<unknown> {
  let node: Key<unknown> | Branch = tree
  for (const name of path.split('.')) node = (node as Branch).keys[name]!
  if (isBranch(node)) throw new Error(`BUG: ${path} is no key`)
  return node
}

/** Joins a path; the root is ''. */
export function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

/** One explicitly set value. */
export interface Setting {
  readonly value: unknown
  /** The key as written. */
  readonly written: string
  readonly place: Place
  /** Contents of secret files in it. */
  readonly secrets: readonly string[]
}

/** Values by key path, such as `agent.ebpf.enabled`. */
export type Settings<S extends Setting = Setting> = Map<string, S>

/** Iterates over every key of a tree, in order. */
export function* leaves(root: Branch, path = ''): Generator<[path: string, leaf: Key<unknown>]> {
  for (const [name, node] of Object.entries(root.keys)) {
    const here = join(path, name)
    if (isBranch(node)) yield* leaves(node, here)
    else yield [here, node]
  }
}

/** True if a key directly in the branch is a secret text. */
function holdsSecrets(root: Branch): boolean {
  return Object.values(root.keys).some(
    node => !isBranch(node) && node.secret === true && typeof node.default === 'string',
  )
}

/** Position of a reader: the path as written, and as in the schema. */
export interface At {
  readonly written: string
  readonly canonical: string
}

/** Reads everything below a branch. Reports unknown keys, wrong types and contradictions. */
export function readBranch(root: Branch, value: Value, at: At, settings: Settings, report: Report): void {
  if (isBroken(value) || (value.type === 'scalar' && value.value === null)) return
  const { enabled } = root.keys
  if (value.type === 'scalar' && enabled && !isBranch(enabled) && isBoolean(value.value, value.loose)) {
    readKey(
      enabled,
      value,
      { written: at.written, canonical: join(at.canonical, 'enabled') },
      settings,
      report,
    )
  } else if (value.type !== 'map') {
    const names = list(Object.keys(root.keys))
    const bare = enabled ? 'true, false, or ' : ''
    // A secret may be in the place of the branch.
    const hidden = report.secret || holdsSecrets(root)
    const found = describe(value, hidden)
    report.problem(value.place, at.written, `expected ${bare}keys (${names}), found ${found}`, hidden)
  } else {
    readEntries(root, value, at, settings, report, undefined)
  }
}

function readEntries(
  root: Branch,
  value: Mapping,
  at: At,
  settings: Settings,
  report: Report,
  only: readonly string[] | undefined,
): void {
  const seen = new Map<string, string>()
  for (const entry of value.entries) {
    const written = join(at.written, entry.key)
    const group = only ? undefined : own(root.groups, entry.key)
    if (group) {
      readGroup(root, entry, group, { written, canonical: at.canonical }, settings, report)
      continue
    }
    const name = own(root.spellings, entry.key) ?? entry.key
    const node = only && !only.includes(name) ? undefined : own(root.keys, name)
    if (!node) {
      report.problem(entry.place, written, unknownKey(root, entry.key, only))
      continue
    }
    const canonical = join(at.canonical, name)
    if (!isBranch(node)) readKey(node, entry.value, { written, canonical }, settings, report)
    else if (seen.has(name)) {
      report.problem(
        entry.place,
        written,
        `"${seen.get(name)}" and "${entry.key}" are the same key; remove one`,
      )
    } else readBranch(node, entry.value, { written, canonical }, settings, report)
    seen.set(name, entry.key)
  }
}

function readGroup(
  root: Branch,
  entry: Entry,
  only: readonly string[],
  at: At,
  settings: Settings,
  report: Report,
) {
  const { value } = entry
  if (value.type === 'scalar' && value.value === null) return
  if (value.type === 'map') readEntries(root, value, at, settings, report, only)
  else
    report.problem(
      value.place,
      at.written,
      `expected keys (${list(only)}), found ${describe(value, report.secret)}`,
    )
}

/** Reads one key. */
export function readKey(leaf: Key<unknown>, value: Value, at: At, settings: Settings, report: Report): void {
  const secrets = new Set(secretsIn(value))
  const read = leaf.kind.read(value, at.written, {
    ...hiding(report, leaf.secret ?? false),
    hide(shown) {
      if (shown !== '') secrets.add(shown)
      report.hide?.(shown)
    },
  })
  if (read === undefined) return
  const before = settings.get(at.canonical)
  if (before && JSON.stringify(before.value) !== JSON.stringify(read)) {
    const message = `"${before.written}" has another value, and both are the same key; remove one`
    report.problem(value.place, at.written, message, leaf.secret)
    return
  }
  settings.set(at.canonical, {
    value: read,
    written: at.written,
    place: value.place,
    secrets: [...secrets],
  })
}

/** The tree's values: explicit ones, otherwise defaults. The caller guarantees that the settings are from this tree. */
export function build<B extends Branch>(root: B, settings: Settings, path = ''): Infer<B> {
  const built: Record<string, unknown> = {}
  for (const [name, node] of Object.entries(root.keys)) {
    const here = join(path, name)
    if (isBranch(node)) built[name] = build(node, settings, here)
    else {
      const setting = settings.get(here)
      built[name] = setting ? setting.value : node.default
    }
  }
  return built as Infer<B>
}

/** The tree in the shape of a file. `hideOf` returns each key's redaction. */
export function show(
  root: Branch,
  config: unknown,
  hideOf: (leaf: Key<unknown>, path: string) => Hide,
  path = '',
): unknown {
  const shown: Record<string, unknown> = {}
  for (const [name, node] of Object.entries(root.keys)) {
    const here = join(path, name)
    const value = (config as Record<string, unknown>)[name]
    shown[name] = isBranch(node) ? show(node, value, hideOf, here) : node.kind.show(value, hideOf(node, here))
  }
  return shown
}

function unknownKey(root: Branch, name: string, only: readonly string[] | undefined): string {
  if (name === '<<')
    return 'merge keys are not part of YAML 1.2; write the keys out, or use an alias for the whole map'
  const names = only ?? [
    ...Object.keys(root.keys),
    ...Object.keys(root.groups ?? {}),
    ...Object.keys(root.spellings ?? {}),
  ]
  const near = nearest(name, names)
  if (near !== undefined) return `unknown key; did you mean "${near}"?`
  const elsewhere = only ? undefined : find(root, name, '')
  if (elsewhere !== undefined) return `unknown key here; did you mean "${elsewhere}"?`
  return `unknown key; valid keys: ${list(names)}`
}

/** A key with this name at a deeper level, since people forget levels. */
function find(root: Branch, name: string, path: string): string | undefined {
  for (const [child, node] of Object.entries(root.keys)) {
    if (!isBranch(node)) continue
    if (Object.hasOwn(node.keys, name)) return join(join(path, child), name)
    const deeper = find(node, name, join(path, child))
    if (deeper !== undefined) return deeper
  }
  return undefined
}

function list(names: readonly string[]): string {
  return names.length > 20
    ? `${names.slice(0, 19).join(', ')} and ${names.length - 19} more`
    : names.join(', ')
}

function isBoolean(value: unknown, loose: boolean): boolean {
  return typeof value === 'boolean' || (loose && (value === 'true' || value === 'false'))
}

function own<T>(record: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return record && Object.hasOwn(record, name) ? record[name] : undefined
}
