// OpenTelemetry eBPF instrumentation (OBI) and its predecessor Beyla: a YAML file, variables, or both.

import { schema } from '../../../config/index.ts'
import { readOtelEnvironment } from '../../../config/otel-environment.ts'
import { nearest } from '../../../foundation/lib/nearest.ts'
import { ExitCode, StartError } from '../../../foundation/lib/start-error.ts'
import { keyAt } from '../../../foundation/schema/tree.ts'
import { looseScalar, type Value } from '../../../foundation/schema/value.ts'
import type { Conversion } from './conversion.ts'
import { type Input, readVariables, readYaml } from './input.ts'
import type { Given } from './obi-given.ts'
import { converters, type ObiRow, rows } from './obi-settings.ts'
import { groups } from './obi-unsupported.ts'

type Variables = ReadonlyMap<string, string>

/** Variables that OBI, Beyla or both read. */
export function variablesOf(env: Readonly<Record<string, string | undefined>>): Map<string, string> {
  const own = Object.entries(env).filter(([name]) => /^(OTEL_|BEYLA_)/.test(name))
  return new Map(own.flatMap(([name, value]) => (value ? [[name, value] as const] : [])))
}

interface Unsupported {
  readonly why: string
  readonly needsNone: boolean
}

/** All settings, by path and by variable. */
const known = new Map<string, ObiRow | Unsupported>()
const pathOf = new Map<string, string>()
for (const row of rows) {
  known.set(row.path, row)
  for (const name of row.variables) pathOf.set(name, row.path)
}
for (const { why, needsNone = false, rows: written } of groups)
  for (const line of written.split('\n')) {
    const [path = '-', variable = '-'] = line.trim().split(' ')
    const name = variable.startsWith('OTEL_') ? variable : `OTEL_EBPF_${variable}`
    // A setting without a path in the file is listed by its variable.
    const at = path === '-' ? name : path
    known.set(at, { why, needsNone })
    if (variable !== '-') pathOf.set(name, at)
  }

/** Names of all known settings: paths in the file, and variables. */
export function knownSettings(): {
  readonly paths: ReadonlySet<string>
  readonly variables: ReadonlySet<string>
} {
  return { paths: new Set(known.keys()), variables: new Set(pathOf.keys()) }
}

/** Sets the keys for these variables or this file. Throws a `StartError` if a file has neither. */
export function fromObi(input: Input | { readonly variables: Variables }, conversion: Conversion): void {
  const given = new Map<string, Given>()
  if ('variables' in input) {
    if (input.variables.size === 0)
      throw new StartError(
        'no OTEL_* or BEYLA_* variable is set; pass a file: svc convert obi FILE',
        ExitCode.usage,
      )
    take(input.variables, false, given, conversion)
  } else {
    const variables = readVariables(input.text)
    if (variables !== undefined) take(variables, false, given, conversion)
    else takeFile(input, given, conversion)
  }
  for (const convert of converters) convert(given, conversion)
}

function takeFile(input: Input, given: Map<string, Given>, conversion: Conversion): void {
  const value = readYaml(input)
  if (value === undefined || value.type === 'scalar')
    throw new StartError(`cannot read ${input.name}: not an OBI configuration`, ExitCode.usage)
  const variables = new Map<string, string>()
  const elsewhere = new Set<string>()
  findVariables(value, variables, elsewhere)
  for (const name of elsewhere)
    conversion.leaveOut(
      name,
      'its value is not in the file (valueFrom); set the same variable for svc if its name begins with OTEL_EXPORTER_, else set the key',
    )
  if (variables.size > 0 || elsewhere.size > 0) take(variables, true, given, conversion)
  else if (value.type === 'map') takeTree(value, [], input.name, given, conversion)
  else throw new StartError(`cannot read ${input.name}: not an OBI configuration`, ExitCode.usage)
}

const isVariable = /^(OTEL|BEYLA)_[A-Z0-9_]+$/

/**
 * Variables anywhere in a file: `NAME: value` and `- NAME=value` (Compose), `- {name, value}` (Kubernetes). `elsewhere`
 * gets those whose value is not in the file (`valueFrom`).
 */
