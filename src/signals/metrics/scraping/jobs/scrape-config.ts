import { formatDuration } from '../../../../foundation/lib/duration.ts'
import { list, map } from '../../../../foundation/schema/collections.ts'
import type { Kind } from '../../../../foundation/schema/tree.ts'
import type { ScrapeJob } from '../scrape-job.ts'
import { addressFault } from '../target-url.ts'
import { accessFields, accessOf, checkAccess, foreignAccess } from './access.ts'
import { type JobDefaults, type JobFault, root, usualLimits } from './defaults.ts'
import { foreignSource, sourceFields, sourcesOf } from './discovery.ts'
import {
  anyBoolean,
  anyCount,
  anyDuration,
  anySize,
  anyText,
  entryText,
  guarded,
  oneOf,
  textThat,
} from './fields.ts'
import { type FieldFault, form, placeOf, type Written } from './form.ts'
import { relabelRules, rulesOf } from './relabel-rules.ts'

// One entry of `scrape_configs` (Prometheus 3, `ScrapeConfig` in config/config.go).

/** As for svc's own keys. */
const largestBody = 1024 * 1024 * 1024

const protocol = oneOf([
  'PrometheusProto',
  'PrometheusText0.0.4',
  'PrometheusText1.0.0',
  'OpenMetricsText0.0.1',
  'OpenMetricsText1.0.0',
])

const fields = {
  job_name: anyText,
  scrape_interval: anyDuration(100),
  scrape_timeout: anyDuration(10),
  metrics_path: anyText,
  scheme: textThat('http or https', scheme =>
    ['', 'http', 'https'].includes(scheme) ? '' : 'other schemes are not supported',
  ),
  params: guarded(map(list(entryText))),
  honor_labels: anyBoolean,
  honor_timestamps: anyBoolean,
  track_timestamps_staleness: anyBoolean,
  enable_compression: anyBoolean,
  scrape_protocols: list(protocol),
  fallback_scrape_protocol: protocol,
  body_size_limit: anySize,
  sample_limit: anyCount,
  label_limit: anyCount,
  label_name_length_limit: anyCount,
  label_value_length_limit: anyCount,
  target_limit: anyCount,
  keep_dropped_targets: anyCount,
  ...accessFields,
  ...sourceFields,
  relabel_configs: relabelRules,
  metric_relabel_configs: relabelRules,
  scrape_failure_log_file: anyText,
  metric_name_validation_scheme: oneOf(['utf8', 'legacy']),
  metric_name_escaping_scheme: oneOf(['allow-utf-8', 'underscores', 'dots', 'values']),
  extra_scrape_metrics: anyBoolean,
  scrape_native_histograms: anyBoolean,
  scrape_classic_histograms: anyBoolean,
  always_scrape_classic_histograms: anyBoolean,
  convert_classic_histograms_to_nhcb: anyBoolean,
  native_histogram_bucket_limit: anyCount,
  native_histogram_min_bucket_factor: anyText,
} as const

export type WrittenJob = Written<typeof fields>

/** Keys without effect, and what svc does instead. */
const withoutEffect: Readonly<Record<string, string>> = {
  enable_http2: 'svc scrapes over HTTP/1.1',
  scrape_protocols: 'svc requests the text formats, OpenMetrics first',
  scrape_failure_log_file: 'failures are in the log of svc and at /status/targets',
  metric_name_validation_scheme: 'svc accepts all UTF-8 names',
  metric_name_escaping_scheme: 'svc requests unescaped names',
  extra_scrape_metrics: 'svc always sends the same metrics about a scrape',
  scrape_native_histograms: 'svc supports only histograms with classic buckets',
  convert_classic_histograms_to_nhcb: 'svc sends histograms with their classic buckets',
  native_histogram_bucket_limit: 'svc supports only histograms with classic buckets',
  native_histogram_min_bucket_factor: 'svc supports only histograms with classic buckets',
}

/** Values of these keys that request what svc does anyway. */
const sameAnyway: Readonly<Record<string, unknown>> = {
  // As written by Prometheus in the configuration that it shows.
  enable_http2: true,
  scrape_protocols: 'OpenMetricsText1.0.0,OpenMetricsText0.0.1,PrometheusText1.0.0,PrometheusText0.0.4',
  metric_name_validation_scheme: 'utf8',
  metric_name_escaping_scheme: 'allow-utf-8',
}

function check(written: WrittenJob, fault: FieldFault): void {
  if (!written.job_name)
    fault(
      written.job_name === '' ? 'job_name' : '',
      'job_name is missing or empty; give each job its own name',
    )
  const protocols = written.scrape_protocols ?? []
  if (new Set(protocols).size < protocols.length) fault('scrape_protocols', 'duplicate entry; delete one')
  if ((written.body_size_limit ?? 0) > largestBody) fault('body_size_limit', 'the maximum is 1GB')
  checkAccess(written, fault)
  if ((written.relabel_configs ?? []).length > 0) return
  for (const [i, { targets = [] }] of (written.static_configs ?? []).entries()) {
    for (const [j, address] of targets.entries()) {
      const at = `static_configs[${i}].targets[${j}]`
      if (address === '') fault(at, 'is empty; use host:port')
      else if (address.includes('/') && !address.startsWith('unix:'))
        fault(at, 'a target is host:port; set scheme and metrics_path for the rest')
    }
  }
}

