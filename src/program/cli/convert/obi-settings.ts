// Settings of OBI with keys in svc, by their path in its YAML and their variables.

import { formatDuration, parseDuration } from '../../../foundation/lib/duration.ts'
import { protocols } from '../../../signals/traces/protocols/index.ts'
import type { Conversion } from './conversion.ts'
import { type AllGiven, type Given, textOf, textsOf } from './obi-given.ts'
import { selectors } from './obi-selectors.ts'

export interface ObiRow {
  readonly path: string
  readonly variables: readonly string[]
}

const network = 'agent.ebpf.network'

/** Converts one setting; undefined: not converted, and reported. */
type Write = (given: Given, conversion: Conversion) => void

function to(key: string, take: (text: string) => unknown = text => text): Write {
  return (given, conversion) => {
    const value = take(textOf(given.value))
    if (value === undefined)
      conversion.leaveOut(given.origin, 'not a valid value in OBI; correct it, and convert again')
    else conversion.set(key, value, given.origin, given.refers)
  }
}

const truth = (text: string) =>
  /^(true|1|t)$/i.test(text) ? true : /^(false|0|f)$/i.test(text) ? false : undefined
const number = (text: string) => (/^-?\d{1,15}(\.\d+)?$/.test(text) ? Number(text) : undefined)
const time = (text: string) => {
  const ms = parseDuration(text)
  return ms === undefined ? undefined : formatDuration(ms)
}
const lower = (text: string) => text.toLowerCase()

/** Only `true` needs a key. */
const whenOn = (key: string): Write => {
  const write = to(key, truth)
  return (given, conversion) => {
    if (truth(textOf(given.value)) !== false) write(given, conversion)
  }
}

const single: Readonly<Record<string, { readonly variables?: string; readonly write: Write }>> = {
  log_level: { variables: 'LOG_LEVEL', write: to('log_level', lower) },
  log_format: { variables: 'LOG_FORMAT', write: to('log_format', lower) },
  shutdown_timeout: { variables: 'SHUTDOWN_TIMEOUT', write: to('shutdown_timeout', time) },
  enforce_sys_caps: { variables: 'ENFORCE_SYS_CAPS', write: whenOn('agent.ebpf.required') },
  'ebpf.bpf_debug': { variables: 'BPF_DEBUG', write: whenOn('agent.ebpf.debug') },
  'ebpf.context_propagation': { variables: 'BPF_CONTEXT_PROPAGATION', write: propagation },
  'attributes.host_id.override': { variables: 'HOST_ID', write: attribute('host.id') },
  'attributes.kubernetes.cluster_name': {
    variables: 'KUBE_CLUSTER_NAME',
    write: attribute('k8s.cluster.name'),
  },
  'attributes.kubernetes.enable': { variables: 'KUBE_METADATA_ENABLE', write: kubernetes },
  'attributes.kubernetes.kubeconfig_path': {
    variables: 'KUBECONFIG',
    write: to('agent.discovery.kubernetes.kubeconfig'),
  },
  'internal_metrics.prometheus.port': {
    variables: 'INTERNAL_METRICS_PROMETHEUS_PORT',
    write: to('self_telemetry.listen', text => (number(text) ? `:${text}` : undefined)),
  },
  'internal_metrics.prometheus.path': {
    variables: 'INTERNAL_METRICS_PROMETHEUS_PATH',
    write: to('self_telemetry.path'),
  },
  'network.interfaces': { variables: 'NETWORK_INTERFACES', write: interfaces },
  'otel_metrics_export.interval': {
    variables: 'METRICS_INTERVAL',
    write: to(`${network}.metrics_interval`, time),
  },
  'otel_metrics_export.histogram_aggregation': {
    write: to('otlp.metrics.histograms', text => (text.startsWith('base2') ? 'exponential' : 'explicit')),
  },
  'otel_metrics_export.insecure_skip_verify': {
    variables: 'INSECURE_SKIP_VERIFY',
    write: whenOn('otlp.tls.insecure_skip_verify'),
  },
  'otel_traces_export.insecure_skip_verify': { write: whenOn('otlp.tls.insecure_skip_verify') },
  'otel_traces_export.backoff_initial_interval': {
    variables: 'BACKOFF_INITIAL_INTERVAL',
    write: to('backoff.initial', time),
  },
  'otel_traces_export.backoff_max_interval': {
    variables: 'BACKOFF_MAX_INTERVAL',
    write: to('backoff.max', time),
  },
  'otel_traces_export.backoff_max_elapsed_time': {
    variables: 'BACKOFF_MAX_ELAPSED_TIME',
    write: to('backoff.max_elapsed', time),
  },
  'otel_traces_export.batch_max_size': {
    variables: 'OTLP_TRACES_BATCH_MAX_SIZE',
    write: to('queues.traces.batch_size', number),
  },
  'otel_traces_export.batch_timeout': {
    variables: 'OTLP_TRACES_BATCH_TIMEOUT',
    write: to('pipeline.export.batch.timeout', time),
  },
  'routes.patterns': { write: list(`${network}.routes.patterns`) },
  'routes.unmatched': {
    write: to(`${network}.routes.unmatched`, text => (text === 'low-cardinality' ? 'heuristic' : text)),
  },
  'routes.max_path_segment_cardinality': { write: to(`${network}.routes.max_segment_cardinality`, number) },
}

