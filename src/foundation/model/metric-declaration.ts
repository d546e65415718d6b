/** A metric as its unit declares it: for code, documentation and dashboards. */
export interface MetricDeclaration {
  readonly name: string
  readonly description: string
  /** UCUM. */
  readonly unit: string
  readonly kind: 'counter' | 'updowncounter' | 'gauge' | 'histogram'
  /** All attributes that a point may have, without those of its resource. */
  readonly attributes: readonly string[]
}

/** The only attribute of the series that collects everything above the series limit. */
export const overflowAttribute = 'otel.metric.overflow'