const scrapeConfig = form(fields, {
  what: 'a Prometheus scrape configuration',
  foreign: name => foreignAccess(name) ?? foreignSource(name),
  check,
})

const anyConfigs = list(scrapeConfig)

/** List with unique job names. */
export const scrapeConfigs: Kind<readonly WrittenJob[]> = {
  ...anyConfigs,
  expects: 'a list of Prometheus scrape configurations',
  read(value, key, report) {
    const read = anyConfigs.read(value, key, report)
    const names = new Map<string, number>()
    let good = true
    for (const [i, job] of (read ?? []).entries()) {
      const { job_name: name = '' } = job
      const first = names.get(name)
      if (first === undefined) names.set(name, i)
      else {
        good = false
        const message = `duplicate job name "${name}", already used by ${key}[${first}]; give each job its own name`
        report.problem(placeOf(job, 'job_name') ?? value.place, `${key}[${i}].job_name`, message)
      }
    }
    return good ? read : undefined
  },
}

/** A job from the configuration, with the defaults of Prometheus, or those of all jobs. */
export function jobOf(
  written: WrittenJob,
  at: string,
  defaults: JobDefaults,
  baseDir: string,
): { readonly job: ScrapeJob; readonly faults: readonly JobFault[]; readonly notes: readonly string[] } {
  const intervalMs = written.scrape_interval || defaults.scrape_interval
  const timeoutMs = written.scrape_timeout || Math.min(defaults.scrape_timeout, intervalMs)
  const faults: JobFault[] = []
  if (timeoutMs > intervalMs)
    faults.push({
      path: `${at}.scrape_timeout`,
      message: `is ${formatDuration(timeoutMs)}, longer than the interval of ${formatDuration(intervalMs)}${written.scrape_interval ? '' : ` (${root}.scrape_interval)`}`,
      hint: 'set a timeout that is not longer than the interval',
      place: placeOf(written, 'scrape_timeout'),
    })
  const usual = usualLimits(defaults)
  const job: ScrapeJob = {
    name: written.job_name ?? '',
    intervalMs,
    timeoutMs,
    scheme: written.scheme === 'https' ? 'https' : 'http',
    metricsPath: written.metrics_path || '/metrics',
    params: written.params ?? {},
    honorLabels: written.honor_labels ?? defaults.honor_labels,
    honorTimestamps: written.honor_timestamps ?? defaults.honor_timestamps,
    trackTimestampsStaleness: written.track_timestamps_staleness ?? false,
    compression: written.enable_compression ?? true,
    lenient: defaults.lenient,
    limits: {
      bodyBytes: written.body_size_limit || usual.bodyBytes,
      samples: written.sample_limit || usual.samples,
      labels: written.label_limit ?? usual.labels,
      labelNameLength: written.label_name_length_limit ?? usual.labelNameLength,
      labelValueLength: written.label_value_length_limit ?? usual.labelValueLength,
      targets: written.target_limit ?? usual.targets,
    },
    access: accessOf(written, baseDir),
    relabel: rulesOf(written.relabel_configs ?? []),
    metricRelabel: rulesOf(written.metric_relabel_configs ?? []),
    sources: sourcesOf(written, baseDir),
    externalLabels: new Map(Object.entries(defaults.external_labels)),
  }
  return { job, faults, notes: notesOf(written, at) }
}

function isSame(name: string, value: unknown): boolean {
  return (
    Object.hasOwn(sameAnyway, name) && (Array.isArray(value) ? String(value) : value) === sameAnyway[name]
  )
}

/** Invalid addresses that no relabelling changes. */
function addressNotes(written: WrittenJob, at: string): string[] {
  if ((written.relabel_configs ?? []).length > 0) return []
  return (written.static_configs ?? []).flatMap(({ targets = [], labels = {} }, i) =>
    targets.flatMap((address, j) => {
      const fault = addressFault(address, labels.__scheme__ || written.scheme || 'http')
      return fault === '' ? [] : [`${at}.static_configs[${i}].targets[${j}] is not scraped: ${fault}`]
    }),
  )
}

function notesOf(written: WrittenJob, at: string): string[] {
  const notes: string[] = []
  for (const [name, value] of Object.entries(written)) {
    const instead = withoutEffect[name]
    const asks = value !== false && value !== 0 && value !== '' && !isSame(name, value)
    if (instead !== undefined && asks) notes.push(`${at}.${name} has no effect: ${instead}`)
  }
  const fallback = written.fallback_scrape_protocol
  if (fallback !== undefined && fallback !== 'PrometheusText0.0.4')
    notes.push(`${at}.fallback_scrape_protocol has no effect: svc falls back to PrometheusText0.0.4`)
  if (/^TLS1[01]$/.test(written.tls_config?.min_version ?? ''))
    notes.push(`${at}.tls_config.min_version has no effect: svc supports TLS 1.2 and 1.3`)
  if (written.metrics_path?.includes('?'))
    notes.push(`${at}.metrics_path requests "%3F", as in Prometheus; use params for the query after "?"`)
  notes.push(...addressNotes(written, at))
  for (const [i, docker] of (written.docker_sd_configs ?? []).entries()) {
    if (docker.match_first_network === false)
      notes.push(
        `${at}.docker_sd_configs[${i}].match_first_network has no effect: svc uses the first network`,
      )
  }
  return notes
}
