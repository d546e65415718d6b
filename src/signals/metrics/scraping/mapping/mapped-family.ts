import type { Attributes } from '../../../../foundation/model/attributes.ts'
import type { ReasonAt } from '../../../../foundation/model/drop-reasons.ts'
import type { Metric } from '../../../../foundation/model/metric.ts'
import type { Scope } from '../../../../foundation/model/resource.ts'
import type { Family, LineExemplar } from '../exposition.ts'

/** Metadata of a family. The name is that on the page, even if relabelling changed the names of series. */
export type FamilyMetadata = Pick<Family, 'name' | 'type' | 'help' | 'unit'>

/** A series after relabelling. */
export interface MappedSeries {
  readonly name: string
  /** Without `__name__`. */
  readonly labels: ReadonlyMap<string, string>
  /** With `places`, the place of the value. */
  value: number
  /** Microseconds since the Unix epoch, 0 for unknown; with `places` 0, or the place of the time plus one. */
  timeUs: number
  /** Ignored with `places`. */
  exemplar?: LineExemplar | undefined
}

/** Subject of series: their labels `job` and `instance`, '' for none. */
export interface Identity {
  readonly job: string
  readonly instance: string
}

export interface MappedMetric {
  readonly identity: Identity
  readonly scope: Scope
  readonly metric: Metric
}

/** Labels of a `target_info` series, for `targetResource`. */
export interface TargetInfo {
  readonly identity: Identity
  readonly labels: Attributes
}

/** A number of a placed metric that is not a sample of it: a start, from a series with seconds, or 0. */
export interface DerivedNumber {
  /** Place of the seconds; -1 for the number 0. */
  readonly from: number
  /** As `timeUs` of a placed metric. */
  readonly time: number
}

/** Reasons why points are dropped. */
export type MappingLoss = ReasonAt<'scraping'>

export interface MappedFamily {
  /**
   * There are several with one name if their points differ in identity, scope or bounds. With `places` they are placed
   * metrics. With the values of the same series they are the same in the same order, possibly without points.
   */
  readonly metrics: readonly MappedMetric[]
  /** Points by reason. A sample left out of its histogram or summary counts as one. */
  readonly dropped: ReadonlyMap<MappingLoss, number>
  readonly targetInfo: readonly TargetInfo[]
  /** With `places`: numbers for `writeStarts` to compute after each reading, into the places from `startsAt` on. */
  readonly starts: readonly DerivedNumber[]
}
