import { nearest } from '../../../../foundation/lib/nearest.ts'
import { hideAll } from '../../../../foundation/schema/collections.ts'
import { hiding } from '../../../../foundation/schema/problem.ts'
import type { Kind } from '../../../../foundation/schema/tree.ts'
import {
  describe,
  type Entry,
  isBroken,
  type Mapping,
  type Place,
  type Value,
} from '../../../../foundation/schema/value.ts'

/** A kind of value in a form of Prometheus. */
export interface FieldKind<T> extends Kind<T> {
  readonly secret?: boolean
  /** Value of a key without a value; if undefined, such a key counts as omitted. */
  readonly nothing?: T
}

interface Fields {
  readonly [name: string]: FieldKind<unknown>
}

/** Values as configured: omitted keys have no default here. */
export type Written<F extends Fields> = {
  readonly [P in keyof F]?: F[P] extends FieldKind<infer T> ? T : never
}

/** Reports a fault; `field` may be nested (`basic_auth.password`), '' is the whole. */
export type FieldFault = (field: string, message: string) => void

interface FormOptions<F extends Fields> {
  /** Name for messages: "a scrape configuration". */
  readonly what: string
  /** Reason why a key of Prometheus is not supported, and the alternative. */
  readonly foreign?: (name: string) => string | undefined
  /** Checks that concern several keys. */
  readonly check?: (written: Written<F>, fault: FieldFault) => void
}

const values = new WeakMap<object, Mapping>()

/**
 * A map of keys in the form of another program, kept and shown as configured. Merge keys (`<<`, YAML 1.1) are
 * supported, as in that program.
 */
export function form<const F extends Fields>(fields: F, options: FormOptions<F>): Kind<Written<F>> {
  const names = Object.keys(fields)
  const secrets = names.filter(name => fields[name]!.secret)
  return {
    expects: options.what,
    json: {
      type: ['object', 'null'],
      properties: Object.fromEntries(Object.entries(fields).map(([name, { json }]) => [name, json])),
      additionalProperties: false,
    },
    read(value, key, report) {
      if (isBroken(value)) return undefined
      const map = merged(value)
      if (map === undefined) {
        // A secret may be in place of the map of its key.
        const hidden = report.secret || secrets.length > 0
        const found = isNothing(value) ? 'an empty entry' : describe(value, hidden)
        report.problem(value.place, key, `expected ${options.what}, found ${found}`, hidden)
        return undefined
      }
      let good = true
      const fault = (place: Place, at: string, message: string, hidden: boolean) => {
        good = false
        report.problem(place, at, message, report.secret || hidden)
      }
      const written: Record<string, unknown> = {}
      for (const entry of map.entries) {
        const at = `${key}.${entry.key}`
        const field = Object.hasOwn(fields, entry.key) ? fields[entry.key] : undefined
        if (field === undefined) {
          const near = nearest(entry.key, names)
          const message = options.foreign?.(entry.key) ?? unknownKey(near, names)
          // The value of a mistyped key may be intended for a secret one.
          fault(entry.place, at, message, near === undefined ? secrets.length > 0 : secrets.includes(near))
          continue
        }
        const read = isNothing(entry.value) ? field.nothing : field.read(entry.value, at, report)
        if (read === undefined) good &&= isNothing(entry.value)
        else written[entry.key] = read
      }
      if (!good) return undefined
      const result = written as Written<F>
      options.check?.(result, (field, message) => {
        const at = field === '' ? key : `${key}.${field}`
        fault(placeWithin(map, field), at, message, secrets.includes(field))
      })
      if (!good) return undefined
      values.set(result, map)
      return result
    },
    show: (written, hide) =>
      Object.fromEntries(
        Object.entries(written).map(([name, each]) => [name, fields[name]!.show(each, hide)]),
      ),
  }
}

/** Position of a field of a value that was read by a form; undefined if it was not read from text. */
export function placeOf(written: object, field: string): Place | undefined {
  const map = values.get(written)
  return map && placeWithin(map, field)
}

/** The same kind of value, but never shown. */
export function secret<T>(kind: FieldKind<T>): FieldKind<T> {
  return {
    ...kind,
    secret: true,
    read: (value, key, report) => kind.read(value, key, hiding(report, true)),
    show: value => kind.show(value, hideAll),
  }
}

function isNothing(value: Value): boolean {
  return value.type === 'scalar' && value.value === null
}

function unknownKey(near: string | undefined, names: readonly string[]): string {
  if (near !== undefined) return `unknown key; did you mean "${near}"?`
  const known = names.length > 12 ? '' : `; known keys: ${names.join(', ')}`
  return `unknown key, not in Prometheus either${known}`
}

/** The map with its merge keys applied: own keys first, then the merged maps in order. Undefined if it is not a map. */
function merged(value: Value): Mapping | undefined {
  if (value.type !== 'map') return undefined
  if (!value.entries.some(isMerge)) return value
  const entries = new Map<string, Entry>()
  for (const entry of value.entries) if (!isMerge(entry)) entries.set(entry.key, entry)
  for (const entry of value.entries.filter(isMerge)) {
    for (const source of entry.value.type === 'list' ? entry.value.items : [entry.value]) {
      const more = merged(source)
      // An invalid merge key is kept, and becomes an unknown key.
      if (more === undefined) entries.set(entry.key, entry)
      for (const each of more?.entries ?? []) if (!entries.has(each.key)) entries.set(each.key, each)
    }
  }
  return { ...value, entries: [...entries.values()] }
}

function isMerge({ key }: Entry): boolean {
  return key === '<<'
}

/** Position of the field, or of its nearest configured parent. */
function placeWithin(map: Mapping, field: string): Place {
  let value: Value | undefined = map
  let place = map.place
  for (const part of field.split(/[.[\]]+/).filter(name => name !== '')) {
    if (value?.type === 'list') value = value.items[Number(part)]
    else {
      const entry: Entry | undefined = value && merged(value)?.entries.find(each => each.key === part)
      value = entry?.value
    }
    if (value === undefined) break
    place = value.place
  }
  return place
}
