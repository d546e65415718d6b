import { signals } from '../foundation/model/signal.ts'
import type { Setting, Settings } from '../foundation/schema/tree.ts'

/** Sources of a value, strongest last. */
const sources = ['default', 'otel', 'file', 'environment', 'flag'] as const
export type SourceKind = (typeof sources)[number]

export interface Sourced extends Setting {
  readonly source: SourceKind
}

/** Pairs of equivalent keys. Within one source the first wins; otherwise the stronger source does. */
export const synonymousKeys: readonly (readonly [string, string])[] = [
  ['pipeline.export.otlp.endpoint', 'otlp.endpoint'],
  ['pipeline.export.otlp.insecure', 'otlp.insecure'],
  ['pipeline.operations.shutdown.timeout', 'shutdown_timeout'],
  ['agent.nodeexporter.textfile.enabled', 'agent.nodeexporter.collectors.textfile'],
]

/** Keys of a signal that override those of `otlp`. */
const perSignal = [
  'endpoint',
  'protocol',
  'compression',
  'timeout',
  'insecure',
  'headers',
  'max_message_size',
  'concurrency',
  'tls.ca_file',
  'tls.cert_file',
  'tls.key_file',
  'tls.server_name',
  'tls.insecure_skip_verify',
]

/** Disabled by mode `collector`. */
const agentOnly = ['agent.ebpf.enabled', 'agent.profiling.enabled', 'agent.logs.enabled', 'agent.gpu.enabled']

/**
 * Resolves settings to where the program reads them, so that no other code needs to know which key wins:
 * 1. of two equivalent keys, both get the winner's value;
 * 2. `otlp.<signal>.*` and `queues.<signal>.batch_size` default to the general key's value;
 * 3. the scheme of an endpoint determines TLS;
 * 4. mode `collector` disables what only an agent does, and the host metrics unless they are enabled explicitly.
 */
export function effective(given: ReadonlyMap<string, Sourced>, notes: string[] = []): Settings<Sourced> {
  const settings = new Map(given)
  for (const [first, second] of synonymousKeys) {
    const [a, b] = [settings.get(first), settings.get(second)]
    const winner = a && !isEmpty(a) && (!b || rank(a) >= rank(b)) ? a : b
    if (!winner) continue
    settings.set(first, winner)
    settings.set(second, winner)
  }
  for (const signal of signals) {
    for (const key of perSignal) inherit(settings, `otlp.${signal}.${key}`, `otlp.${key}`)
    inherit(settings, `queues.${signal}.batch_size`, 'pipeline.export.batch.size')
  }
  for (const at of ['otlp', 'pipeline.export.otlp', ...signals.map(signal => `otlp.${signal}`)]) {
    const endpoint = settings.get(`${at}.endpoint`)
    const scheme = /^(https?):\/\//i.exec(String(endpoint?.value ?? ''))?.[1]
    if (endpoint && scheme)
      settings.set(`${at}.insecure`, { ...endpoint, value: scheme.toLowerCase() === 'http' })
  }
  const mode = settings.get('mode')
  if (mode?.value === 'collector') {
    for (const key of agentOnly) {
      if (settings.get(key)?.value === true) notes.push(`${key} is off in mode collector`)
      settings.set(key, { ...mode, value: false })
    }
    const endpoint = 'agent.nodeexporter.enabled'
    if (!settings.has(endpoint)) settings.set(endpoint, { ...mode, value: false })
  }
  return settings
}

function inherit(settings: Settings<Sourced>, specific: string, general: string): void {
  const own = settings.get(specific)
  const source = settings.get(general)
  if (source && (!own || isEmpty(own))) settings.set(specific, source)
}

function isEmpty({ value }: Setting): boolean {
  return value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)
}

function rank({ source }: Sourced): number {
  return sources.indexOf(source)
}