/** Settings that only have a meaning together. */
const together: Readonly<Record<string, string>> = {
  open_port: 'OPEN_PORT',
  executable_path: 'EXECUTABLE_PATH',
  auto_target_exe: 'AUTO_TARGET_EXE OTEL_GO_AUTO_TARGET_EXE',
  'discovery.instrument': '',
  'discovery.exclude_instrument': '',
  'discovery.services': '',
  'discovery.exclude_services': '',
  'network.enable': 'NETWORK_METRICS',
  'otel_metrics_export.features': 'METRICS_FEATURES',
  'otel_metrics_export.instrumentations': 'METRICS_INSTRUMENTATIONS',
  'otel_traces_export.instrumentations': 'TRACES_INSTRUMENTATIONS',
  'otel_metrics_export.endpoint': '',
  'otel_traces_export.endpoint': '',
  'otel_metrics_export.protocol': '',
  'otel_traces_export.protocol': '',
  'otel_metrics_export.otel_interval': 'OTEL_METRIC_EXPORT_INTERVAL',
  'otel_traces_export.sampler.name': 'OTEL_TRACES_SAMPLER',
  'otel_traces_export.sampler.arg': 'OTEL_TRACES_SAMPLER_ARG',
  'routes.ignored_patterns': '',
  'routes.ignore_mode': '',
}

export const rows: readonly ObiRow[] = [
  ...Object.entries(single).map(([path, { variables = '' }]) => rowOf(path, variables)),
  ...Object.entries(together).map(([path, variables]) => rowOf(path, variables)),
]

function rowOf(path: string, variables: string): ObiRow {
  const names = variables.split(' ').filter(name => name !== '')
  return {
    path,
    variables: names.map(name => (/^(OTEL_|KUBECONFIG$)/.test(name) ? name : `OTEL_EBPF_${name}`)),
  }
}

/** Applied in this order: each reads its own part of all settings. */
export const converters: readonly ((given: AllGiven, conversion: Conversion) => void)[] = [
  singles,
  selectors,
  exporters,
  sampler,
  features,
  instrumentations,
  ignoredPaths,
]

function singles(given: AllGiven, conversion: Conversion): void {
  for (const [path, { write }] of Object.entries(single)) {
    const setting = given.get(path)
    if (setting !== undefined) write(setting, conversion)
  }
}

function list(key: string): Write {
  return (given, conversion) => conversion.set(key, textsOf(given.value), given.origin, given.refers)
}

function attribute(name: string): Write {
  return ({ origin, value, refers }, conversion) =>
    conversion.put('resource.attributes', name, textOf(value), origin, refers)
}

function propagation({ origin, value }: Given, conversion: Conversion): void {
  if (/^(|disabled)$/.test(textOf(value)))
    conversion.note(`${origin}: svc uses the context in requests (${network}.propagation: read)`)
  else
    conversion.leaveOut(
      origin,
      'svc uses the context in requests but injects none; let the applications do it, with an SDK',
    )
}

