// Cases of the mapping from Prometheus to OTLP, as test/fixtures/mapping has them:
//
//   === what the case shows
//   --- openmetrics                the page: `text` or `openmetrics`
//   --- relabel                    lines `name FROM TO`, `drop LABEL`, `set LABEL VALUE`; may be left out
//   --- metrics                    what becomes of it
//
// The page was scraped at 1700000000 s; other times are told in seconds, `at` of a point and `from` of its start. A point of
// a histogram tells what each bucket counts itself, by its upper bound.

import { readFileSync } from 'node:fs'
import type { Attributes } from '../../src/foundation/model/attributes.ts'
import type {
  Exemplar,
  HistogramPoint,
  Metric,
  NumberPoint,
  SummaryPoint,
} from '../../src/foundation/model/metric.ts'
import type { MappedMetric, MappedSeries } from '../../src/signals/metrics/scraping/mapping/map-family.ts'
import type { MappedFamily } from '../../src/signals/metrics/scraping/mapping/mapped-family.ts'
import { metricsScope } from '../../src/signals/metrics/scraping/mapping/metrics-scope.ts'

export const scrapeUs = 1.7e15

export interface MappingCase {
  readonly title: string
  readonly format: 'text' | 'openmetrics'
  readonly page: string
  readonly relabel: readonly string[]
  readonly metrics: string
}

export function readCases(file: string): MappingCase[] {
  return readFileSync(file, 'utf8')
    .split(/^=== /m)
    .slice(1)
    .map(text => {
      const [title = '', ...parts] = text.split(/^--- /m)
      const part = (...names: string[]) => {
        const found = parts.find(one => names.some(name => one.startsWith(`${name}\n`)))
        return found?.slice(found.indexOf('\n') + 1) ?? ''
      }
      const format = parts.some(one => one.startsWith('openmetrics\n')) ? 'openmetrics' : 'text'
      const relabel = part('relabel').split('\n').filter(Boolean)
      return { title: title.trim(), format, page: part(format), relabel, metrics: part('metrics').trimEnd() }
    })
}

export function writtenCase({ title, format, page, relabel }: MappingCase, metrics: string): string {
  const rules = relabel.length > 0 ? `--- relabel\n${relabel.join('\n')}\n` : ''
  return `=== ${title}\n--- ${format}\n${page.trimEnd()}\n${rules}--- metrics\n${metrics}\n\n`
}

/** Series as the rules of a case leave them. */
export function relabelled(series: MappedSeries, rules: readonly string[]): MappedSeries {
  const labels = new Map(series.labels)
  let { name } = series
  for (const rule of rules) {
    const [action, from = '', to = ''] = rule.split(' ')
    if (action === 'name' && name === from) name = to
    else if (action === 'drop') labels.delete(from)
    else if (action === 'set') labels.set(from, to)
  }
  return { ...series, name, labels }
}

/** A mapped family in the words of the cases. */
export function linesOf(mapped: MappedFamily): string[] {
  const lines: string[] = []
  for (const one of mapped.metrics) if (one.metric.points.length > 0) lines.push(...toldMetric(one))
  for (const { identity, labels } of mapped.targetInfo)
    lines.push(`target_info${about(identity)} ${toldAttributes(labels)}`)
  for (const [reason, points] of mapped.dropped) lines.push(`dropped ${reason} ${points}`)
  return lines
}

function toldMetric({ identity, scope, metric }: MappedMetric): string[] {
  const { kind, name, description, unit, metadata } = metric
  const line = [kind, name, metadata?.get('prometheus.type')]
  if (metric.kind === 'sum' && metric.monotonic) line.push('monotonic')
  if (unit !== '') line.push(`unit=${unit}`)
  if (description !== '') line.push(JSON.stringify(description))
  if (scope !== metricsScope) {
    const { name, version, attributes, schemaUrl } = scope
    line.push(`scope=${name}@${version === metricsScope.version ? 'own' : version}`)
    if (attributes !== undefined) line.push(toldAttributes(attributes))
    if (schemaUrl !== undefined) line.push(schemaUrl)
  }
  const points = metric.points.map(point => `  ${toldPoint(metric, point)}`)
  return [line.join(' ') + about(identity), ...points]
}

function about({ job, instance }: { job: string; instance: string }): string {
  return job === '' && instance === '' ? '' : ` of ${job}/${instance}`
}

function toldPoint(metric: Metric, point: Metric['points'][number]): string {
  const words = [toldAttributes(point.attributes)]
  if (point.noValue === true) words.push('ended')
  else if (metric.kind === 'histogram') words.push(...toldHistogram(metric.bounds, point as HistogramPoint))
  else if (metric.kind === 'summary') words.push(...toldSummary(point as SummaryPoint))
  else words.push(toldNumber((point as NumberPoint).value))
  if (point.startUs !== 0) words.push(`from ${point.startUs / 1e6}`)
  if (point.timeUs !== scrapeUs) words.push(`at ${point.timeUs / 1e6}`)
  const { exemplars = [] } = point as NumberPoint
  return [...words, ...exemplars.map(toldExemplar)].join(' ')
}

function toldHistogram(bounds: readonly number[], { count, sum, buckets }: HistogramPoint): string[] {
  const own = Array.from(buckets, (n, i) => `${toldNumber(bounds[i] ?? Number.POSITIVE_INFINITY)}:${n}`)
  return [`count=${count}`, ...(sum === undefined ? [] : [`sum=${toldNumber(sum)}`]), ...own]
}

function toldSummary({ count, sum, quantiles, values }: SummaryPoint): string[] {
  return [
    `count=${count}`,
    `sum=${toldNumber(sum)}`,
    ...Array.from(quantiles, (q, i) => `${q}=${toldNumber(values[i]!)}`),
  ]
}

function toldExemplar({ value, timeUs, traceId, spanId, attributes }: Exemplar): string {
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
  const words = ['exemplar', toldNumber(value), toldAttributes(attributes)]
  if (traceId.length > 0) words.push(`trace=${hex(traceId)}`)
  if (spanId.length > 0) words.push(`span=${hex(spanId)}`)
  if (timeUs !== 0) words.push(`at ${timeUs / 1e6}`)
  return `(${words.join(' ')})`
}

function toldAttributes(attributes: Attributes): string {
  return JSON.stringify(attributes.toObject())
}

function toldNumber(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value)
}
