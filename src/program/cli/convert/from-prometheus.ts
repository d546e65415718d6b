// `prometheus.yml`, and the scrape file of vmagent. Jobs are copied as they are.

import { dirname, resolve } from 'node:path'
import { formatDuration } from '../../../foundation/lib/duration.ts'
import { nearest } from '../../../foundation/lib/nearest.ts'
import { formatSize } from '../../../foundation/lib/size.ts'
import { ExitCode, StartError } from '../../../foundation/lib/start-error.ts'
import { reportInto } from '../../../foundation/schema/problem.ts'
import {
  type Entry,
  lineAndColumn,
  type Mapping,
  type Scalar,
  type Value,
} from '../../../foundation/schema/value.ts'
import { durationOf } from '../../../signals/metrics/scraping/duration-text.ts'
import { anySize } from '../../../signals/metrics/scraping/jobs/fields.ts'
import type { Conversion } from './conversion.ts'
import { type Input, readYaml } from './input.ts'
import { plainOf } from './plain-value.ts'

const root = 'collectors.prometheus'
const rules = 'svc stores no data and evaluates no rules; keep them on the server that has the data'

/** Sections unrelated to scraping, and what to do about each. */
const sections: Readonly<Record<string, string>> = {
  alerting: rules,
  rule_files: rules,
  remote_write:
    'svc sends OTLP, not remote write; set otlp.endpoint to a receiver of OTLP (Prometheus 3 is one with --web.enable-otlp-receiver, at /api/v1/otlp)',
  remote_read: 'svc stores no data to read; keep it on the server that has the data',
  storage: 'svc stores no data; keep it on the server that has the data',
  otlp: 'svc does not receive OTLP; keep it on the server that does',
  tracing: 'svc traces itself with self_telemetry.tracing; set that instead',
  runtime: 'a setting of the Go runtime; no action',
  scrape_config_files: 'svc does not read other files with jobs; convert each one and merge the lists',
}

/** Of `global`: not settable per job, or not needed. */
const ofRules = new Set(['evaluation_interval', 'rule_query_offset', 'query_log_file'])

/** Of `global`: settable only per job in svc. */
const ofJobs = new Set(
  `label_limit label_name_length_limit label_value_length_limit target_limit keep_dropped_targets scrape_protocols
  scrape_failure_log_file metric_name_validation_scheme metric_name_escaping_scheme scrape_native_histograms
  convert_classic_histograms_to_nhcb always_scrape_classic_histograms extra_scrape_metrics`.split(/\s+/),
)

/** Of vmagent's jobs: how it works, not what it scrapes. */
const ofVmagent: Readonly<Record<string, string>> = {
  stream_parse: 'svc always reads pages as sent',
  relabel_debug: 'svc shows labels before relabelling at /status/targets',
  metric_relabel_debug: 'use svc tap to see sent data',
  scrape_align_interval: 'svc spreads scrapes over the interval automatically',
  scrape_offset: 'svc spreads scrapes over the interval automatically',
  no_stale_markers: 'svc always reports the end of a series',
  disable_keepalive: 'svc always keeps connections open',
}

const numbers = /(_limit|^port|^modulus|_targets|_factor)$/
const booleans =
  /^(honor_|track_|enable_|follow_|own_|always_|convert_|scrape_(native|classic)|extra_|insecure_|proxy_from|match_first|node$|namespace$)/
const secrets = /^(password|credentials|bearer_token|client_secret)$/

/** Sets the jobs of a file and their shared settings. Throws a `StartError` if it has none. */
export function fromPrometheus(input: Input, conversion: Conversion): void {
  const value = readYaml(input)
  if (value === undefined || (value.type === 'scalar' && value.value !== null))
    throw new StartError(`cannot read ${input.name}: not a Prometheus configuration`, ExitCode.usage)
  const entries = value.type === 'map' ? value.entries : []
  const section = (name: string) => entries.find(({ key }) => key === name)?.value
  const known = [...Object.keys(sections), 'global', 'scrape_configs']
  for (const { key, value: content } of entries) {
    const why = Object.hasOwn(sections, key) ? sections[key] : undefined
    if (why !== undefined) {
      if (!isEmpty(content)) conversion.leaveOut(key, why)
    } else if (!known.includes(key)) {
      const near = nearest(key, known)
      conversion.leaveOut(
        key,
        near === undefined
          ? 'not a section of the Prometheus configuration'
          : `unknown; did you mean ${near}?`,
      )
    }
  }
  const all = section('global')
  // Job files included by vmagent and Prometheus are lists, or have this single key.
  const jobs = value.type === 'list' ? value : section('scrape_configs')
  const usual = globalsOf(all?.type === 'map' ? all : undefined, input, conversion)
  if (jobs === undefined || jobs.type !== 'list') {
    if (jobs !== undefined && !isEmpty(jobs)) conversion.leaveOut('scrape_configs', 'not a list; correct it')
    return
  }
  const base = input.path === undefined ? undefined : dirname(input.path)
  const met = { secret: false, relative: false }
  for (const job of jobs.items) addJob(job, usual, { input, base, found: met }, conversion)
  if (met.secret)
    conversion.note(
      'the configuration contains the passwords or tokens of the input: make it readable by svc only',
    )
  if (met.relative)
    conversion.note(
      'relative paths start at the directory of the svc configuration, because standard input has no directory: correct them',
    )
}

