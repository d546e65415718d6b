import { isAlias, isMap, isPair, isScalar, isSeq, Lexer, type Node, parseDocument } from 'yaml'
import { isTooMuch, tooManyTokens, withoutStacks } from '../lib/yaml-size.ts'
import { expand } from './expand.ts'
import type { Report } from './problem.ts'
import { describe, type Entry, type Place, type Scalar, type Source, type Value } from './value.ts'
import { yamlFault } from './yaml-faults.ts'

/** Maximum values of a file after aliases are expanded. */
const valueLimit = 100_000

/** One syntax fault causes others; reporting more of them does not help. */
const faultLimit = 10

const tooDeep = 'values are nested too deeply'

/** Options for parsing a YAML text. */
export interface YamlOptions {
  /** Variables for `${VAR}`; without it nothing is expanded. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Receives the state of every file named by a `${file:}`. */
  readonly files?: Map<string, string>
  /** Keys whose texts are literal, including references. */
  readonly isLiteral?: (key: string) => boolean
  /** Every scalar may take the type that its key requires. */
  readonly loose?: boolean
  /** The place of all values, if the text is itself a value. */
  readonly place?: Place
}

/**
 * Parses YAML 1.2 into values with places. Reports every syntax error, or otherwise every duplicate key, unknown alias
 * and failed expansion. Returns undefined if the text is unusable.
 */
export function parseYaml(source: Source, options: YamlOptions, report: Report): Value | undefined {
  const text = source.text
  const placeOf = (start: number, end: number): Place => options.place ?? { source, start, end }
  let root: Node | null
  if (isTooMuch(new Lexer().lex(text))) {
    report.problem(placeOf(0, 1), '', `cannot read the text: ${tooManyTokens}; make it smaller`)
    return undefined
  }
  try {
    // Duplicate keys are detected below with a set: the parser compares each key with all before it.
    const document = withoutStacks(() =>
      parseDocument(text, {
        uniqueKeys: false,
        stringKeys: true,
        prettyErrors: false,
        logLevel: 'error',
      }),
    )
    const faults = [...document.errors, ...document.warnings]
    if (faults.some(fault => fault.code === 'RESOURCE_EXHAUSTION')) {
      // The place where the parser's stack overflowed is meaningless.
      report.problem(placeOf(0, 1), '', `not valid YAML: ${tooDeep}`)
      return undefined
    }
    const reported = new Set<string>()
    for (const fault of faults.slice(0, faultLimit)) {
      const { message, start, end } = yamlFault(fault, text)
      // Of brackets that end together only the innermost is reported.
      const isNew = reported.size < reported.add(`${start} ${message}`).size
      if (isNew) report.problem(placeOf(start, end), '', `not valid YAML: ${message}`)
    }
    if (faults.length > 0) return undefined
    root = document.contents
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    report.problem(placeOf(0, 1), '', `not valid YAML: ${tooDeep}`)
    return undefined
  }
  const anchors = new Map<string, { value: Value; size: number }>()
  let tooMany = false

  function nothing(place: Place): Scalar {
    return { type: 'scalar', value: null, text: '', loose: false, secrets: [], place }
  }

  function scalarAt(value: unknown, text: string, place: Place, key: string): Scalar {
    const plain =
      typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null
    if (typeof plain !== 'string' || !options.env || options.isLiteral?.(key)) {
      return { type: 'scalar', value: plain, text, loose: options.loose ?? false, secrets: [], place }
    }
    const result = expand(plain, options.env, options.files)
    if (result.error) report.problem(place, key, result.error)
    return {
      type: 'scalar',
      value: result.text,
      text: result.text,
      loose: result.expanded || (options.loose ?? false),
      secrets: result.secrets,
      broken: result.error !== '',
      place,
    }
  }

  function convert(node: Node | null, after: number, key: string): { value: Value; size: number } {
    if (!node?.range) return { value: nothing(placeOf(Math.max(0, after - 1), after)), size: 1 }
    const place = placeOf(node.range[0], node.range[1])
    if (isAlias(node)) {
      const target = anchors.get(node.source)
      if (target) return target
      report.problem(
        place,
        key,
        'no anchor of that name is defined before this alias; a text that begins with "*" needs quotes',
      )
      return { value: nothing(place), size: 1 }
    }
    let value: Value
    let size = 1
    if (isMap(node)) {
      const entries: Entry[] = []
      const seen = new Set<string>()
      for (const pair of node.items) {
        const name = isPair(pair) && isScalar(pair.key) ? String(pair.key.value) : ''
        const range = isPair(pair) ? (pair.key as Node | null)?.range : undefined
        const keyPlace = range ? placeOf(range[0], range[1]) : place
        const path = key === '' ? name : `${key}.${name}`
        const converted = convert(pair.value as Node | null, keyPlace.end, path)
        size += converted.size
        if (seen.has(name)) report.problem(keyPlace, path, 'duplicate key; remove one')
        else entries.push({ key: name, place: keyPlace, value: converted.value })
        seen.add(name)
      }
      value = { type: 'map', entries, place }
    } else if (isSeq(node)) {
      const items: Value[] = []
      for (const [i, item] of node.items.entries()) {
        const converted = convert(item as Node | null, place.start, `${key}[${i}]`)
        size += converted.size
        items.push(converted.value)
      }
      value = { type: 'list', items, place }
    } else {
      const scalar = isScalar(node) ? node.value : null
      const raw = isScalar(node) ? (node.source ?? '') : ''
      value = scalarAt(scalar, typeof scalar === 'string' ? scalar : raw, place, key)
    }
    if (size > valueLimit) {
      if (!tooMany) report.problem(place, key, `aliases expand to more than ${valueLimit} values`)
      tooMany = true
      value = nothing(place)
      size = 1
    }
    const anchor = (node as { anchor?: string }).anchor
    if (anchor !== undefined) anchors.set(anchor, { value, size })
    return { value, size }
  }

  try {
    return convert(root, 0, '').value
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    report.problem(placeOf(0, 1), '', `not valid YAML: ${tooDeep}`)
    return undefined
  }
}

