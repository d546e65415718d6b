import { Attributes } from '../../../foundation/model/attributes.ts'
import type { Gauge } from '../../../foundation/model/metric.ts'
import type { MetricDeclaration } from '../../../foundation/model/metric-declaration.ts'
import type { PreparedMetric } from '../../../foundation/model/prepared-metric.ts'
import type { Resource } from '../../../foundation/model/resource.ts'
import { metricsScope } from './mapping/metrics-scope.ts'
import type { SeriesSink } from './series-sink.ts'
import type { Target } from './target.ts'

/** Data about a scrape, also a failed one. */
export interface Report {
  readonly up: 0 | 1
  readonly durationSeconds: number
  readonly samples: number
  readonly kept: number
  readonly added: number
}

/** The series that Prometheus adds for each target, with its names. */
const series: readonly (readonly [
  name: string,
  unit: string,
  help: string,
  value: (of: Report) => number,
])[] = [
  ['up', '', 'Whether the last scrape succeeded.', ({ up }) => up],
  ['scrape_duration_seconds', 's', 'Duration of the scrape.', of => of.durationSeconds],
  ['scrape_samples_scraped', '', 'Samples that the target exposed.', ({ samples }) => samples],
  ['scrape_samples_post_metric_relabeling', '', 'Samples left after relabelling.', ({ kept }) => kept],
  ['scrape_series_added', '', 'Series that were not in the previous scrape.', ({ added }) => added],
]

/** Metrics about each target, with the labels of the target. */
export const reportMetrics: readonly MetricDeclaration[] = series.map(([name, unit, description]) => ({
  name,
  unit,
  description,
  kind: 'gauge',
  attributes: [],
}))

/** Emits the metrics about one target's scrapes. */
export class TargetReport {
  readonly #sink: SeriesSink
  readonly #values = new Float64Array(series.length)
  #target: Target | undefined
  #resource: Resource | undefined
  #prepared: (PreparedMetric | undefined)[] = []

  constructor(sink: SeriesSink) {
    this.#sink = sink
  }

  send(target: Target, resource: Resource, timeUs: number, about: Report): void {
    if (target !== this.#target || resource !== this.#resource) this.#make(target, resource)
    for (const [i, [, , , value]] of series.entries()) this.#values[i] = value(about)
    for (let i = 0; i < series.length; i++) {
      const prepared = this.#prepared[i]
      if (prepared !== undefined && this.#sink.prepared.send(prepared, this.#values, timeUs) === 'sent')
        continue
      // Limits and rules have changed, or need the whole metric each time.
      this.#prepared[i] = this.#prepare(target, resource, i)
      const again = this.#prepared[i]
      if (again === undefined || this.#sink.prepared.send(again, this.#values, timeUs) !== 'sent')
        this.#sink.add(resource, metricsScope, metricOf(target, i, timeUs, this.#values[i]!, false))
    }
  }

  /** Marks the series as ended. */
  end(target: Target, resource: Resource, timeUs: number): void {
    if (this.#target === undefined) return
    for (let i = 0; i < series.length; i++)
      this.#sink.add(resource, metricsScope, metricOf(target, i, timeUs, 0, true))
  }

  #make(target: Target, resource: Resource): void {
    this.#target = target
    this.#resource = resource
    this.#prepared = series.map((_, i) => this.#prepare(target, resource, i))
  }

  #prepare(target: Target, resource: Resource, i: number): PreparedMetric | undefined {
    return this.#sink.prepared.prepare(resource, metricsScope, metricOf(target, i, 0, i, false))
  }
}

function metricOf(target: Target, i: number, timeUs: number, value: number, noValue: boolean): Gauge {
  const [name, unit, description] = series[i]!
  const attributes = new Attributes()
  // The target's labels take precedence, as for all of its series.
  for (const [label, text] of [...target.job.externalLabels, ...target.labels])
    if (label !== 'job' && label !== 'instance' && text !== '') attributes.set(label, text)
  const point = { attributes, startUs: 0, timeUs, value }
  return { kind: 'gauge', name, description, unit, points: [noValue ? { ...point, noValue } : point] }
}
