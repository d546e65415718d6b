import type { Report } from './problem.ts'
import {
  type Branch,
  build,
  type Hide,
  type Infer,
  isBranch,
  type Key,
  type Kind,
  readBranch,
  type Settings,
  show,
} from './tree.ts'
import { describe, isBroken, type Mapping, type Value } from './value.ts'
import { collectionOf } from './yaml-place.ts'

/** A list of items of one kind. In a variable they are separated by commas. */
export function list<T>(item: Kind<T>, options: { unique?: boolean } = {}): Kind<readonly T[]> {
  return {
    expects: `a list (each item ${item.expects})`,
    json: { anyOf: [{ type: 'array', items: item.json }, { $ref: '#/$defs/reference' }] },
    read(value, key, report) {
      if (isBroken(value)) return undefined
      if (isEmpty(value)) return []
      const found = collectionOf(value, 'list', key, report)
      if (found.type !== 'list') {
        const hint = found.type === 'scalar' && !report.secret ? `; write [${found.text}]` : ''
        const what = describe(value, report.secret)
        report.problem(value.place, key, `expected a list (each item ${item.expects}), found ${what}${hint}`)
        return undefined
      }
      const read: T[] = []
      let good = true
      for (const [i, each] of found.items.entries()) {
        const one = item.read(each, `${key}[${i}]`, report)
        if (one === undefined) good = false
        else if (options.unique && read.includes(one)) {
          report.problem(each.place, `${key}[${i}]`, 'duplicate in the list; remove one')
        } else read.push(one)
      }
      return good ? read : undefined
    },
    show: (items, hide) => items.map(each => item.show(each, hide)),
  }
}

interface MapOptions {
  /** Why a name is invalid; '' if it is valid. */
  readonly fault?: (name: string) => string
}

/** A map with names chosen by the user. In a variable: `a=b,c=d`. */
export function map<T>(item: Kind<T>, options: MapOptions = {}): Kind<Readonly<Record<string, T>>> {
  return {
    expects: `a map of names (each value ${item.expects})`,
    json: { anyOf: [{ type: 'object', additionalProperties: item.json }, { $ref: '#/$defs/reference' }] },
    read(value, key, report) {
      if (isBroken(value)) return undefined
      if (isEmpty(value)) return {}
      const found = collectionOf(value, 'map', key, report)
      if (found.type !== 'map') {
        const message = `expected a map of names, each with ${item.expects}, found ${describe(value, report.secret)}`
        report.problem(value.place, key, message)
        return undefined
      }
      const read: [string, T][] = []
      let good = true
      for (const entry of found.entries) {
        const fault = options.fault?.(entry.key) ?? ''
        if (fault) report.problem(entry.place, `${key}.${entry.key}`, fault)
        const one = item.read(entry.value, `${key}.${entry.key}`, report)
        if (one === undefined || fault) good = false
        else read.push([entry.key, one])
      }
      return good ? Object.fromEntries(read) : undefined
    },
    show: (items, hide) =>
      Object.fromEntries(Object.entries(items).map(([name, each]) => [name, item.show(each, hide)])),
  }
}

interface ItemOptions<T> {
  /** Contradiction within an item; undefined if there is none. `given` contains the paths that were written. */
  readonly fault?: (item: T, given: ReadonlySet<string>) => string | undefined
}

/** An item of a list that has keys of its own. */
export function item<B extends Branch>(root: B, options: ItemOptions<Infer<B>> = {}): Kind<Infer<B>> {
  const required = Object.entries(root.keys).filter(([, node]) => !isBranch(node) && node.required)
  return {
    expects: `keys (${Object.keys(root.keys).join(', ')})`,
    json: branchJson(root),
    read(value, key, report) {
      if (isBroken(value)) return undefined
      const counting = counted(report)
      if (value.type !== 'map') {
        const names = Object.keys(root.keys).join(', ')
        report.problem(value.place, key, `expected keys (${names}), found ${describe(value, report.secret)}`)
        return undefined
      }
      const settings: Settings = new Map()
      readBranch(root, value, { written: key, canonical: '' }, settings, counting)
      for (const [name] of required) {
        const given = value.entries.some(entry => entry.key === name)
        if (!given) counting.problem(value.place, key, `the key "${name}" is missing`)
      }
      if (counting.problems > 0) return undefined
      const read = build(root, settings)
      const fault = options.fault?.(read, written(value, ''))
      if (fault === undefined) return read
      report.problem(value.place, key, fault)
      return undefined
    },
    show: (value, hide) => show(root, value, leaf => (leaf.secret ? hideAll : hide)),
  }
}

/** True if a user's name suggests that the value is secret. */
export function soundsSecret(name: string): boolean {
  return /password|secret|token|credential|authorization|api_?key|private_?key/i.test(name)
}

/** Hides any value, except for an empty text and booleans, which reveal nothing. */
export const hideAll: Hide = shown => (shown === '' || typeof shown === 'boolean' ? shown : '[REDACTED]')

/** The redaction of a key's value. `secrets` are the contents of secret files in it. */
export function hideOf(leaf: Key<unknown>, secrets: readonly string[]): Hide {
  if (leaf.secret) return hideAll
  if (secrets.length === 0) return shown => shown
  return shown => (secrets.some(secret => String(shown).includes(secret)) ? '[REDACTED]' : shown)
}

/** The JSON Schema of a branch. If the branch can be switched, a boolean is allowed instead. */
export function branchJson(root: Branch): Record<string, unknown> {
  const properties: Record<string, unknown> = {}
  const needed: string[] = []
  for (const [name, node] of Object.entries(root.keys)) {
    if (isBranch(node)) properties[name] = branchJson(node)
    else {
      const { description } = node
      properties[name] = {
        description,
        ...(node.required ? {} : { default: defaultOf(node) }),
        ...node.kind.json,
      }
      if (node.required) needed.push(name)
    }
  }
  const object = { type: ['object', 'null'], properties, additionalProperties: false }
  const strict = needed.length > 0 ? { ...object, required: needed } : object
  const { description } = root
  return root.keys.enabled
    ? { description, anyOf: [{ type: 'boolean' }, { $ref: '#/$defs/reference' }, strict] }
    : { description, ...strict }
}

/** The default of a key as in a file. */
export function defaultOf(leaf: { kind: Kind<unknown>; default: unknown; defaultText?: string }): unknown {
  return leaf.defaultText ?? leaf.kind.show(leaf.default, shown => shown)
}

function isEmpty(value: Value): boolean {
  return value.type === 'scalar' && (value.value === null || (value.loose && value.text.trim() === ''))
}

/** All paths that were written below a map. */
function written(value: Mapping, path: string, into = new Set<string>()): Set<string> {
  for (const entry of value.entries) {
    const here = path === '' ? entry.key : `${path}.${entry.key}`
    into.add(here)
    if (entry.value.type === 'map') written(entry.value, here, into)
  }
  return into
}

function counted(report: Report): Report & { readonly problems: number } {
  let problems = 0
  return {
    ...report,
    problem(place, key, message, secret) {
      problems++
      report.problem(place, key, message, secret)
    },
    get problems() {
      return problems
    },
  }
}
