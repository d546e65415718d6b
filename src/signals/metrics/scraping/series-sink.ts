import type { Metric } from '../../../foundation/model/metric.ts'
import type { PreparedIntake } from '../../../foundation/model/prepared-metric.ts'
import type { Resource, Scope } from '../../../foundation/model/resource.ts'
import type { MappingLoss } from './mapping/mapped-family.ts'
import type { Target } from './target.ts'

/** Destination of the metrics of targets. */
export interface SeriesSink {
  readonly prepared: PreparedIntake
  add(resource: Resource, scope: Scope, metric: Metric): void
  /** Counts dropped data points. */
  drop(reason: MappingLoss, points: number): void
  /** Reports that the fast reading of a page differed from the full one: a bug in svc. */
  contradicts(target: Target): void
}
