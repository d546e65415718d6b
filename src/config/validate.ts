import * as zlib from 'node:zlib'
import { parseEndpoint } from '../foundation/lib/endpoint.ts'
import { parseListenAddress } from '../foundation/lib/listen-address.ts'
import { createLogger, errorText } from '../foundation/lib/logger.ts'
import { signals } from '../foundation/model/signal.ts'
import type { Report } from '../foundation/schema/problem.ts'
import type { Keys, Settings } from '../foundation/schema/tree.ts'
import { processors } from '../pipeline/processors/index.ts'
import type { Collector } from '../signals/metrics/collectors/collector.ts'
import { collectors as allCollectors } from '../signals/metrics/collectors/index.ts'
import { optionsFault } from '../signals/metrics/collectors/options-fault.ts'
import { isApiPath, isInternalPath } from './api-paths.ts'
import { type Sourced, synonymousKeys } from './effective.ts'
import type { Config } from './schema.ts'
import { collectorOptions } from './schema-nodeexporter.ts'

const collectorUnits: readonly Collector<Keys>[] = allCollectors

/** Features of the runtime. */
export interface Runtime {
  readonly zstd: boolean
}

/** Node 22.15 added Zstandard to `node:zlib`. */
export function thisRuntime(): Runtime {
  return { zstd: 'zstdCompress' in zlib }
}

/** Within one file, two equivalent keys must not contradict each other, unless one is defined to win. */
export function checkTwins(settings: Settings, report: Report): void {
  const [first, second] = synonymousKeys.find(([key]) => key.startsWith('agent.nodeexporter.textfile'))!
  const [a, b] = [settings.get(first), settings.get(second)]
  if (!a || !b || a.value === b.value) return
  const later = a.place.start > b.place.start ? a : b
  const other = later === a ? b : a
  report.problem(
    later.place,
    later.written,
    `is ${later.value}, but "${other.written}" is ${other.value}, and both are the same switch; remove one`,
  )
}

/**
 * Checks across keys. `settings` are the explicit ones, for their places; `wrong` are keys that already have problems,
 * which suppress further ones.
 */
