import { signals } from '../foundation/model/signal.ts'
import { formatProblems, type Problem, type Report, reportInto } from '../foundation/schema/problem.ts'
import { keyAt, readKey, type Settings } from '../foundation/schema/tree.ts'
import { type Entry, looseScalar, type Mapping, type Value } from '../foundation/schema/value.ts'
import type { Environment } from './environment.ts'
import { schema } from './schema.ts'

/** Result of `readOtelEnvironment`. */
export interface OtelSettings {
  readonly settings: Settings
  /** Unusable variables. They are shared with other programs, so they do not stop the agent. */
  readonly warnings: readonly string[]
}

/** Converts a variable's text to the value of its key; a string result is a complaint. */
type Convert = (name: string, text: string) => Value | string

const transport: readonly [suffix: string, key: string, convert: Convert][] = [
  ['ENDPOINT', 'endpoint', looseScalar],
  ['PROTOCOL', 'protocol', looseScalar],
  ['COMPRESSION', 'compression', looseScalar],
  ['HEADERS', 'headers', baggage],
  ['TIMEOUT', 'timeout', milliseconds],
  ['INSECURE', 'insecure', truth],
  ['CERTIFICATE', 'tls.ca_file', looseScalar],
  ['CLIENT_CERTIFICATE', 'tls.cert_file', looseScalar],
  ['CLIENT_KEY', 'tls.key_file', looseScalar],
]

/** The specification's names of histogram types, and those of svc. */
const aggregations = new Map([
  ['explicit_bucket_histogram', 'explicit'],
  ['base2_exponential_bucket_histogram', 'exponential'],
])

/**
 * Reads OpenTelemetry's standard variables (OTLP exporter specification 1.11, SDK environment variables). An empty
 * variable counts as unset. `service.name` in OTEL_RESOURCE_ATTRIBUTES names the agent, not the observed services.
 * `file` receives the files that they name.
 */
export function readOtelEnvironment(env: Environment, file?: Report['file']): OtelSettings {
  const settings: Settings = new Map()
  const problems: Problem[] = []
  const report: Report = { ...reportInto(problems), ...(file && { file }) }
  const warnings: string[] = []

  function take(name: string, path: string, convert: Convert): void {
    const text = env[name]?.trim()
    if (!text) return
    const value = convert(name, text)
    if (typeof value === 'string') warnings.push(`${name} is ignored: ${value}`)
    else put(value, path)
  }
  function put(value: Value, path: string): void {
    readKey(keyAt(schema, path), value, { written: path, canonical: path }, settings, report)
  }

  for (const [suffix, key, convert] of transport) {
    take(`OTEL_EXPORTER_OTLP_${suffix}`, `otlp.${key}`, convert)
    for (const signal of signals) {
      take(`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_${suffix}`, `otlp.${signal}.${key}`, convert)
    }
  }
  const metrics = 'OTEL_EXPORTER_OTLP_METRICS'
  take(`${metrics}_TEMPORALITY_PREFERENCE`, 'otlp.metrics.temporality', (name, text) =>
    // Low memory means delta for synchronous instruments, which are all that svc has.
    looseScalar(name, text.toLowerCase() === 'lowmemory' ? 'delta' : text.toLowerCase()),
  )
  take(`${metrics}_DEFAULT_HISTOGRAM_AGGREGATION`, 'otlp.metrics.histograms', (name, text) =>
    looseScalar(name, aggregations.get(text.toLowerCase()) ?? text),
  )
  take('OTEL_SERVICE_NAME', 'service_name', looseScalar)
  take('OTEL_RESOURCE_ATTRIBUTES', 'resource.attributes', (name, text) => {
    const list = baggage(name, text)
    if (typeof list === 'string') return list
    const own = list.entries.find(entry => entry.key === 'service.name')
    if (own && !settings.has('service_name')) put(own.value, 'service_name')
    return { ...list, entries: list.entries.filter(entry => entry !== own) }
  })
  const disabled = env.OTEL_SDK_DISABLED?.trim() ?? ''
  const off = disabled === '' ? undefined : truth('OTEL_SDK_DISABLED', disabled)
  if (typeof off === 'string') warnings.push(`OTEL_SDK_DISABLED is ignored: ${off}`)
  else if (off?.text === 'true') {
    warnings.push('OTEL_SDK_DISABLED is true: nothing is exported')
    for (const signal of signals) {
      put({ ...off, value: 'false', text: 'false' }, `otlp.${signal}.enabled`)
    }
  }
  for (const problem of problems) warnings.push(`${formatProblems([problem]).trim()}; ignored`)
  return { settings, warnings }
}

/** W3C Baggage without properties: `name=value` between commas, both percent-encoded. */
function baggage(name: string, text: string): Mapping | string {
  const entries = new Map<string, Entry>()
  const whole = looseScalar(name, text)
  for (const part of text.split(',')) {
    if (part.trim() === '') continue
    const equals = part.indexOf('=')
    if (equals < 1) return 'expected name=value between commas'
    const key = decoded(part.slice(0, equals).trim())
    const value = decoded(part.slice(equals + 1).trim())
    if (key === undefined || value === undefined)
      return 'a "%" in it is not followed by two hexadecimal digits of a UTF-8 byte'
    entries.set(key, { key, place: whole.place, value: { ...whole, value, text: value } })
  }
  return { type: 'map', entries: [...entries.values()], place: whole.place }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined // not percent-encoded UTF-8
  }
}

function milliseconds(name: string, text: string) {
  return /^\d{1,12}$/.test(text) ? looseScalar(name, `${text}ms`) : 'expected a whole number of milliseconds'
}

function truth(name: string, text: string) {
  const lower = text.toLowerCase()
  return lower === 'true' || lower === 'false' ? looseScalar(name, lower) : 'expected true or false'
}
