/** A metric as the unit that makes it declares it: for code, for documentation, for dashboards. */
export interface MetricDeclaration {
  readonly name: string
  readonly description: string
  /** UCUM. */
  readonly unit: string
  readonly kind: 'counter' | 'updowncounter' | 'gauge' | 'histogram'
  /** All attributes that a point may have; those of its resource are not among them. */
  readonly attributes: readonly string[]
}

/** The only attribute of a series that stands for those that found no room. */
export const overflowAttribute = 'otel.metric.overflow'