export function validate(
  config: Config,
  settings: Settings<Sourced>,
  wrong: readonly string[],
  runtime: Runtime,
  report: Report,
): void {
  /** Reports at the first explicitly set key; defaults never contradict each other. */
  function refuse(keys: readonly string[], message: string): void {
    const beside = keys.map(key => key.slice(0, key.lastIndexOf('.') + 1))
    if (wrong.some(key => beside.some(path => key.startsWith(path)))) return
    const setting = keys.map(key => settings.get(key)).find(found => found !== undefined)
    if (setting) report.problem(setting.place, setting.written, message)
  }
  const { otlp, agent, self_telemetry: own, pipeline, backoff, collectors } = config

  for (const at of ['otlp', ...signals.map(signal => `otlp.${signal}`)]) {
    const signal = signals.find(name => at.endsWith(`.${name}`))
    const { tls, compression, endpoint, protocol, insecure } = signal ? otlp[signal] : otlp
    // A signal's inherited values were already reported at the general key.
    const inherited = (key: string) => signal && settings.get(`${at}.${key}`) === settings.get(`otlp.${key}`)
    if (compression === 'zstd' && !runtime.zstd && !inherited('compression')) {
      refuse(
        [`${at}.compression`],
        'this Node.js has no zstd; write "gzip", or run svc on Node.js 22.15 or newer',
      )
    }
    const path = protocol === 'grpc' && endpoint !== '' ? parseEndpoint(endpoint, insecure).path : ''
    // OpenTelemetry's variable is shared with programs that use OTLP over HTTP, so it does not stop the agent.
    const meant = settings.get(`${at}.endpoint`)?.source !== 'otel'
    if (path !== '' && meant && !inherited('endpoint')) {
      refuse(
        [`${at}.endpoint`],
        `has the path ${path}, but OTLP over gRPC has no path; delete it, and use the gRPC port of the receiver`,
      )
    }
    if (
      (tls.cert_file === '') !== (tls.key_file === '') &&
      !(inherited('tls.cert_file') && inherited('tls.key_file'))
    ) {
      const [has, lacks] = tls.key_file === '' ? ['cert_file', 'key_file'] : ['key_file', 'cert_file']
      refuse([`${at}.tls.${has}`], `also needs ${at}.tls.${lacks}`)
    }
  }

  for (const [at, tls] of [
    ['agent.nodeexporter.tls', agent.nodeexporter.tls],
    ['self_telemetry.tls', own.tls],
  ] as const) {
    if (!tls.enabled) continue
    for (const file of ['cert_file', 'key_file'] as const) {
      if (tls[file] === '') refuse([`${at}.enabled`], `needs ${at}.${file}`)
    }
  }
  const nodeTls = agent.nodeexporter.tls
  if (nodeTls.enabled && nodeTls.client_auth && nodeTls.client_ca_file === '') {
    refuse(['agent.nodeexporter.tls.client_auth'], 'needs agent.nodeexporter.tls.client_ca_file')
  }

  if (!pipeline.enabled && pipeline.pii_redaction.enabled) {
    refuse(
      ['pipeline.enabled'],
      'would also turn off pipeline.pii_redaction, which is on; turn that off, too, or leave this on',
    )
  }
  if (own.enabled && isApiPath(own.path)) {
    refuse(['self_telemetry.path'], `the management API already serves ${own.path}; write "/metrics"`)
  }
  if (own.auth.enabled && own.auth.bearer_token === '' && own.auth.bearer_tokens.length === 0) {
    refuse(['self_telemetry.auth.enabled'], 'needs self_telemetry.auth.bearer_token, which is empty')
  }
  const open = own.auth.exempt.find(isInternalPath)
  if (open !== undefined) {
    refuse(['self_telemetry.auth.exempt'], `${open} always needs the token; delete it`)
  }
  if (own.cors.enabled && own.cors.allowed_origins.length === 0) {
    refuse(['self_telemetry.cors.enabled'], 'needs self_telemetry.cors.allowed_origins, which is empty')
  }
  if (
    own.enabled &&
    agent.nodeexporter.enabled &&
    sameAddress(own.listen, agent.nodeexporter.listen_address)
  ) {
    refuse(
      ['self_telemetry.listen', 'agent.nodeexporter.listen_address'],
      `self_telemetry.listen and agent.nodeexporter.listen_address are both ${own.listen}; give each its own port`,
    )
  }

  if (backoff.initial > backoff.max) {
    refuse(['backoff.initial', 'backoff.max'], 'backoff.initial is longer than backoff.max')
  }
  const { drain_timeout: drain, timeout } = pipeline.operations.shutdown
  if (drain > timeout && settings.has('pipeline.operations.shutdown.drain_timeout')) {
    refuse(['pipeline.operations.shutdown.drain_timeout'], 'is longer than the total shutdown timeout')
  }
  const { default_max_series: perMetric, global_max_series: all } = pipeline.limits.cardinality
  if (perMetric > all) {
    refuse(
      ['pipeline.limits.cardinality.default_max_series', 'pipeline.limits.cardinality.global_max_series'],
      `the limit for one metric is ${perMetric} series, but the total limit is only ${all}`,
    )
  }
  const rules = [
    ['redact', 'pipeline.pii_redaction.rules'],
    ['transform', 'pipeline.transform.rules'],
  ] as const
  for (const [name, key] of rules) {
    const fault = processorFault(name, pipeline)
    if (fault !== '') refuse([key], fault)
  }

  const scraping = collectors.prometheus
  if (scraping.scrape_timeout > scraping.scrape_interval) {
    // The default timeout is never longer than the interval.
    refuse(['collectors.prometheus.scrape_timeout'], 'scrape_timeout is longer than scrape_interval')
  }
  if (scraping.shard.index >= scraping.shard.count) {
    refuse(
      ['collectors.prometheus.shard.index', 'collectors.prometheus.shard.count'],
      `shard.index counts from 0, so with shard.count ${scraping.shard.count} it is at most ${scraping.shard.count - 1}`,
    )
  }

  const { multiline } = agent.logs
  if (multiline.enabled && multiline.pattern === '') {
    refuse(['agent.logs.multiline.enabled'], 'needs agent.logs.multiline.pattern')
  }

  const switches: Readonly<Record<string, boolean>> = agent.nodeexporter.collectors
  for (const unit of collectorUnits) {
    const keys = Object.keys(unit.options ?? {}).map(name => `agent.nodeexporter.${unit.name}.${name}`)
    // Defaults never contradict each other.
    if (!switches[unit.name] || !keys.some(key => settings.has(key))) continue
    const fault = optionsFault(unit, collectorOptions(config, unit.name))
    if (fault !== undefined) refuse(keys, fault)
  }
}

/** Why a processor cannot be created, as at the start; '' if it can. */
function processorFault(name: string, settings: Config['pipeline']): string {
  const { signals: own, compile } = processors.find(processor => processor.name === name)!
  const log = createLogger({ level: 'error', format: 'text', write: () => {} })
  // This check neither reads nor creates the installation key.
  const env = { log, installKey: () => new Uint8Array(32), nowMs: () => 0 }
  try {
    for (const signal of own) compile(settings, { ...env, signal }, undefined)
    return ''
  } catch (error) {
    return errorText(error)
  }
}

/** True if two listeners would use the same port. An automatic port (0) never conflicts. */
function sameAddress(first: string, second: string): boolean {
  const a = parseListenAddress(first)
  const b = parseListenAddress(second)
  if (!a || !b || a.port !== b.port || a.port === 0) return false
  const every = (host: string | undefined) => host === undefined || host === '0.0.0.0' || host === '::'
  return a.host === b.host || every(a.host) || every(b.host)
}
