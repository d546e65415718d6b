// Every metric that svc serves or sends, by the name that a Prometheus has for it: what dashboards and rules may ask for.

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
  /** As a Prometheus has it; of a histogram without `_bucket`, `_count` and `_sum`. */
  readonly name: string
  readonly type: string
  /** Those of its target or resource are not among them. */
  readonly labels: readonly string[]
  /** The page of the host, the agent's own page, OTLP, or told by whoever scrapes. */
  readonly from: 'host' | 'agent' | 'otlp' | 'scraper'
}

const units: readonly Collector<Keys>[] = [...collectors, ...extraCollectors]

/** Collectors that name metrics by what they read: nobody knows these names beforehand. */
export const dynamicCollectors: readonly Collector<Keys>[] = units.filter(unit => unit.dynamic !== undefined)

/** All metrics but those that `dynamicCollectors` name. */
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

/** What is sent over OTLP and served nowhere, in the order in which documents list it. */
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

/** As OTLP has what the host's page shows: by the name of the conventions, where they have one. */
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

/** Series by name, with the labels that each may have; families of one name are put together. */
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