function kubernetes({ origin, value }: Given, conversion: Conversion): void {
  if (textOf(value) === 'false') conversion.set('agent.discovery.detect_kubernetes', false, origin)
  else conversion.note(`${origin} needs no conversion: svc queries Kubernetes when it runs in a cluster`)
}

function interfaces({ origin, value, refers }: Given, conversion: Conversion): void {
  const names = textsOf(value)
  const patterns = names.filter(name => /^\/.*\/$/.test(name))
  const plain = names.filter(name => !patterns.includes(name))
  if (patterns.length > 0)
    conversion.leaveOut(
      origin,
      `svc does not support expressions here (${patterns.join(', ')}); list the interfaces`,
    )
  // Without the interfaces of the expressions the list would select fewer: all interfaces is closer.
  else if (plain.length > 0) conversion.set(`${network}.interfaces`, plain, origin, refers)
}

/** Destinations of spans and metrics. OBI guesses the protocol from the port, and defaults to HTTP. */
function exporters(given: AllGiven, conversion: Conversion): void {
  const common = given.get('otlp.endpoint')
  if (common !== undefined && !given.has('otlp.protocol'))
    conversion.set('otlp.protocol', guessed(textOf(common.value)), common.origin)
  if (common !== undefined)
    conversion.note(
      `${common.origin}: svc sends logs and profiles there, too; to stop that, set otlp.logs.enabled: false and otlp.profiles.enabled: false`,
    )
  for (const signal of ['traces', 'metrics'] as const) {
    const key = `otlp.${signal}`
    const ofFile = given.get(`otel_${signal}_export.endpoint`)
    const ofVariable = given.get(`${key}.endpoint`)
    const written = given.get(`otel_${signal}_export.protocol`)
    const isGiven = given.has(`${key}.protocol`) || given.has('otlp.protocol')
    const endpoint = ofVariable ?? ofFile
    if (endpoint === undefined) {
      if (written !== undefined && !isGiven)
        conversion.set(`${key}.protocol`, textOf(written.value), written.origin)
      continue
    }
    const { origin, value, refers } = endpoint
    const address = textOf(value)
    const spoken = textOf((given.get(`${key}.protocol`) ?? given.get('otlp.protocol') ?? written)?.value)
    const protocol = spoken === '' ? guessed(address) : spoken
    if (!isGiven) conversion.set(`${key}.protocol`, protocol, (written ?? endpoint).origin)
    if (refers && address.includes('${'))
      conversion.note(
        `${origin}: the value of the variable is unknown; port 4317 needs ${key}.protocol: grpc, and over HTTP the URL ends in /v1/${signal}`,
      )
    const isBare = /^https?:\/\/[^/]+\/?$/.test(address) && protocol !== 'grpc'
    // The URL of one signal is used as it is.
    conversion.set(
      `${key}.endpoint`,
      isBare ? `${address.replace(/\/$/, '')}/v1/${signal}` : address,
      origin,
      refers,
    )
  }
  const interval = given.get('otel_metrics_export.otel_interval')
  if (interval === undefined || given.has('otel_metrics_export.interval')) return
  to(`${network}.metrics_interval`, text => (number(text) === undefined ? undefined : `${text}ms`))(
    interval,
    conversion,
  )
}

function guessed(address: string): string {
  return /4317\/?$/.test(address) ? 'grpc' : 'http/protobuf'
}

