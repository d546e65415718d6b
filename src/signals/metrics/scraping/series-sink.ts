import type { Metric } from '../../../foundation/model/metric.ts'
import type { PreparedIntake } from '../../../foundation/model/prepared-metric.ts'
import type { Resource, Scope } from '../../../foundation/model/resource.ts'
import type { MappingLoss } from './mapping/mapped-family.ts'
import type { Target } from './target.ts'

/** Where the metrics of targets go. */
export interface SeriesSink {
  readonly prepared: PreparedIntake
  add(resource: Resource, scope: Scope, metric: Metric): void
  /** Counts data points that go no further. */
  drop(reason: MappingLoss, points: number): void
  /** The fast read of a page said something else than the whole one: a fault of svc. */
  contradicts(target: Target): void
}