function findVariables(value: Value, into: Map<string, string>, elsewhere: Set<string>): void {
  if (value.type === 'scalar') {
    const [, name = '', text = ''] = /^([A-Z0-9_]+)=(.*)$/s.exec(value.text) ?? []
    if (isVariable.test(name)) into.set(name, text)
  } else if (value.type === 'list') for (const item of value.items) findVariables(item, into, elsewhere)
  else {
    const own = (key: string) => value.entries.find(each => each.key === key)?.value
    const name = own('name')
    const content = own('value')
    if (name?.type === 'scalar' && isVariable.test(name.text)) {
      if (content?.type === 'scalar') into.set(name.text, content.text)
      else if (own('valueFrom') !== undefined) elsewhere.add(name.text)
    }
    for (const { key, value: each } of value.entries) {
      if (!isVariable.test(key)) findVariables(each, into, elsewhere)
      else if (each.type === 'scalar' && each.value !== null) into.set(key, each.text)
    }
  }
}

/** Reads variables: those of OBI and Beyla by their rows, those of the exporter as svc itself reads them. */
function take(
  variables: Variables,
  refers: boolean,
  given: Map<string, Given>,
  conversion: Conversion,
): void {
  const exporter: Record<string, string> = {}
  for (const [written, text] of variables) {
    if (text === '') continue
    // Beyla also reads its own variables under OBI's names.
    const name = written.replace(/^BEYLA_(OTEL_)?/, 'OTEL_EBPF_')
    const path = pathOf.get(name)
    if (path !== undefined)
      place(path, { origin: written, value: looseScalar(written, text), refers }, given, conversion)
    else if (/^OTEL_(EXPORTER_OTLP_|RESOURCE_ATTRIBUTES$|SDK_DISABLED$)/.test(written))
      exporter[written] = text
    else if (/^(OTEL|BEYLA|GRAFANA)_/.test(written)) {
      const near = nearest(name, pathOf.keys())
      conversion.leaveOut(
        written,
        near === undefined ? 'neither OBI nor svc has such a variable' : `unknown; did you mean ${near}?`,
      )
    }
  }
  takeExporter(exporter, refers, given, conversion)
}

function takeExporter(
  env: Readonly<Record<string, string>>,
  refers: boolean,
  given: Map<string, Given>,
  conversion: Conversion,
): void {
  const { settings, warnings } = readOtelEnvironment(env)
  for (const warning of warnings) {
    const [, name = 'OTEL_*', why = warning] =
      /^(OTEL_\w+)(?: is ignored)?: (.*?)(?:; ignored)?$/s.exec(warning) ?? []
    conversion.leaveOut(name, `${why}; correct it`)
  }
  for (const [key, { value, place: at }] of settings) {
    const origin = at.source.name
    if (key === 'service_name') {
      conversion.leaveOut(`${origin}, service.name`, (known.get('service_name') as Unsupported).why)
      continue
    }
    conversion.set(
      key,
      keyAt(schema, key).kind.show(value, shown => shown),
      origin,
      refers,
    )
    if (key.endsWith('headers'))
      conversion.note(`${origin} may contain a token: make the configuration readable by svc only`)
    given.set(key, { origin, value: looseScalar(origin, env[origin] ?? ''), refers })
  }
}

/** Walks down to the path of a row. */
function takeTree(
  value: Value,
  names: readonly string[],
  file: string,
  given: Map<string, Given>,
  conversion: Conversion,
): void {
  const path = names.join('.')
  if (value.type === 'scalar' && value.value === null) return
  if (known.has(path)) place(path, { origin: path, value, refers: true }, given, conversion)
  else if (value.type === 'map' && (path === '' || isPrefix(path)))
    for (const { key, value: each } of value.entries) takeTree(each, [...names, key], file, given, conversion)
  else {
    const near = nearest(path, known.keys())
    conversion.leaveOut(
      path,
      near === undefined ? 'not a key of OBI 0.8, or unknown to svc' : `unknown; did you mean ${near}?`,
    )
  }
}

function isPrefix(path: string): boolean {
  for (const name of known.keys()) if (name.startsWith(`${path}.`)) return true
  return false
}

function place(path: string, setting: Given, given: Map<string, Given>, conversion: Conversion): void {
  const row = known.get(path)!
  if (!('why' in row)) given.set(path, setting)
  else if (row.needsNone) conversion.note(`${setting.origin} needs no conversion: ${row.why}`)
  else if (isSet(setting.value)) conversion.leaveOut(setting.origin, row.why)
}

/** A switch that is off, or an empty list, has no effect. */
function isSet(value: Value): boolean {
  if (value.type === 'list') return value.items.length > 0
  return value.type === 'map' ? value.entries.length > 0 : !/^(|0|false|disabled)$/i.test(value.text)
}
