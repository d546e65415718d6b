// Every metric that svc serves or exports, by its name in Prometheus: the names that dashboards and rules may use.

import type { Family } from '../src/foundation/model/collector.ts'
import { type MetricDeclaration, overflowAttribute } from '../src/foundation/model/metric-declaration.ts'
import type { Keys } from '../src/foundation/schema/tree.ts'
import { processMetrics } from '../src/signals/capture/process-events.ts'
import { syscallDimensions, syscallDuration } from '../src/signals/capture/syscall-counts.ts'
import type { Collector } from '../src/signals/metrics/collectors/collector.ts'
import { collectors, extraCollectors } from '../src/signals/metrics/collectors/index.ts'
import { buildFamilies, exporterFamilies } from '../src/signals/metrics/exposition/exporter-metrics.ts'
import { extendedRunFamilies, runFamilies } from '../src/signals/metrics/exposition/runs.ts'
import { type GpuMetric, gpuMetrics } from '../src/signals/metrics/gpu/gpu-metrics.ts'
import { gpuAttributes } from '../src/signals/metrics/gpu/gpu-place.ts'
import { reportMetrics } from '../src/signals/metrics/scraping/target-report.ts'
import { durations } from '../src/signals/traces/protocols/durations.ts'
import { flowMetric } from '../src/signals/traces/tracing/flows.ts'
import { networkMetrics } from '../src/signals/traces/tracing/network-series.ts'
import { graphMetrics } from '../src/signals/traces/tracing/service-graph.ts'
import { prometheusName } from './prometheus-name.ts'
import { declaredSelfMetrics } from './self-metrics-page.ts'

export interface DeclaredMetric {
  /** As in Prometheus; for a histogram without `_bucket`, `_count` and `_sum`. */
  readonly name: string
  readonly type: string
  /** Without those of its target or resource. */
  readonly labels: readonly string[]
  /** The page of the host, the agent's own page, OTLP, or added by the scraper. */
  readonly from: 'host' | 'agent' | 'otlp' | 'scraper'
}

const units: readonly Collector<Keys>[] = [...collectors, ...extraCollectors]

/** Collectors that name metrics by their input: the names are not known in advance. */
export const dynamicCollectors: readonly Collector<Keys>[] = units.filter(unit => unit.dynamic !== undefined)

/** All metrics except those of `dynamicCollectors`. */
export function declaredMetrics(): readonly DeclaredMetric[] {
  const families = [...units.flatMap(unit => unit.metrics), ...runFamilies, ...extendedRunFamilies]
  return [
    ...[...families, ...buildFamilies, ...exporterFamilies].map(hostMetric),
    ...families.filter(({ type }) => type !== 'summary').map(sentHostMetric),
    ...declaredSelfMetrics().map(
      ({ name, type, labelNames }): DeclaredMetric => ({ name, type, labels: labelNames, from: 'agent' }),
    ),
    ...sentMetrics.map((metric): DeclaredMetric => sent(metric)),
    ...reportMetrics.map(
      ({ name }): DeclaredMetric => ({ name, type: 'gauge', labels: [], from: 'scraper' }),
    ),
  ]
}

/** Metrics that are exported over OTLP only, in the order of the documentation. */
export const sentMetrics: readonly MetricDeclaration[] = [
  ...durations.map(({ name, description, dimensions }) => duration(name, description, dimensions)),
  duration(syscallDuration.name, syscallDuration.description, syscallDimensions),
  ...networkMetrics,
  flowMetric,
  ...graphMetrics,
  ...Object.values(processMetrics),
  ...Object.entries<GpuMetric>(gpuMetrics).map(([name, { kind, unit, description, extras }]) => ({
    name,
    kind,
    unit,
    description,
    attributes: [...gpuAttributes, ...new Set(Object.values(extras).map(({ key }) => key))],
  })),
]

function duration(name: string, description: string, dimensions: readonly string[]): MetricDeclaration {
  return { name, description, unit: 's', kind: 'histogram', attributes: [...dimensions, overflowAttribute] }
}

function hostMetric({ name, type, labels, absolute }: Family): DeclaredMetric {
  return { name: absolute ? name : `node_${name}`, type, labels, from: 'host' }
}

/** A metric of the host's page as exported over OTLP: with the name of the conventions, if there is one. */
function sentHostMetric({ name: own, type, labels, unit: ownUnit, absolute, otel }: Family): DeclaredMetric {
  const kind = type === 'untyped' || type === 'summary' ? 'gauge' : type
  const metric = otel ?? { name: absolute ? own : `node_${own}`, unit: ownUnit, kind }
  const { attributes = {}, constant = {}, id } = otel ?? {}
  const known = labels.map(label => attributes[label] ?? label)
  const all = [...known, ...Object.keys(constant), ...(id === undefined ? [] : ['hw.id'])]
  return sent({ name: metric.name, unit: metric.unit, kind: metric.kind, description: '', attributes: all })
}

function sent(metric: MetricDeclaration): DeclaredMetric {
  const { kind, attributes } = metric
  const labels = [...new Set(attributes.map(key => key.replace(/\W/g, '_')))]
  return {
    name: prometheusName(metric),
    type: kind === 'updowncounter' ? 'gauge' : kind,
    labels,
    from: 'otlp',
  }
}

/** Series by name, with their possible labels; families with the same name are merged. */
export function declaredSeries(): ReadonlyMap<string, ReadonlySet<string>> {
  const series = new Map<string, Set<string>>()
  const add = (name: string, labels: readonly string[]) => {
    const known = series.get(name) ?? new Set()
    series.set(name, known)
    for (const label of labels) known.add(label)
  }
  for (const { name, type, labels } of declaredMetrics()) {
    if (type !== 'histogram' && type !== 'summary') {
      add(name, labels)
      continue
    }
    if (type === 'summary') add(name, [...labels, 'quantile'])
    else add(`${name}_bucket`, [...labels, 'le'])
    for (const part of ['sum', 'count']) add(`${name}_${part}`, labels)
  }
  return series
}
