// The keys of the configuration: each promised one is in the schema with its type and its default.
import { isDeepStrictEqual } from 'node:util'
import { parse } from 'yaml'
import { schema } from '../../src/config/index.ts'
import { parseDuration } from '../../src/foundation/lib/duration.ts'
import { parseSize } from '../../src/foundation/lib/size.ts'
import { type Branch, isBranch, type Key } from '../../src/foundation/schema/tree.ts'
import { differences, promisedKeys } from './spec.ts'

type Json = Readonly<Record<string, unknown>>

/** Faults of the schema against test/spec/keys.yaml, except the listed differences. */
export function keyFaults(): string[] {
  const { defaults, later } = differences
  const keys = promisedKeys()
  const faults: string[] = []
  const isLater = (path: string) => Object.keys(later).some(each => `${path}.`.startsWith(`${each}.`))
  for (const [path, [type, fallback]] of keys) {
    const leaf = find(path)
    if (isLater(path)) {
      if (leaf !== undefined) faults.push(`${path}: is there: delete it below "later" in differences.yaml`)
      continue
    }
    if (leaf === undefined) {
      faults.push(`${path}: promised, but not in the schema`)
      continue
    }
    const own = typeOf(leaf.kind.json)
    if (own !== type && !(type === 'text' && own.includes('|')))
      faults.push(`${path}: promised as ${type}, the schema has ${own}`)
    if (fallback === undefined) continue
    const shown = plain(
      type,
      leaf.kind.show(leaf.default, value => value),
    )
    const argued = defaults[path]
    const wanted = plain(type, argued === undefined ? parse(fallback) : argued.is)
    const said = `${JSON.stringify(shown)} instead of ${JSON.stringify(wanted)}`
    if (!isDeepStrictEqual(shown, wanted)) faults.push(`${path}: its default is ${said}`)
    else if (argued !== undefined && isDeepStrictEqual(shown, plain(type, parse(fallback))))
      faults.push(`${path}: has the promised default: delete it below "defaults" in differences.yaml`)
  }
  for (const path of [...Object.keys(defaults), ...Object.keys(later)])
    if (![...keys.keys()].some(key => `${key}.`.startsWith(`${path}.`)))
      faults.push(`${path}: in differences.yaml, but not a promised key`)
  return faults
}

function find(path: string): Key<unknown> | undefined {
  let node: Key<unknown> | Branch | undefined = schema
  for (const name of path.split('.')) {
    if (node === undefined || !isBranch(node) || !Object.hasOwn(node.keys, name)) return undefined
    node = node.keys[name]
  }
  return node === undefined || isBranch(node) ? undefined : node
}

/** The name of a type in keys.yaml. */
function typeOf(json: Json): string {
  const all = ((json.anyOf as Json[] | undefined) ?? [json]).filter(each => !('$ref' in each))
  if (all.some(each => each.const === 'auto')) return 'auto'
  const [first = json, second] = all
  if (Array.isArray(first.enum)) return first.enum.join('|')
  const type = first.type ?? json.type
  if (type === 'integer' && second?.type === 'string') return 'size'
  if (type === 'string') return /ms\|s\|m\|h/.test(String(first.pattern)) ? 'duration' : 'text'
  return { array: 'list', object: 'map' }[String(type)] ?? String(type)
}

/** A value normalized for comparison. */
function plain(type: string, value: unknown): unknown {
  if (type === 'duration') return value === 0 ? 0 : parseDuration(String(value))
  return type === 'size' ? parseSize(String(value)) : value
}
