// OTLP metrics as a page in Prometheus' text format 0.0.4, as an exporter of OTLP would print those that came from one.

import type { Attributes } from '../../src/foundation/model/attributes.ts'
import type { HistogramPoint, Metric, NumberPoint, SummaryPoint } from '../../src/foundation/model/metric.ts'
import { numberText } from '../../src/signals/metrics/exposition/number-text.ts'

/** The lines of a metric with those that describe it; without where `isKnown`. */
export function printedMetric(metric: Metric, isKnown: boolean): string {
  const { name, description, metadata } = metric
  const type = String(metadata?.get('prometheus.type') ?? 'unknown').replace('unknown', 'untyped')
  const help = description === '' ? [] : [`# HELP ${name} ${escaped(description)}`]
  const lines = isKnown ? [] : [...help, `# TYPE ${name} ${type}`]
  for (const point of metric.points) lines.push(...printedPoint(metric, point))
  return lines.map(line => `${line}\n`).join('')
}

function printedPoint(metric: Metric, point: Metric['points'][number]): string[] {
  const { name } = metric
  const line = (suffix: string, value: number, more: readonly string[] = []) =>
    `${name}${suffix}${printedLabels(point.attributes, more)} ${numberText(value)}`
  if (metric.kind === 'histogram') {
    const { count, sum, buckets } = point as HistogramPoint
    let below = 0
    const lines = Array.from(buckets, (own, i) => {
      below += own
      return line('_bucket', below, [`le="${numberText(metric.bounds[i] ?? Number.POSITIVE_INFINITY)}"`])
    })
    return [...lines, ...(sum === undefined ? [] : [line('_sum', sum)]), line('_count', count)]
  }
  if (metric.kind === 'summary') {
    const { count, sum, quantiles, values } = point as SummaryPoint
    const lines = Array.from(quantiles, (q, i) => line('', values[i]!, [`quantile="${numberText(q)}"`]))
    return [...lines, line('_sum', sum), line('_count', count)]
  }
  return [line('', (point as NumberPoint).value)]
}

function printedLabels({ keys, values, size }: Attributes, more: readonly string[]): string {
  const labels: string[] = []
  for (let i = 0; i < size; i++)
    labels.push(`${keys[i]}="${escaped(String(values[i])).replaceAll('"', '\\"')}"`)
  labels.push(...more)
  return labels.length === 0 ? '' : `{${labels.join()}}`
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}