function sampler(given: AllGiven, conversion: Conversion): void {
  const name = given.get('otel_traces_export.sampler.name')
  const arg = given.get('otel_traces_export.sampler.arg')
  if (name === undefined) {
    if (arg !== undefined) conversion.note(`${arg.origin} needs no conversion: no sampler is named`)
    return
  }
  const kind = textOf(name.value).replace(/^parentbased_/, '')
  const ratio = kind === 'always_on' ? 1 : kind === 'always_off' ? 0 : number(textOf(arg?.value) || '1')
  if (!['always_on', 'always_off', 'traceidratio'].includes(kind) || ratio === undefined) {
    conversion.leaveOut(name.origin, `svc has no such sampler; set ${network}.sampling.ratio`)
    return
  }
  if (ratio === 1) return
  const { origin } = arg ?? name
  conversion.set(`${network}.sampling.ratio`, ratio, origin)
  // The sampler of OBI considers neither errors nor duration.
  for (const key of ['always_errors', 'always_slow'])
    conversion.set(`${network}.sampling.${key}`, false, name.origin)
}

/** Metrics with a switch in svc, where all are on by default. */
function features(given: AllGiven, conversion: Conversion): void {
  const setting = given.get('otel_metrics_export.features')
  const old = given.get('network.enable')
  if (old !== undefined && setting === undefined && truth(textOf(old.value)) === false)
    conversion.set(`${network}.flows`, false, old.origin)
  if (setting === undefined) return
  const names = textsOf(setting.value)
  if (names.some(name => name === '*' || name === 'all')) return
  const has = (word: RegExp) => names.some(name => word.test(name))
  if (!has(/^network/) && truth(textOf(old?.value)) !== true)
    conversion.set(`${network}.flows`, false, setting.origin)
  if (!has(/^stats/)) conversion.set(`${network}.tcp_metrics`, false, setting.origin)
  if (!has(/^application/))
    conversion.leaveOut(
      `${setting.origin} without application`,
      'svc emits request metrics wherever it emits spans; drop them with pipeline.transform',
    )
  const more = names.filter(name => /^(application_|network_inter_zone|ebpf)/.test(name))
  if (more.length > 0)
    conversion.leaveOut(
      `${setting.origin}: ${more.join(', ')}`,
      'svc has no metrics with these names; derive them from spans where the data is stored',
    )
}

/** OBI's names of protocols that differ from svc's. */
const switchOf: Readonly<Record<string, string>> = { mongo: 'mongodb' }

function instrumentations(given: AllGiven, conversion: Conversion): void {
  const settings = ['traces', 'metrics'].map(signal => given.get(`otel_${signal}_export.instrumentations`))
  const [traces, metrics] = settings
  const any = traces ?? metrics
  if (any === undefined) return
  if (traces === undefined || metrics === undefined) {
    conversion.leaveOut(
      any.origin,
      `svc has one switch for spans and metrics of a protocol, such as ${network}.redis; set to false those that you need for neither`,
    )
    return
  }
  const names = new Set(
    [...textsOf(traces.value), ...textsOf(metrics.value)].map(name => switchOf[name] ?? name),
  )
  if (names.has('*')) return
  const known = new Set<string>(protocols.map(({ key }) => key))
  for (const name of names)
    if (!known.has(name))
      conversion.leaveOut(`${traces.origin}: ${name}`, 'svc does not decode this protocol')
  for (const name of known) if (!names.has(name)) conversion.set(`${network}.${name}`, false, traces.origin)
}

function ignoredPaths(given: AllGiven, conversion: Conversion): void {
  const setting = given.get('routes.ignored_patterns')
  if (setting === undefined) return
  const mode = textOf(given.get('routes.ignore_mode')?.value) || 'all'
  if (mode !== 'traces')
    conversion.leaveOut(
      `${setting.origin} for ${mode === 'all' ? 'metrics' : mode}`,
      `svc counts every request in its metrics; ${network}.exclude_paths only drops the spans`,
    )
  if (mode === 'metrics') return
  const { value, origin, refers } = setting
  const paths = textsOf(value)
  const odd = paths.filter(path => /[*:{].*[^*]/.test(path.replace(/\*+$/, '')) || !path.startsWith('/'))
  for (const path of odd)
    conversion.leaveOut(
      `${origin}: ${path}`,
      `a path must be exact or end in "*"; add it to ${network}.exclude_paths`,
    )
  const exact = paths.filter(path => !odd.includes(path)).map(path => path.replace(/\*+$/, '*'))
  if (exact.length > 0) conversion.set(`${network}.exclude_paths`, exact, origin, refers)
}
