import type { SampleKey } from './exposition.ts'
import { exportedPrefix, nameLabel } from './label-names.ts'
import { relabel } from './relabel.ts'
import type { ScrapeJob, ScrapeLimits } from './scrape-job.ts'
import type { Target } from './target.ts'

/** A series with its final name and labels. */
export interface NamedSeries {
  readonly name: string
  /** Without `__name__`, and without labels with empty values. */
  readonly labels: Map<string, string>
}

/** Reason to fail the whole scrape, as in Prometheus. */
export interface SeriesFault {
  readonly reason: string
}

/**
 * Final name and labels of a series: the labels of the page and of its target (`honor_labels`), after
 * `metric_relabel_configs`, and external labels that it lacks. Undefined if it is dropped. Limits count the labels
 * after relabelling, including the name, without external labels. (Prometheus 3, scrape/scrape.go.)
 */
export function seriesLabels(
  job: ScrapeJob,
  target: Target,
  key: SampleKey,
): NamedSeries | SeriesFault | undefined {
  const labels = ownLabels(key)
  if (job.honorLabels) addAbsent(labels, target.labels, key.labels)
  else addOver(labels, target.labels)
  if (!relabel(job.metricRelabel, labels) || labels.size === 0) return undefined
  const name = labels.get(nameLabel)
  if (name === undefined)
    return {
      reason: `relabelling removed the name of ${key.name.slice(0, 50)}; keep __name__, or drop the series`,
    }
  const reason = limitFault(job.limits, name, labels)
  if (reason !== '') return { reason }
  for (const [label, value] of job.externalLabels)
    if (value !== '' && !labels.has(label)) labels.set(label, value)
  labels.delete(nameLabel)
  return { name, labels }
}

function ownLabels(key: SampleKey): Map<string, string> {
  const labels = new Map<string, string>()
  if (key.name !== '') labels.set(nameLabel, key.name)
  for (const [label, value] of key.labels) if (value !== '') labels.set(label, value)
  return labels
}

/** A label of the page with an empty value suppresses the target's label. */
function addAbsent(
  labels: Map<string, string>,
  ofTarget: ReadonlyMap<string, string>,
  present: ReadonlyMap<string, string>,
): void {
  for (const [label, value] of ofTarget) if (!present.has(label)) labels.set(label, value)
}

/** Renames conflicting labels of the page: short names first, each with as many prefixes as needed. */
function addOver(labels: Map<string, string>, ofTarget: ReadonlyMap<string, string>): void {
  let moved: [label: string, value: string][] | undefined
  for (const [label, value] of ofTarget) {
    const present = labels.get(label)
    if (present !== undefined) {
      moved ??= []
      moved.push([label, present])
    }
    labels.set(label, value)
  }
  if (moved === undefined) return
  moved.sort(([a], [b]) => Buffer.byteLength(a) - Buffer.byteLength(b) || (a < b ? -1 : 1))
  for (const [label, value] of moved) {
    let free = exportedPrefix + label
    while (labels.has(free)) free = exportedPrefix + free
    labels.set(free, value)
  }
}

function limitFault(limits: ScrapeLimits, name: string, labels: ReadonlyMap<string, string>): string {
  const of = `of ${name.slice(0, 50)}`
  if (limits.labels > 0 && labels.size > limits.labels)
    return `label_limit exceeded: a series ${of} has ${labels.size} labels; the limit is ${limits.labels}`
  if (limits.labelNameLength === 0 && limits.labelValueLength === 0) return ''
  for (const [label, value] of labels) {
    const shown = label.slice(0, 50)
    const nameLength = lengthBeyond(label, limits.labelNameLength)
    if (nameLength > 0)
      return `label_name_length_limit exceeded: label ${shown} ${of} has ${nameLength} bytes; the limit is ${limits.labelNameLength}`
    const valueLength = lengthBeyond(value, limits.labelValueLength)
    if (valueLength > 0)
      return `label_value_length_limit exceeded: the value of ${shown} ${of} has ${valueLength} bytes; the limit is ${limits.labelValueLength}`
  }
  return ''
}

/** Size of a text in bytes if it is above the limit; otherwise 0. A limit of 0 means no limit. */
function lengthBeyond(text: string, limit: number): number {
  // A UTF-16 unit takes at most three bytes.
  if (limit === 0 || text.length * 3 <= limit) return 0
  const bytes = Buffer.byteLength(text)
  return bytes > limit ? bytes : 0
}