/**
 * Parses a variable whose key requires a list or map: YAML flow (`[80, 443]`, `{a: b}`), or items separated by commas
 * (`80,443`, `a=b,c=d`). Returns anything but text from a variable unchanged.
 */
export function collectionOf(value: Value, want: 'list' | 'map', key: string, report: Report): Value {
  if (value.type !== 'scalar' || !value.loose || typeof value.value !== 'string') return value
  const text = value.text.trim()
  if (text.startsWith('[') || text.startsWith('{')) {
    const problems: string[] = []
    const flow = parseYaml(
      { name: value.place.source.name, text, lineStarts: [] },
      { loose: true, place: value.place },
      { secret: report.secret, problem: (_place, _key, message) => problems.push(message) },
    )
    for (const message of problems) report.problem(value.place, key, message)
    return flow
      ? withSecrets(flow, value.secrets)
      : { type: want, items: [], entries: [], place: value.place }
  }
  const parts = text.split(',').map(part => part.trim())
  const items = parts.filter(part => part !== '').map(part => ({ ...value, value: part, text: part }))
  if (want === 'list') return { type: 'list', items, place: value.place }
  const entries: Entry[] = []
  const seen = new Set<string>()
  for (const item of items) {
    const equals = item.text.indexOf('=')
    const name = item.text.slice(0, equals).trim()
    if (equals < 1) {
      report.problem(
        value.place,
        key,
        `expected name=value between commas, found ${describe(item, report.secret)}`,
      )
    } else if (seen.has(name)) {
      report.problem(value.place, `${key}.${name}`, 'duplicate key; remove one')
    } else {
      const text = item.text.slice(equals + 1).trim()
      entries.push({ key: name, place: value.place, value: { ...item, value: text, text } })
    }
    seen.add(name)
  }
  return { type: 'map', entries, place: value.place }
}

function withSecrets(value: Value, secrets: readonly string[]): Value {
  if (secrets.length === 0) return value
  if (value.type === 'scalar') return { ...value, secrets: [...secrets, value.text] }
  if (value.type === 'list') return { ...value, items: value.items.map(item => withSecrets(item, secrets)) }
  return {
    ...value,
    entries: value.entries.map(entry => ({ ...entry, value: withSecrets(entry.value, secrets) })),
  }
}