interface Context {
  readonly input: Input
  /** Base of relative paths; undefined: unknown. */
  readonly base: string | undefined
  readonly found: { secret: boolean; relative: boolean }
}

/** Sets what svc has for all jobs, and returns what each job must set itself. */
function globalsOf(all: Mapping | undefined, { name }: Input, conversion: Conversion): readonly Entry[] {
  const own: Entry[] = []
  // The default of Prometheus.
  if (!all?.entries.some(({ key, value }) => key === 'scrape_interval' && !isEmpty(value)))
    conversion.set(`${root}.scrape_interval`, '1m', 'the default of Prometheus')
  for (const entry of all?.entries ?? []) {
    const { key, value } = entry
    const origin = `${name}: global.${key}`
    if (isEmpty(value)) continue
    if (key === 'scrape_interval' || key === 'scrape_timeout') {
      const ms = value.type === 'scalar' ? durationOf(value.text) : undefined
      if (ms === undefined) conversion.leaveOut(origin, 'not a duration such as 30s; correct it')
      else conversion.set(`${root}.${key}`, formatDuration(ms), origin)
    } else if (key === 'body_size_limit') {
      const bytes = anySize.read(value, key, reportInto([]))
      if (bytes === undefined) conversion.leaveOut(origin, 'not a size such as 10MB; correct it')
      else if (bytes > 0) conversion.set(`${root}.${key}`, formatSize(bytes), origin)
    } else if (key === 'sample_limit') conversion.set(`${root}.${key}`, plainOf(value), origin)
    else if (key === 'external_labels') {
      const labels = plainOf(value, ({ text }) => withReferences(text))
      conversion.set(`${root}.${key}`, labels, origin, true)
    } else if (ofJobs.has(key)) own.push(entry)
    else if (ofRules.has(key)) conversion.note(`global.${key} needs no conversion: svc evaluates no rules`)
    else conversion.leaveOut(`global.${key}`, 'svc has no such setting for all jobs; set it in each job')
  }
  return own
}

/** Prometheus replaces `$NAME` and `${NAME}` in external labels; a missing variable is empty. */
function withReferences(text: string): string {
  return text.replaceAll(/\$(?:\$(?!\{)|\$\{|\{(\w+)\}|(\w+))/g, (whole, braced?: string, bare?: string) => {
    const name = braced ?? bare
    // svc reads two dollars before a brace as one.
    if (name === undefined) return whole.endsWith('{') ? whole : '$'
    return /^[A-Za-z_]/.test(name) ? `\${${name}:-}` : whole
  })
}

function addJob(job: Value, usual: readonly Entry[], context: Context, conversion: Conversion): void {
  const { input } = context
  const [line] = lineAndColumn(job.place.source, job.place.start)
  const nameOf = job.type === 'map' ? job.entries.find(({ key }) => key === 'job_name')?.value : undefined
  const origin = `${input.name}:${line}: job ${nameOf?.type === 'scalar' ? `"${nameOf.text}"` : 'without a name'}`
  if (job.type !== 'map') {
    conversion.leaveOut(origin, 'not a scrape configuration; delete it')
    return
  }
  const entries: Entry[] = []
  for (const entry of job.entries) {
    const why = Object.hasOwn(ofVmagent, entry.key) ? ofVmagent[entry.key] : undefined
    if (why === undefined) entries.push(entry)
    else conversion.note(`${origin}: ${entry.key} needs no conversion: ${why}`)
  }
  for (const entry of usual) if (!entries.some(({ key }) => key === entry.key)) entries.push(entry)
  const written = plainOf({ ...job, entries }, (scalar, path) => scalarOf(scalar, path, context))
  conversion.add(`${root}.scrape_configs`, written, origin)
}

/** A scalar that svc, which reads YAML 1.2, reads as the same text: `010` stays text where text is expected. */
function scalarOf({ value, text }: Scalar, path: readonly string[], { base, found: met }: Context): unknown {
  const names = path.filter(name => name !== '[]')
  const last = names.at(-1) ?? ''
  if (typeof value === 'string') {
    if (secrets.test(last) && value !== '') met.secret = true
    if (!isPath(names) || value === '' || value.startsWith('/')) return value
    if (base === undefined) met.relative = true
    return base === undefined ? value : resolve(base, value)
  }
  if (value === null || String(value) === text) return value
  const isFree = names.some(name => /^(labels|params|http_headers)$/.test(name))
  return !isFree && (typeof value === 'number' ? numbers : booleans).test(last) ? value : text
}

function isPath(names: readonly string[]): boolean {
  const last = names.at(-1)!
  return (
    (/_file$/.test(last) && !names.some(name => /^(labels|params)$/.test(name))) ||
    (last === 'files' && names.some(name => name === 'file_sd_configs' || name === 'http_headers'))
  )
}

function isEmpty(value: Value): boolean {
  if (value.type === 'list') return value.items.length === 0
  return value.type === 'map' ? value.entries.length === 0 : value.value === null
}
